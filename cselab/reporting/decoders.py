"""What BeLLM prints of decoders outside its tables, and what decoders have scored here."""

import json

import pandas

from cselab.paths import shipped

PRINTED_STRICT = {"SimCSE, RoBERTa": 16.4, "SimCSE, LLaMA": 18.4, "BeLLM": 20.2}
"""Strict accuracy of caption retrieval, %, on the 1000 pictures of Flickr30k's test split (BeLLM
section 5.4, https://arxiv.org/abs/2311.05296)."""
PRINTED_DEPENDENCY = {"LLaMA": 0.17, "ChatGLM": 0.15, "BERT": 0.35}
"""Mean dependency before training, on the sentences of STS-B's test split (BeLLM Figure 2)."""
PRINTED_RARE_WORDS = 91.74
"""% of BeLLM's representative words in STS-B that are not frequent words (appendix A)."""


def decoder_scores() -> pandas.DataFrame:
    """Recorded scores of decoders on synthetic and real text (benchmarks/decoders.py).

    Returns:
        Columns text, label, seed; STS (average, Spearman x100), strict accuracy, and the transfer
            tasks (accuracy x100, SentEval's protocol), NaN where a row has none.
    """
    path = shipped("reference") / "decoders.json"
    rows = json.loads(path.read_text())["rows"]
    return pandas.DataFrame([{**row.pop("scores"), **row} for row in rows])
