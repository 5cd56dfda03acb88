"""Llama-like decoders as sentence encoders: bidirectional layers and LoRA (BeLLM)."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.masking_utils import create_bidirectional_mask

from cselab.errors import ModelError, suggest
from cselab.models.backbone import check_weights, load_weights, read_config, transformer_folder
from cselab.models.tokenizer import load_tokenizer

BIDIRECTIONAL = ("none", "last", "all", "addition")
PADDING = ("masked", "unmasked")


def load_decoder(
    name_or_path: str | Path,
    *,
    bidirectional: str | None = None,
    padding: str = "masked",
    dropout: float | None = None,
    dtype: torch.dtype = torch.float32,
    attn_implementation: str = "sdpa",
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a decoder without its language-model head, in evaluation mode, and its tokenizer.

    Any stock model whose layers have causal `self_attn`: Llama, Mistral, Qwen2, Qwen3, Gemma. A
    tokenizer without a padding token pads with its end token, as is usual for LLaMA.

    Args:
        name_or_path: As in `load_backbone`.
        bidirectional: Layers that attend to later tokens too, recorded in the config (BeLLM,
            section 3.2 and Table 4, https://arxiv.org/abs/2311.05296): "last" (BeLLM's), "none",
            "all", or "addition", a copy of the last layer on top. None keeps those that the folder
            was saved with, and what they do with padding.
        padding: "masked" in these layers, as in all others; or "unmasked", as in the authors' billm
            0.1.3, which replaces the whole mask by zeros: a sentence's states then depend on how
            many padding tokens its batch gives it.
        dropout: Dropout of the attention; Llama has no other. None keeps the checkpoint's.
        dtype: Precision of the weights; bfloat16 for large models that only LoRA trains.
        attn_implementation: "eager" where attentions are read; the default is faster.

    Raises:
        ModelError: For a missing path, an encoder, incomplete weights, and layers that attend both
            ways already.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import SentenceEncoder, load_decoder
        >>> model, tokenizer = load_decoder(model_folder("tiny-llama"), bidirectional="last")
        >>> encoder = SentenceEncoder(model, tokenizer, pooling="last_token", prompt="summarize")
        >>> encoder.encode(["A dog sleeps."]).shape
        torch.Size([1, 192])
    """
    name_or_path = transformer_folder(name_or_path)
    problem = (
        f"no decoder at {str(name_or_path)!r}: expected a folder with config.json and a "
        "model.safetensors that fits it, or a hub name"
    )
    config = read_config(name_or_path, problem)
    if dropout is not None or getattr(config, "attention_dropout", 0.0) is None:  # null is none
        config.attention_dropout = dropout or 0.0
    bidirectional_layers = getattr(config, "bidirectional_layers", [])
    unmasked = getattr(config, "unmasked_padding", False)
    model, info = load_weights(
        name_or_path, config, problem, dtype=dtype, attn_implementation=attn_implementation
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
    if bidirectional_layers:
        _attend_both_ways(model, bidirectional_layers, unmasked=unmasked)
    if bidirectional is not None:
        _open_layers(model, bidirectional, padding)
    return model.eval(), tokenizer


def _open_layers(model: PreTrainedModel, how: str, padding: str) -> None:
    """Let layers attend to later tokens, in place; Mistral's sliding window goes with the mask."""
    if how not in BIDIRECTIONAL:
        raise ModelError(f"unknown way {how!r} to be bidirectional; {suggest(how, BIDIRECTIONAL)}")
    if padding not in PADDING:
        raise ModelError(f"padding cannot be {padding!r}; {suggest(padding, PADDING)}")
    if opened := getattr(model.config, "bidirectional_layers", []):
        raise ModelError(f"layers {opened} attend both ways already; load the model before that")
    if how == "addition":
        model.layers.append(copy.deepcopy(model.layers[-1]))
        model.layers[-1].self_attn.layer_idx = len(model.layers) - 1
        model.config.num_hidden_layers = len(model.layers)
        if getattr(model.config, "layer_types", None):
            model.config.layer_types = [*model.config.layer_types, model.config.layer_types[-1]]
    depth = len(model.layers)
    layers = {"none": [], "all": list(range(1, depth + 1))}.get(how, [depth])
    _attend_both_ways(model, layers, unmasked=padding == "unmasked")


def _attend_both_ways(model: PreTrainedModel, layers: list[int], *, unmasked: bool) -> None:
    """Remove the causal mask of layers, counted from 1.

    unmasked: their padding is read too. Both the mask and the flag must change: scaled-dot-product
    attention reads the mask where a batch is padded, and the flag where none is.
    """
    model.config.bidirectional_layers = list(layers)
    model.config.unmasked_padding = unmasked
    for number in layers:
        layer = model.layers[number - 1]
        layer.self_attn.is_causal = False
        layer.register_forward_pre_hook(_no_mask if unmasked else _mask_padding, with_kwargs=True)
    if layers and not unmasked:
        model.register_forward_pre_hook(_remember_padding, with_kwargs=True)


def _remember_padding(model: PreTrainedModel, args: tuple, kwargs: dict) -> None:
    for number in model.config.bidirectional_layers:
        model.layers[number - 1].padding = kwargs.get("attention_mask")


def _mask_padding(layer: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    mask = create_bidirectional_mask(layer.self_attn.config, args[0], layer.padding)
    return args, {**kwargs, "attention_mask": mask}


def _no_mask(layer: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    return args, {**kwargs, "attention_mask": None}


def add_lora(model: PreTrainedModel, *, rank: int, alpha: float, dropout: float) -> None:
    """Add low-rank adapters (peft) to every linear layer, in place; nothing else is trained.

    LoRA, https://arxiv.org/abs/2106.09685: an adapter's output is scaled by alpha / rank, its input
    has the dropout. BeLLM section 4 (https://arxiv.org/abs/2311.05296) has rank 32, alpha 32,
    dropout 0.1.
    """
    from peft import LoraConfig, inject_adapter_in_model  # slow to import

    config = LoraConfig(
        r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules="all-linear", bias="none"
    )
    inject_adapter_in_model(config, model)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()  # peft takes the frozen weights' precision


def merge_lora(model: PreTrainedModel) -> None:
    """Merge adapters into the weights they belong to, in place; does nothing without adapters."""
    adapted = [name for name, module in model.named_modules() if hasattr(module, "lora_A")]
    for name in adapted:
        module = model.get_submodule(name)
        module.merge()
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, module.get_base_layer())
