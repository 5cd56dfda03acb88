"""Load encoders: saved, exported, of sentence-transformers, or a stock model with a pooling."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from cselab.errors import ModelError
from cselab.models.backbone import ENCODERS, first_line, is_encoder, load_backbone, read_config
from cselab.models.decoder import load_decoder
from cselab.models.encode import Encoder
from cselab.models.ensemble import AnyEncoder, Ensemble, open_saved
from cselab.models.folder import CARD
from cselab.models.sentence import SentenceEncoder
from cselab.models.tokenizer import load_tokenizer
from cselab.models.twin import TwinEncoder
from cselab.paths import check_readable

POOLINGS_OF_MODULES = {"cls": "cls", "mean": "mean", "lasttoken": "last_token"}
"""Poolings by their names in sentence-transformers."""


def load(folder: str | Path, *, pooling: str | None = None) -> AnyEncoder:
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


def with_pooling(encoder: Encoder, pooling: str) -> AnyEncoder:
    """The same encoder, read by another pooling; weights are shared, not copied.

    A twin becomes the sum of its towers' pooled vectors (for "cls" it stays), an ensemble the
    weighted sum of its members'. JTCSE Table XI and TNCSE's supplement II score finished
    checkpoints this way, https://arxiv.org/abs/2505.02366, https://arxiv.org/abs/2503.12739.
    Poolings are POOLINGS and "pooler"; "mask" where the prompt has a mask token.

    Raises:
        ModelError: For a pooling that the encoder does not have, a fused twin (whose towers do not
            run alone), and an encoder of another kind.

    Examples:
        >>> from cselab import load
        >>> from cselab.models import with_pooling
        >>> encoder = load("tiny-bert")
        >>> by_mean = with_pooling(encoder, "mean")
        >>> encoder.pooling, by_mean.pooling, by_mean.backbone is encoder.backbone
        ('cls', 'mean', True)
    """
    if isinstance(encoder, Ensemble):
        return Ensemble([with_pooling(one, pooling) for one in encoder.members], encoder.weights)
    if isinstance(encoder, TwinEncoder):
        if pooling == "cls":
            return encoder
        if encoder.is_fused:
            raise ModelError(
                f"pooling {pooling!r} reads each tower alone, and a fused twin mixes its towers "
                "inside; only 'cls' is possible"
            )
        return Ensemble(
            [SentenceEncoder(one, encoder.tokenizer, pooling=pooling) for one in encoder.backbones]
        )
    if not isinstance(encoder, SentenceEncoder):
        raise ModelError(
            f"a {type(encoder).__name__} has no token states to pool; expected a single tower, a "
            "twin or an ensemble of them"
        )
    if pooling == "cls" and encoder.backbone.config.model_type not in ENCODERS:
        raise ModelError(
            "pooling 'cls' of a decoder: its first token is the same in every sentence; expected "
            "'last_token', 'mean', 'first_last' or 'last_two'"
        )
    return SentenceEncoder(
        encoder.backbone, encoder.tokenizer, pooling=pooling, prompt=encoder.prompt
    )


def _open_stock(folder: Path, *, pooling: str | None = None, prompt: str = "") -> SentenceEncoder:
    """A stock encoder, or decoder, by default with the pooling of its kind."""
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
    https://sbert.net/docs/sentence_transformer/usage/custom_models.html"""
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
    module = _load_module(Pooling, paths[1])
    prompt = _default_prompt(folder)
    pooling = POOLINGS_OF_MODULES.get(module.pooling_mode)
    if pooling is None or (prompt and not module.include_prompt):
        raise ModelError(
            f"{folder} pools {module.pooling_mode!r}"
            f"{'' if module.include_prompt else ' without its prompt'}; expected one of "
            f"{', '.join(POOLINGS_OF_MODULES)} over all tokens"
        )
    encoder = _open_stock(paths[0], pooling=pooling, prompt=prompt)
    _use_settings(paths[0], encoder.tokenizer)
    return encoder if len(names) == 2 else _use_dense(encoder, paths[0], paths[2])


def _modules(folder: Path) -> tuple[list[str], list[Path]]:
    """Names and folders of modules; a module of other code keeps its full name."""
    listed, own = _read_json(folder / "modules.json", list), "sentence_transformers."
    try:
        listed = sorted(listed, key=lambda module: module["idx"])
        kinds = [module["type"] for module in listed]
        paths = [folder / module["path"] for module in listed]
    except (KeyError, TypeError) as error:
        raise _damaged(folder / "modules.json", f"{type(error).__name__}: {error}") from None
    for path in paths:
        check_readable(path)
    return [kind.rsplit(".", 1)[-1] if kind.startswith(own) else kind for kind in kinds], paths


def _damaged(path: Path, reason: str) -> ModelError:
    return ModelError(f"{path} is damaged ({reason}); get the folder again")


def _load_module(kind: Any, folder: Path) -> Any:
    """A module of sentence-transformers. Raises ModelError for a damaged one."""
    try:
        return kind.load(str(folder))
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, SafetensorError) as error:
        raise _damaged(folder, first_line(error)) from None


def _read_json(path: Path, kind: type) -> Any:
    """Content of a JSON file. Raises ModelError for a damaged one, or one of another kind."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path, first_line(error)) from None
    if not isinstance(content, kind):
        raise _damaged(path, f"a {type(content).__name__}, expected a {kind.__name__}")
    return content


def _default_prompt(folder: Path) -> str:
    """The template of the prompt that sentence-transformers puts before every sentence, or ""."""
    path = folder / "config_sentence_transformers.json"
    config = _read_json(path, dict) if path.is_file() else {}
    name = config.get("default_prompt_name")
    if name and name not in (config.get("prompts") or {}):
        raise _damaged(path, f"lacks the prompt {name!r}, its default")
    return f"{config['prompts'][name]}{{sentence}}" if name else ""


def _use_settings(folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Give the tokenizer the length that sentence-transformers cuts sentences at. Raises ModelError
    where it lower-cases for a tokenizer that does not."""
    path = next(folder.glob("sentence_*_config.json"), None)  # "bert", or another model type
    settings = {} if path is None else _read_json(path, dict)
    upper, lower = tokenizer.tokenize("The DOG"), tokenizer.tokenize("the dog")
    if settings.get("do_lower_case") and upper != lower:
        raise ModelError(
            f"{folder} asks for lower case (do_lower_case); save a tokenizer that lower-cases"
        )
    if length := settings.get("max_seq_length"):
        if not isinstance(length, int):
            raise ModelError(f"{path} has max_seq_length {length!r}; expected a number of tokens")
        tokenizer.model_max_length = length


def _use_dense(encoder: SentenceEncoder, transformer: Path, folder: Path) -> SentenceEncoder:
    """The encoder with a Dense module as its pooler. Raises ModelError for another Dense."""
    from sentence_transformers.sentence_transformer.modules import Dense

    dense = _load_module(Dense, folder)
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
            f"'Dense' in {folder} is no BERT pooler (a square layer and tanh on [CLS])"
        )
    backbone = encoder.backbone
    if backbone.pooler is None:
        with torch.random.fork_rng(devices=[]):
            backbone = load_backbone(transformer, pooler="fresh")
    with torch.no_grad():
        backbone.pooler.dense.weight.copy_(dense.linear.weight)
        backbone.pooler.dense.bias.copy_(dense.linear.bias)
    return SentenceEncoder(backbone, encoder.tokenizer, pooling="pooler", prompt=encoder.prompt)
