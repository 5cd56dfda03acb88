"""Load encoders: saved, exported, of sentence-transformers, or a stock model with a pooling."""

from pathlib import Path
from typing import Any

import torch
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from cselab.errors import ModelError
from cselab.models.backbone import (
    first_line,
    is_encoder,
    is_encoder_config,
    load_backbone,
    quiet_loading,
    read_config,
    transformer_folder,
)
from cselab.models.decoder import load_decoder
from cselab.models.encode import Encoder
from cselab.models.ensemble import AnyEncoder, Ensemble, open_saved
from cselab.models.folder import CARD
from cselab.models.foreign import POOLING_MODES, ForeignEncoder
from cselab.models.layers import BERT_LIKE
from cselab.models.sentence import SentenceEncoder
from cselab.models.tokenizer import load_tokenizer
from cselab.models.twin import TwinEncoder
from cselab.paths import check_readable

STOCK_MODULES = ["Transformer", "Pooling", "Dense"]
"""Modules of sentence-transformers that a SentenceEncoder has: the last one is its pooler."""


def load(
    folder: str | Path, *, pooling: str | None = None, base: str | Path | None = None
) -> AnyEncoder | ForeignEncoder:
    """Load an encoder from a folder, in evaluation mode.

    The folder holds one of: what `save_pretrained` or `cselab export` wrote; a model of
    sentence-transformers; a stock encoder or Llama-like decoder of transformers. A model of
    sentence-transformers with modules that a SentenceEncoder lacks is a ForeignEncoder, run by its
    library.

    Weights are safetensors. Of a stock model or sentence-transformers model without them, a
    pytorch_model.bin is read, of which nothing but tensors is unpickled. The `max_seq_length` of a
    sentence-transformers model is kept as its tokenizer's `model_max_length`.

    Args:
        folder: Where the encoder is; `cselab.load` also takes shipped names and names on the hub.
        pooling: One of POOLINGS or "pooler" (see `with_pooling`); None is the one the folder was
            saved with, and for a stock model "cls" of an encoder, "last_token" of a decoder.
        base: Of a decoder's adapters, the model that they belong to; None: where they were trained.

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
        encoder = open_saved(folder, base=base)
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


def with_pooling(encoder: Encoder, pooling: str) -> AnyEncoder | ForeignEncoder:
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
    if isinstance(encoder, ForeignEncoder):
        return encoder.pooled_by(pooling)
    if not isinstance(encoder, SentenceEncoder):
        raise ModelError(
            f"a {type(encoder).__name__} has no token states to pool; expected a single tower, a "
            "twin or an ensemble of them"
        )
    if pooling == "cls" and not is_encoder_config(encoder.backbone.config):
        raise ModelError(
            "pooling 'cls' of a decoder: its first token is the same in every sentence; expected "
            "'last_token', 'mean', 'first_last' or 'last_two'"
        )
    return SentenceEncoder(
        encoder.backbone,
        encoder.tokenizer,
        pooling=pooling,
        prompt=encoder.prompt,
        normalized=encoder.normalized,
    )


def _open_stock(folder: Path, *, pooling: str | None = None, prompt: str = "") -> SentenceEncoder:
    """A stock encoder, or decoder, by default with the pooling of its kind."""
    if is_encoder(folder):
        tokenizer, backbone = load_tokenizer(folder), load_backbone(folder)
        return SentenceEncoder(backbone, tokenizer, pooling=pooling or "cls", prompt=prompt)
    config = read_config(folder, f"no model in {folder}")
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise ModelError(
            f"{folder} is a {config.model_type!r} model; expected an encoder of text, such as "
            f"{', '.join(BERT_LIKE)}, or a Llama-like decoder"
        )
    return SentenceEncoder(*load_decoder(folder), pooling=pooling or "last_token", prompt=prompt)


def _open_modules(folder: Path) -> SentenceEncoder | ForeignEncoder:
    """A model of sentence-transformers; what no SentenceEncoder can hold encodes by itself.
    https://sbert.net/docs/sentence_transformer/usage/custom_models.html"""
    from sentence_transformers import SentenceTransformer

    for inner in folder.glob("*/"):
        check_readable(inner)
    try:
        with quiet_loading():
            model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            prompt = model.prompts[model.default_prompt_name] if model.default_prompt_name else ""
    except Exception as error:  # of its modules, of json or of safetensors
        raise ModelError(
            f"sentence-transformers does not load {folder} ({first_line(error)}); get it again"
        ) from None
    encoder = _as_sentence_encoder(folder, model, prompt)
    return ForeignEncoder(model) if encoder is None else encoder


def _as_sentence_encoder(folder: Path, model: Any, prompt: str) -> SentenceEncoder | None:
    """A model of sentence-transformers as a SentenceEncoder; None where that lacks a part of it."""
    names = [type(module).__name__ for module in model]
    normalized = names[-1:] == ["Normalize"]
    if names[: len(names) - normalized] not in (STOCK_MODULES[:2], STOCK_MODULES):
        return None
    modes = {mode: pooling for pooling, mode in POOLING_MODES.items()}
    pooling = modes.get(str(model[1].pooling_mode))
    if pooling is None or (prompt and not model[1].include_prompt):
        return None
    prompt = prompt and f"{prompt}{{sentence}}"
    inner = Path(transformer_folder(folder))
    kind = read_config(inner, f"no model in {inner}").model_type
    if not is_encoder(inner) and kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return None  # such as T5's encoder
    encoder = _open_stock(inner, pooling=pooling, prompt=prompt)
    tokenizer: Any = encoder.tokenizer
    if model[0].do_lower_case and tokenizer.tokenize("The DOG") != tokenizer.tokenize("the dog"):
        return None
    tokenizer.model_max_length = model.max_seq_length or tokenizer.model_max_length
    if "Dense" in names:
        if not _is_pooler(encoder, model[2]):
            return None
        encoder = _use_dense(encoder, folder, model[2])
    encoder.normalized = normalized
    return encoder


def _is_pooler(encoder: SentenceEncoder, dense: Any) -> bool:
    """Whether a Dense module is BERT's pooler: a square layer and tanh on [CLS]."""
    width = encoder.backbone.config.hidden_size
    return (
        encoder.pooling == "cls"
        and dense.linear.weight.shape == (width, width)
        and dense.linear.bias is not None
        and isinstance(dense.activation_function, torch.nn.Tanh)
        and not dense.use_residual
    )


def _use_dense(encoder: SentenceEncoder, folder: Path, dense: Any) -> SentenceEncoder:
    """The encoder with a Dense module as its pooler."""
    backbone = encoder.backbone
    if backbone.pooler is None:
        with torch.random.fork_rng(devices=[]):
            backbone = load_backbone(folder, pooler="fresh")
    backbone.pooler.dense.load_state_dict(dense.linear.state_dict())
    return SentenceEncoder(backbone, encoder.tokenizer, pooling="pooler", prompt=encoder.prompt)
