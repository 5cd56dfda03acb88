"""Load encoders: saved, exported, of sentence-transformers, or a stock model with a pooling."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from cselab.errors import ModelError
from cselab.models.backbone import (
    ENCODERS,
    first_line,
    is_encoder,
    load_backbone,
    load_tokenizer,
    read_config,
)
from cselab.models.decoder import load_decoder
from cselab.models.ensemble import Ensemble, open_saved
from cselab.models.folder import CARD
from cselab.models.repooling import with_pooling
from cselab.models.sentence import SentenceEncoder
from cselab.models.twin import TwinEncoder
from cselab.paths import check_readable

POOLINGS_OF_MODULES = {"cls": "cls", "mean": "mean", "lasttoken": "last_token"}
"""Poolings by their names in sentence-transformers."""


def load(
    folder: str | Path, *, pooling: str | None = None
) -> SentenceEncoder | TwinEncoder | Ensemble:
    """Load an encoder from a folder, in evaluation mode.

    The folder holds one of: what `save_pretrained` or `cselab export` wrote; a model of
    sentence-transformers made of Transformer, Pooling and, if any, the pooler as Dense; a stock
    BERT-like encoder or Llama-like decoder of transformers.

    Weights are safetensors. Of a stock model or sentence-transformers model without them, a
    pytorch_model.bin is read, of which nothing but tensors is unpickled. The `max_seq_length` of a
    sentence-transformers model is kept as its tokenizer's `model_max_length`.

    Args:
        folder: Where the encoder is; `cselab.load` also takes shipped names and names on the hub.
        pooling: One of POOLINGS or "pooler" (see `with_pooling`); None is the one the folder was
            saved with, and for a stock model "cls" of an encoder, "last_token" of a decoder.

    Returns:
        The encoder.

    Raises:
        ModelError: For a folder without an encoder, a damaged one, modules and architectures that
            are not supported, and a pooling that the encoder does not have.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import load
        >>> load(model_folder("tiny-bert"), pooling="mean").encode(["A dog sleeps."]).shape
        torch.Size([1, 192])
    """
    check_readable(folder := Path(folder))
    if not folder.is_dir():
        raise ModelError(f"no folder {folder}; a model of the hub has to be downloaded first")
    if (folder / CARD).is_file():
        encoder = open_saved(folder)
    elif (folder / "modules.json").is_file():
        encoder = _open_modules(folder)
    elif (folder / "config.json").is_file():
        encoder = _open_stock(folder)
    else:
        raise ModelError(
            f"no encoder in {folder}: expected {CARD} (save_pretrained or `cselab export`), "
            "modules.json (sentence-transformers) or config.json (transformers)"
        )
    return (encoder if pooling is None else with_pooling(encoder, pooling)).eval()


def _open_stock(folder: Path, *, pooling: str | None = None, prompt: str = "") -> SentenceEncoder:
    """A stock encoder, or decoder, with its usual pooling."""
    if is_encoder(folder):
        tokenizer, backbone = load_tokenizer(folder), load_backbone(folder)
        return SentenceEncoder(backbone, tokenizer, pooling=pooling or "cls", prompt=prompt)
    kind = read_config(folder, f"no model in {folder}").model_type
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise ModelError(
            f"{folder} is a {kind!r} model; expected an encoder of type {', '.join(ENCODERS)}, or "
            "a Llama-like decoder"
        )
    return SentenceEncoder(*load_decoder(folder), pooling=pooling or "last_token", prompt=prompt)


def _open_modules(folder: Path) -> SentenceEncoder:
    """A model of sentence-transformers. Raises ModelError for modules that a SentenceEncoder lacks.

    https://sbert.net/docs/sentence_transformer/usage/custom_models.html
    """
    from sentence_transformers.sentence_transformer.modules import Pooling

    names, paths = _modules(folder)
    expected = ["Transformer", "Pooling", "Dense"]
    wrong = [name for i, name in enumerate(names) if expected[i : i + 1] != [name]]
    if wrong or len(names) < 2:
        problem = f"its module {wrong[0]!r} is not supported" if wrong else "it has no Pooling"
        raise ModelError(
            f"{folder} is a sentence-transformers model of {', '.join(names)}: {problem}; expected "
            "Transformer, Pooling and, if any, one Dense"
        )
    try:
        pooler = Pooling.load(str(paths[1]))
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"the Pooling of {folder} cannot be read ({error}); get the folder again"
        ) from None
    prompt = _default_prompt(folder)
    pooling = POOLINGS_OF_MODULES.get(pooler.pooling_mode)
    if pooling is None or (prompt and not pooler.include_prompt):
        raise ModelError(
            f"{folder} pools {pooler.pooling_mode!r}"
            f"{'' if pooler.include_prompt else ' without its prompt'}; expected one of "
            f"{', '.join(POOLINGS_OF_MODULES)} over all tokens"
        )
    encoder = _open_stock(paths[0], pooling=pooling, prompt=prompt)
    _use_settings(paths[0], encoder.tokenizer)
    return encoder if len(names) == 2 else _with_dense(encoder, paths[0], paths[2])


def _modules(folder: Path) -> tuple[list[str], list[Path]]:
    """Names and folders of modules; a module of other code keeps its full name."""
    listed = _read_json(folder / "modules.json", list)
    try:
        listed = sorted(listed, key=lambda module: module["idx"])
        kinds = [module["type"] for module in listed]
        paths = [folder / module["path"] for module in listed]
        for path in paths:
            check_readable(path)
    except (KeyError, TypeError) as error:
        raise ModelError(
            f"{folder / 'modules.json'} is damaged ({type(error).__name__}: {error}); get the "
            "folder again"
        ) from None
    own = "sentence_transformers."
    return [kind.rsplit(".", 1)[-1] if kind.startswith(own) else kind for kind in kinds], paths


def _read_json(path: Path, kind: type) -> Any:
    """Content of a JSON file. Raises ModelError for a damaged one, or one of another kind."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged ({first_line(error)}); get the folder again") from None
    if not isinstance(found, kind):
        raise ModelError(
            f"{path} is damaged (a {type(found).__name__}, expected a {kind.__name__}); get the "
            "folder again"
        )
    return found


