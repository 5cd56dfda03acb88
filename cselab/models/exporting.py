"""Export encoders to sentence-transformers."""

import json
import shutil
from pathlib import Path
from typing import Any

from cselab.errors import ModelError, suggest
from cselab.models.ensemble import AnyEncoder, Ensemble
from cselab.models.folder import new_folder
from cselab.models.foreign import POOLING_MODES, ForeignEncoder
from cselab.models.sentence import SentenceEncoder
from cselab.models.tokenizer import longest_text
from cselab.models.twin import TwinEncoder

STOCK_POOLINGS = {**POOLING_MODES, "pooler": "cls"}
"""sentence-transformers' names of poolings; "pooler" is [CLS] and a Dense module."""
MODULES = "sentence_transformers.sentence_transformer.modules"


def export(
    encoder: AnyEncoder | ForeignEncoder, folder: str | Path, *, stock: bool = False
) -> None:
    """Write a folder that both `SentenceTransformer(folder)` and `load` open.

    The embeddings are the same. A single tower becomes stock modules. A twin needs a small custom
    module, which is copied into the folder, so open it with
    `SentenceTransformer(folder, trust_remote_code=True)`.

    Args:
        encoder: A single tower or a twin.
        folder: A new folder, an empty one, or a saved encoder, which is replaced.
        stock: Write a single tower as a model of transformers alone, also one with a prompt, which
            `load` then applies; LoRA adapters are merged, in place.

    Raises:
        ModelError: For an encoder without tokenizer, a pooling or prompt that stock modules do not
            have, a fused twin, an ensemble, a foreign encoder, and a folder of something else.

    Examples:
        >>> from cselab import load
        >>> from cselab.models import export
        >>> export(load("tiny-bert", pooling="mean"), "exported")
        >>> load("exported").pooling
        'mean'
    """
    if isinstance(encoder, ForeignEncoder):
        raise ModelError("sentence-transformers runs this model itself: its folder is the export")
    twin = isinstance(encoder, TwinEncoder)
    if stock:
        if not isinstance(encoder, SentenceEncoder):
            raise ModelError(
                f"a {type(encoder).__name__} is no single model of transformers; export it without "
                "--stock (stock=True)"
            )
        return encoder.save_pretrained(folder, merged=True)
    if isinstance(encoder, Ensemble):
        problem = f"an ensemble runs {len(encoder.members)} encoders, each with its tokenizer"
    elif twin and encoder.is_fused:
        problem = "a fused twin mixes its towers inside"
    else:
        problem = "" if twin or not encoder.prompt else "a prompt is put around the sentence"
    if problem:
        other = (
            "" if twin or isinstance(encoder, Ensemble) else ", or export its stock model (--stock)"
        )
        raise ModelError(
            f"{problem}, as no stock module does; use cselab.load on its own folder{other}"
        )
    if encoder.tokenizer is None:
        raise ModelError("an exported encoder needs its tokenizer; build it with tokenizer=")
    pooling = "cls" if twin else encoder.pooling
    if pooling not in STOCK_POOLINGS:
        raise ModelError(
            f"pooling {pooling!r} is no stock module; {suggest(pooling, STOCK_POOLINGS)}, or use "
            "cselab.load"
        )
    encoder.tokenizer.padding_side = "right"  # as `encode` pads
    with new_folder(folder) as target:
        options = {} if twin else {"merged": True}
        encoder.save_pretrained(target / "saved", **options)  # moved to the root below
        for path in (target / "saved").iterdir():
            shutil.move(path, target / path.name)
        (target / "saved").rmdir()
        transformer = "tower_i" if twin else ""
        modules = [(f"{MODULES}.Transformer", transformer), (f"{MODULES}.Pooling", "1_Pooling")]
        if twin:
            shutil.copy(Path(__file__).with_name("modeling_twin.py"), target)
            modules.append(("modeling_twin.SecondTower", "tower_ii"))
        elif pooling == "pooler":
            _write_dense(encoder.backbone.pooler.dense, target / "2_Dense")
            modules.append((f"{MODULES}.Dense", "2_Dense"))
        if not twin and encoder.normalized:
            modules.append((f"{MODULES}.Normalize", "3_Normalize"))
            (target / "3_Normalize").mkdir()
        (target / "1_Pooling").mkdir()
        contents: dict[str, Any] = {
            "1_Pooling/config.json": {
                "embedding_dimension": encoder.backbones[0].config.hidden_size,
                "pooling_mode": STOCK_POOLINGS[pooling],
            },
            "modules.json": [
                {"idx": i, "name": str(i), "path": path, "type": kind}
                for i, (kind, path) in enumerate(modules)
            ],
            f"{transformer}/sentence_bert_config.json": {
                "max_seq_length": longest_text(encoder.backbones[0], encoder.tokenizer),
                "do_lower_case": False,
            },
            "config_sentence_transformers.json": {
                "similarity_fn_name": "cosine",
                "prompts": {},
                "default_prompt_name": None,
            },
        }
        for name, content in contents.items():
            (target / name.lstrip("/")).write_text(json.dumps(content, indent=1))


def _write_dense(layer: Any, folder: Path) -> None:
    """Write the dense layer of BERT's pooler, with its tanh, as a Dense module."""
    from sentence_transformers.sentence_transformer.modules import Dense

    folder.mkdir()
    weight, bias = layer.weight.detach(), layer.bias.detach()
    Dense(*weight.T.shape, init_weight=weight, init_bias=bias).save(str(folder))
