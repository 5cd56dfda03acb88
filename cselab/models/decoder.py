"""Llama-like decoders as sentence encoders: which of their layers attend both ways (BeLLM)."""

import copy
import importlib.util
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.masking_utils import create_bidirectional_mask

from cselab.errors import ModelError, SettingsError, suggest
from cselab.models.adapters import ADAPTERS, adapted_model, load_adapters, merge_lora
from cselab.models.backbone import check_weights, load_weights, read_config, transformer_folder
from cselab.models.folder import CARD, read_card
from cselab.models.tokenizer import load_tokenizer

BIDIRECTIONAL = ("none", "last", "all", "addition", "sum")
PADDING = ("masked", "unmasked")


def load_decoder(
    name_or_path: str | Path,
    *,
    bidirectional: str | int | None = None,
    padding: str = "masked",
    dropout: float | None = None,
    dtype: torch.dtype | None = None,
    four_bit: bool | None = None,
    attn_implementation: str = "sdpa",
    merged: bool = True,
    base: str | Path | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a decoder without its language-model head, in evaluation mode, and its tokenizer.

    Any stock model whose layers have causal `self_attn`: Llama, Mistral, Qwen2, Qwen3, Gemma; or
    the adapters of one, with it. A tokenizer without a padding token pads with its end token, as is
    usual for LLaMA.

    Args:
        name_or_path: As in `load_backbone`, or a folder of adapters that `save_pretrained` wrote.
        bidirectional: Layers that attend to later tokens too, recorded in the config (BeLLM,
            section 3.2 and Table 4, https://arxiv.org/abs/2311.05296): "last" (BeLLM's), "none",
            "all", a number k for the last k, or "addition", a copy of the last layer on top. "sum"
            is Eq. 5 as it is written: the last layer runs both causal and open, and the two states
            are added. None keeps what the folder was saved with, and what it does with padding.
        padding: "masked" in these layers, as in all others; or "unmasked", as in the authors' billm
            0.1.3, which replaces the whole mask by zeros: a sentence's states then depend on how
            many padding tokens its batch gives it.
        dropout: Dropout of the attention; Llama has no other. None keeps the checkpoint's.
        dtype: Precision of the weights; bfloat16 for large models that only LoRA trains. None is
            that of a saved encoder, and float32 for a stock model.
        four_bit: Whether linear layers are quantised to 4 bits (QLoRA,
            https://arxiv.org/abs/2305.14314), which takes CUDA and bitsandbytes. None is as a saved
            encoder was trained.
        attn_implementation: "eager" where attentions are read; the default is faster.
        merged: Whether adapters of the folder are merged into the weights; else they stay beside
            them, as in training.
        base: The model that adapters of the folder belong to; None: where they were trained.

    Raises:
        ModelError: For a missing path, an encoder, incomplete weights, an added layer besides
            another mask, fewer layers than `bidirectional`, and adapters without their model.
        SettingsError: For `four_bit` without CUDA or bitsandbytes.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import SentenceEncoder, load_decoder
        >>> model, tokenizer = load_decoder(model_folder("tiny-llama"), bidirectional="last")
        >>> encoder = SentenceEncoder(model, tokenizer, pooling="last_token", prompt="summarize")
        >>> encoder.encode(["A dog sleeps."]).shape
        torch.Size([1, 192])
    """
    name_or_path = transformer_folder(name_or_path)
    if (folder := Path(name_or_path) / ADAPTERS).is_file():
        saved = read_card(folder.parent, "sentence", "decoder")["decoder"]
        if bidirectional is None:
            bidirectional, padding = saved["bidirectional"], saved["padding"]
        model, tokenizer = load_decoder(
            adapted_model(folder.parent, saved["fingerprint"], base),
            bidirectional=bidirectional,
            padding=padding,
            dropout=dropout,
            dtype=dtype or getattr(torch, saved["dtype"]),
            four_bit=saved["four_bit"] if four_bit is None else four_bit,
            attn_implementation=attn_implementation,
        )
        load_adapters(model, folder.parent)
        if merged:
            merge_lora(model)
            model.config.name_or_path = str(folder.parent)
        return model.eval(), tokenizer
    problem = (
        f"no decoder at {str(name_or_path)!r}: expected a folder with config.json and a "
        "model.safetensors that fits it, or a hub name"
    )
    config = read_config(name_or_path, problem)
    if dropout is not None or getattr(config, "attention_dropout", 0.0) is None:  # null is none
        config.attention_dropout = dropout or 0.0
    # a cache for generation takes memory, and a layer that runs twice would fill it twice
    config.use_cache = False
    opened = getattr(config, "bidirectional_layers", [])
    how = getattr(config, "bidirectional", None)
    unmasked = getattr(config, "unmasked_padding", False)
    is_saved = (Path(name_or_path) / CARD).is_file()
    stored = config.dtype if is_saved and config.dtype == torch.bfloat16 else torch.float32
    model, info = load_weights(
        name_or_path,
        config,
        problem,
        dtype=dtype or stored,
        attn_implementation=attn_implementation,
        **(_four_bit() if four_bit else {}),
    )
    layers: Any = getattr(model, "layers", None)
    if not layers or not hasattr(getattr(layers[0], "self_attn", None), "is_causal"):
        raise ModelError(
            f"{name_or_path} is a {config.model_type!r} model; expected a Llama-like decoder, "
            "whose layers mask what comes later"
        )
    check_weights(model, set(info["missing_keys"]), name_or_path)
    tokenizer = load_tokenizer(name_or_path)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    is_added = how == "addition"
    if is_added and bidirectional not in (None, how):
        raise ModelError(f"{name_or_path} has an added layer already; load the model before that")
    if bidirectional is not None and not is_added:
        _open_layers(model, bidirectional, padding)
    elif opened:
        _attend_both_ways(model, opened, summed=how == "sum", unmasked=unmasked)
    return model.eval(), tokenizer


def _four_bit() -> dict[str, Any]:
    """Options of `from_pretrained` for 4-bit weights. Raises SettingsError where there are none."""
    if not (torch.cuda.is_available() and importlib.util.find_spec("bitsandbytes")):
        lacking = "bitsandbytes" if torch.cuda.is_available() else "a CUDA device"
        raise SettingsError(
            f"four_bit needs {lacking}, which is not here; set four_bit=False, whose weights take "
            "four times the memory"
        )
    from transformers import BitsAndBytesConfig

    quantised = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    return {"quantization_config": quantised}


def _open_layers(model: PreTrainedModel, how: str | int, padding: str) -> None:
    """Let layers attend to later tokens, in place; Mistral's sliding window goes with the mask."""
    depth = len(model.layers)
    if isinstance(how, int):
        if not 1 <= how <= depth:
            raise ModelError(f"bidirectional={how}: the decoder has {depth} layers; give 1 to that")
    elif how not in BIDIRECTIONAL:
        raise ModelError(f"unknown way {how!r} to be bidirectional; {suggest(how, BIDIRECTIONAL)}")
    if padding not in PADDING:
        raise ModelError(f"padding cannot be {padding!r}; {suggest(padding, PADDING)}")
    if how == "addition":
        model.layers.append(copy.deepcopy(model.layers[-1]))
        model.layers[-1].self_attn.layer_idx = depth
        depth = model.config.num_hidden_layers = len(model.layers)
        if getattr(model.config, "layer_types", None):
            model.config.layer_types = [*model.config.layer_types, model.config.layer_types[-1]]
    count = how if isinstance(how, int) else {"none": 0, "all": depth}.get(how, 1)
    layers = list(range(depth - count + 1, depth + 1))
    _attend_both_ways(model, layers, summed=how == "sum", unmasked=padding == "unmasked")
    model.config.bidirectional = how


def _attend_both_ways(
    model: PreTrainedModel, layers: list[int], *, summed: bool, unmasked: bool
) -> None:
    """Remove the causal mask of layers, counted from 1; `summed`: their causal run stays, and the
    one without the mask is added.

    unmasked: their padding is read too. Both the mask and the flag must change: scaled-dot-product
    attention reads the mask where a batch is padded, and the flag where none is.
    """
    model.config.bidirectional_layers = list(layers)
    model.config.unmasked_padding = unmasked
    if layers and not unmasked:
        model.register_forward_pre_hook(_remember_padding, with_kwargs=True)
    if summed:
        model.layers[-1].register_forward_pre_hook(_remember_input, with_kwargs=True)
        model.register_forward_hook(_add_both_ways)
        return
    for number in layers:
        layer = model.layers[number - 1]
        layer.self_attn.is_causal = False
        layer.register_forward_pre_hook(_no_mask if unmasked else _mask_padding, with_kwargs=True)


def _remember_padding(model: PreTrainedModel, args: tuple, kwargs: dict) -> None:
    for number in model.config.bidirectional_layers:
        model.layers[number - 1].padding = kwargs.get("attention_mask")


def _mask_padding(layer: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    mask = create_bidirectional_mask(layer.self_attn.config, args[0], layer.padding)
    return args, {**kwargs, "attention_mask": mask}


def _no_mask(layer: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    return args, {**kwargs, "attention_mask": None}


def _remember_input(layer: nn.Module, args: tuple, kwargs: dict) -> None:
    layer.last_input = args, kwargs


def _add_both_ways(model: PreTrainedModel, args: tuple, output: Any) -> Any:
    """BeLLM Eq. 5: the state of the whole causal model plus that of its last layer without mask."""
    layer = model.layers[-1]
    args, kwargs = layer.__dict__.pop("last_input")
    remove = _no_mask if model.config.unmasked_padding else _mask_padding
    args, kwargs = remove(layer, args, kwargs)
    # the flag is the causal run's, which checkpointing repeats in the backward pass; `forward`, as
    # hooks would take this for one more layer
    added = layer.forward(*args, **{**kwargs, "is_causal": False})
    output.last_hidden_state = output.last_hidden_state + model.norm(added)
    if output.hidden_states is not None:
        output.hidden_states = (*output.hidden_states[:-1], output.last_hidden_state)
    return output
