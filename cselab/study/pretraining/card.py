"""Model card of a pretrained backbone, generated from its measurements."""

from collections.abc import Mapping

DESCRIPTIONS = {
    "bert": "A small BERT encoder: masked LM, prediction of the sentence's words from [CLS], "
    "and next-sentence prediction for the pooler.",
    "roberta": "A small RoBERTa encoder: masked LM with masks drawn anew at every visit, and "
    "prediction of the sentence's words from `<s>` and from the pooler; no sentence pairs.",
    "llama": "A small Llama decoder: next-token prediction on single sentences, `[CLS]` first and "
    "`[SEP]` last.",
}
OWN_OBJECTIVES = {
    "bert": (
        "A small BERT encoder, pretrained with BERT's own objectives: masked LM ({masked:.0%} of "
        "the words of single sentences, 15% of pairs) and next-sentence prediction (one step in "
        "{pair_every} is on pairs)",
        "Only the next sentence trains [CLS].",
    ),
    "roberta": (
        "A small RoBERTa encoder, pretrained with RoBERTa's own objective: masked LM "
        "({masked:.0%} of the words, drawn anew at every visit)",
        "Nothing trains `<s>`, and there is no pooler.",
    ),
}
"""Without bag of words: the objectives, and what they train the first token for."""
VOCABULARIES = {
    "bert": "lower-case WordPiece",
    "roberta": "cased byte-level BPE",
    "llama": "lower-case WordPiece",
}


PAGE = """\
---
license: cc-by-sa-4.0
language: en
---
# {name}

{description}; {layers} layers, width {width}, {heads} heads, a {vocabulary} vocabulary of \
{vocab_size:,}, float16.

**Text.** {text} (Wikipedia CC BY-SA 3.0; OneStopEnglish CC BY-SA 4.0; Leipzig CC BY 4.0; books, \
speeches and Factbook in the public domain) and this project's synthetic text: {sentences:,} \
sentences in all, {held_out:,} of them held out.{pairs}

**Training.** {steps:,} steps of {batch_size} sentences, {tokens_seen:.1f} M tokens, AdamW at \
{learning_rate:g} with warm-up and linear decay, {hours} hours on {hardware}{precision}, seed \
{seed}.

| step | held-out loss (nats) |
|---|---|
{curve}

**Measured** on the finished file (real held-out sentences only):

| | |
|---|---|
{numbers}

{scores}`cselab card data/backbones/{name} --data-dir <data folder>` measures these numbers again.

**Limits.** English only; small, and trained on few tokens: it knows common words. It carries the \
biases of its text. The licence is that of its text's derived works, CC BY-SA 4.0.
"""


def card_text(
    name: str, kind: str, card: Mapping, text: tuple[str, ...], in_order: tuple[str, ...]
) -> str:
    """Markdown with the front matter of a hub card.

    Args:
        name: Name of the backbone.
        kind: "bert", "roberta" or "llama".
        card: The result of `recipe.make_backbone`.
        text: Names of the corpora.
        in_order: Names of those that keep their order.
    """
    config, measured, curve = card["config"], card["measured"], card["curve"]
    numbers = {key: value for key, value in measured.items() if not isinstance(value, Mapping)}
    pairs = f" Next-sentence pairs from {', '.join(in_order)}, which keep their order."
    shown = [*curve[: -1 : max(1, len(curve) // 10)], curve[-1]]
    values = {
        **card,
        **config,
        "name": name,
        "description": _description(kind, config),
        "vocabulary": VOCABULARIES[kind],
        "text": ", ".join(text),
        "pairs": pairs if kind == "bert" else "",
        "tokens_seen": card["tokens_seen"] / 1e6,
        "precision": " in bfloat16" if config["bf16"] else "",
        "curve": "\n".join(f"| {row['step']:,} | {row['held_out']:.2f} |" for row in shown),
        "numbers": "\n".join(f"| {key} | {value} |" for key, value in numbers.items()),
        "scores": _scores(measured.get("sts", {})),
    }
    return PAGE.format(**values)


def _description(kind: str, config: Mapping) -> str:
    if kind in OWN_OBJECTIVES and not config["bag_weight"]:
        last = config["dropout_last"]
        steps = "every step" if last >= 1 else f"the last {last:.0%} of the steps"
        objectives, first = OWN_OBJECTIVES[kind]
        return (
            f"{objectives.format(**config)}, with dropout of {config['dropout']} in {steps}. "
            f"{first} Made by this project from scratch"
        )
    return f"{DESCRIPTIONS[kind]} Made by this project from scratch, for its default run"


def _scores(sts: Mapping[str, Mapping[str, float]]) -> str:
    if not sts:
        return ""
    tasks = list(next(iter(sts.values())))
    head = f"| Spearman × 100 | {' | '.join(tasks)} |\n{'|---' * (len(tasks) + 1)}|\n"
    rows = [
        f"| {pooling} | {' | '.join(f'{scores[task]:.1f}' for task in tasks)} |\n"
        for pooling, scores in sts.items()
    ]
    return (
        "Before contrastive training (SIF mean: word vectors from counts of the same text, of the "
        f"same width, without a network):\n\n{head}{''.join(rows)}\n"
    )
