"""Export encoders to sentence-transformers."""

import json
import shutil
from pathlib import Path
from typing import Any

from cselab.errors import ModelError, suggest
from cselab.models.backbone import longest_text
from cselab.models.ensemble import Ensemble
from cselab.models.folder import new_folder
from cselab.models.sentence import SentenceEncoder
from cselab.models.twin import TwinEncoder

STOCK_POOLINGS = {"cls": "cls", "mean": "mean", "last_token": "lasttoken", "pooler": "cls"}
"""sentence-transformers' names of poolings; "pooler" is [CLS] and a Dense module."""


def export(encoder: SentenceEncoder | TwinEncoder | Ensemble, folder: str | Path) -> None:
    """Write a folder that both `SentenceTransformer(folder)` and `load` open.

    The embeddings are the same. A single tower becomes stock modules. A twin needs a small custom
    module, which is copied into the folder, so open it with
    `SentenceTransformer(folder, trust_remote_code=True)`.

    Args:
        encoder: A single tower or a twin.
        folder: A new folder, an empty one, or a saved encoder, which is replaced.

    Raises:
        ModelError: For an encoder without tokenizer, a pooling or prompt that stock modules do not
            have, a fused twin, an ensemble, and a folder that holds something else.

    Examples:
        >>> from cselab import load
        >>> from cselab.models import export
        >>> export(load("tiny-bert", pooling="mean"), "exported")
        >>> load("exported").pooling
        'mean'
    """
    if isinstance(encoder, Ensemble):
        raise ModelError(
            f"an ensemble runs {len(encoder.members)} encoders, each with its tokenizer, which no "
            "stock module does; use cselab.load on its own folder, or distil it into one tower"
        )
    if encoder.tokenizer is None:
        raise ModelError("an exported encoder needs its tokenizer; build it with tokenizer=")
    twin = isinstance(encoder, TwinEncoder)
    if twin and encoder.is_fused:
        raise ModelError(
            "a fused twin mixes its towers inside, which no stock module does; use cselab.load on "
            "its own folder"
        )
    if not twin and encoder.prompt:
        raise ModelError(
            "a prompt around the sentence is no stock module; use cselab.load on the encoder's own "
            "folder"
        )
    pooling = "cls" if twin else encoder.pooling
    if pooling not in STOCK_POOLINGS:
        raise ModelError(
            f"pooling {pooling!r} is no stock module; {suggest(pooling, STOCK_POOLINGS)}, or use "
            "cselab.load"
        )
    encoder.tokenizer.padding_side = "right"  # as `encode` pads
    with new_folder(folder) as target:
        encoder.save_pretrained(target / "saved")  # moved to the root below
        first = "tower_i" if twin else "."
        modules = [("sentence_transformers.sentence_transformer.modules.Transformer", first)]
        modules += [("sentence_transformers.sentence_transformer.modules.Pooling", "1_Pooling")]
        for path in (target / "saved").iterdir():
            shutil.move(path, target / path.name)
        (target / "saved").rmdir()
        width = encoder.backbones[0].config.hidden_size
        _write_config(
            target / "1_Pooling",
            {"embedding_dimension": width, "pooling_mode": STOCK_POOLINGS[pooling]},
        )
        if twin:
            shutil.copy(Path(__file__).with_name("modeling_twin.py"), target)
            modules.append(("modeling_twin.SecondTower", "tower_ii"))
        elif pooling == "pooler":
            _write_pooler(encoder, target / "2_Dense")
            modules.append(("sentence_transformers.sentence_transformer.modules.Dense", "2_Dense"))
        listed = [
            {"idx": i, "name": str(i), "path": "" if path == "." else path, "type": kind}
            for i, (kind, path) in enumerate(modules)
        ]
        (target / "modules.json").write_text(json.dumps(listed, indent=1))
        length = longest_text(encoder.backbones[0], encoder.tokenizer)
        module = {"max_seq_length": length, "do_lower_case": False}
        (target / first / "sentence_bert_config.json").write_text(json.dumps(module))
        settings: dict[str, Any] = {
            "similarity_fn_name": "cosine",
            "prompts": {},
            "default_prompt_name": None,
        }
        (target / "config_sentence_transformers.json").write_text(json.dumps(settings))


def _write_config(folder: Path, config: dict) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))


def _write_pooler(encoder: SentenceEncoder, folder: Path) -> None:
    """Write BERT's pooler as a Dense module: a dense layer and tanh on [CLS]."""
    from sentence_transformers.sentence_transformer.modules import Dense

    layer = encoder.backbone.pooler.dense
    folder.mkdir()
    Dense(
        layer.in_features,
        layer.out_features,
        init_weight=layer.weight.detach(),
        init_bias=layer.bias.detach(),
    ).save(str(folder))