def _default_prompt(folder: Path) -> str:
    """The template of the prompt that sentence-transformers puts before every sentence, or ""."""
    path = folder / "config_sentence_transformers.json"
    config = _read_json(path, dict) if path.is_file() else {}
    name = config.get("default_prompt_name")
    if name and name not in (config.get("prompts") or {}):
        raise ModelError(f"{path} lacks the prompt {name!r}, its default; get the folder again")
    return f"{config['prompts'][name]}{{sentence}}" if name else ""


def _use_settings(folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Give the tokenizer the length that sentence-transformers cuts sentences at.

    Raises ModelError where it lower-cases for a tokenizer that does not.
    """
    path = next(folder.glob("sentence_*_config.json"), None)  # "bert", or another model type
    settings = {} if path is None else _read_json(path, dict)
    if settings.get("do_lower_case") and tokenizer.tokenize("The DOG") != tokenizer.tokenize(
        "the dog"
    ):
        raise ModelError(
            f"{folder} asks for lower case (do_lower_case), which its tokenizer does not make; "
            "save the tokenizer with a lower-casing normalizer"
        )
    if length := settings.get("max_seq_length"):
        if not isinstance(length, int):
            raise ModelError(f"{path} has max_seq_length {length!r}; expected a number of tokens")
        tokenizer.model_max_length = length


def _with_dense(encoder: SentenceEncoder, transformer: Path, folder: Path) -> SentenceEncoder:
    """The encoder with a Dense module as its pooler. Raises ModelError for a Dense that is none."""
    from sentence_transformers.sentence_transformer.modules import Dense

    try:
        dense = Dense.load(str(folder))
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            f"the Dense of {folder} cannot be read ({first_line(error)}); get the folder again"
        ) from None
    width = encoder.backbone.config.hidden_size
    is_pooler = (
        encoder.pooling == "cls"
        and dense.linear.weight.shape == (width, width)
        and dense.linear.bias is not None
        and isinstance(dense.activation_function, torch.nn.Tanh)
        and not dense.use_residual
    )
    if not is_pooler:
        raise ModelError(
            f"the module 'Dense' in {folder} is no BERT pooler (a square layer and tanh on [CLS]), "
            "so it is not supported"
        )
    backbone = encoder.backbone
    if backbone.pooler is None:
        with torch.random.fork_rng(devices=[]):
            backbone = load_backbone(transformer, pooler="fresh")
    with torch.no_grad():
        backbone.pooler.dense.weight.copy_(dense.linear.weight)
        backbone.pooler.dense.bias.copy_(dense.linear.bias)
    return SentenceEncoder(backbone, encoder.tokenizer, pooling="pooler", prompt=encoder.prompt)
