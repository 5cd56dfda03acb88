"""LoRA adapters of a decoder (peft): added, merged, saved without the weights that they adapt."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel

from cselab.errors import ModelError, suggest
from cselab.fingerprints import weights_hash
from cselab.models.backbone import first_line
from cselab.paths import shipped

ADAPTERS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""peft's files."""
PRECISIONS = ("float32", "bfloat16", "4-bit")
PEFT_PREFIX = "base_model.model."
"""What peft puts before the name of every weight."""


def add_lora(model: PreTrainedModel, *, rank: int, alpha: float, dropout: float) -> None:
    """Add low-rank adapters (peft) to every linear layer, in place; nothing else is trained.

    LoRA, https://arxiv.org/abs/2106.09685: an adapter's output is scaled by alpha / rank, its input
    has the dropout. BeLLM section 4 (https://arxiv.org/abs/2311.05296) has rank 32, alpha 32,
    dropout 0.1.
    """
    from peft import LoraConfig  # slow to import

    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules="all-linear",
        bias="none",
        task_type="FEATURE_EXTRACTION",
    )
    _inject(model, config)


def _inject(model: PreTrainedModel, config: Any) -> None:
    from peft import inject_adapter_in_model

    inject_adapter_in_model(config, model)
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            parameter.data = parameter.data.float()  # peft takes the frozen weights' precision


def merge_lora(model: PreTrainedModel) -> None:
    """Merge adapters into the weights they belong to, in place; does nothing without adapters."""
    for name, module in _adapted(model).items():
        module.merge()
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, module.get_base_layer())
    vars(model).pop("peft_config", None)


def has_lora(model: PreTrainedModel) -> bool:
    """Whether a model has adapters that are not merged."""
    return bool(_adapted(model))


def _adapted(model: PreTrainedModel) -> dict[str, Any]:
    return {name: module for name, module in model.named_modules() if hasattr(module, "lora_A")}


def save_adapters(model: PreTrainedModel, folder: Path) -> dict[str, Any]:
    """Write a model's adapters into a folder in peft's format.

    The name on the hub, or the path, of the model that they adapt is in adapter_config.json;
    returns the fingerprint of its files, and the options of `load_decoder` that it was loaded with.

    Raises:
        ModelError: For a model that was not loaded from a folder or the hub.
    """
    base = _base_folder(model.config.name_or_path)
    config = model.peft_config["default"].to_dict()
    # a set's order differs between processes
    config["target_modules"] = sorted(config["target_modules"])
    config["base_model_name_or_path"], config["revision"] = _base_name(base)
    config["inference_mode"] = True
    (folder / ADAPTERS).write_text(json.dumps(config, indent=2, sort_keys=True))
    tensors = {
        PEFT_PREFIX + name.replace(".default.", "."): value.detach().cpu().contiguous()
        for name, value in model.state_dict().items()
        if ".lora_" in name
    }
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    unmasked = getattr(model.config, "unmasked_padding", False)
    return {
        "fingerprint": weights_hash(base),
        "bidirectional": getattr(model.config, "bidirectional", None),
        "padding": "unmasked" if unmasked else "masked",
        "dtype": str(model.dtype).removeprefix("torch."),
        "four_bit": getattr(model, "is_quantized", False),
    }


def adapted_model(folder: Path, fingerprint: str, base: str | Path | None = None) -> Path:
    """Folder of the model that saved adapters belong to: `base`, or where they were trained.

    Raises:
        ModelError: If it is missing, or is another than `fingerprint` says.
    """
    config = _read_config(folder)
    name, revision = config.get("base_model_name_or_path") or "", config.get("revision")
    base = Path(base) if base else _base_folder(name, revision, owner=f"the adapters in {folder}")
    if (found := weights_hash(base)) != fingerprint:
        raise ModelError(
            f"the adapters in {folder} belong to another {name} (fingerprint {fingerprint}, here "
            f"{found}); bring back the model that they were trained on, or train again"
        )
    return base


def load_adapters(model: PreTrainedModel, folder: Path) -> None:
    """Add the adapters of a folder, frozen, in place; draws no random number.

    Raises:
        ModelError: For damaged files, and adapters of a model with other layers.
    """
    from peft import LoraConfig

    try:
        with torch.random.fork_rng(devices=[]):
            _inject(model, LoraConfig.from_peft_type(**_read_config(folder)))
        tensors = {
            name.removeprefix(PEFT_PREFIX).replace(".weight", ".default.weight"): value
            for name, value in load_file(folder / WEIGHTS).items()
        }
        missing, unread = model.load_state_dict(tensors, strict=False)
    except (OSError, SafetensorError, RuntimeError, ValueError, TypeError) as error:
        raise ModelError(
            f"the adapters in {folder} do not load ({first_line(error)}); train again, or copy the "
            "folder again"
        ) from None
    if lacking := [name for name in (*missing, *unread) if ".lora_" in name]:
        raise ModelError(
            f"the adapters in {folder} are of a model with other layers ({lacking[0]}); give the "
            "model that they were trained on"
        )


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / ADAPTERS).read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"{folder / ADAPTERS} is damaged ({first_line(error)}); save the encoder again"
        ) from None


def _base_name(folder: Path) -> tuple[str, str | None]:
    """The name of a folder elsewhere too, that of a shipped model or on the hub, and its revision;
    else its path."""
    cache = folder.parent.parent.name
    if folder.parent.name == "snapshots" and cache.startswith("models--"):
        return cache.removeprefix("models--").replace("--", "/"), folder.name
    ships = folder.parent == shipped("data") / "backbones"
    return (folder.name if ships else str(folder.absolute())), None


def _base_folder(name: str, revision: str | None = None, *, owner: str = "these adapters") -> Path:
    """The folder of `_base_name`; of a name on the hub, in its cache."""
    from huggingface_hub import snapshot_download

    for folder in (shipped("data") / "backbones" / name, Path(name)):
        if name and folder.is_dir():
            return folder
    try:
        return Path(snapshot_download(name, revision=revision, local_files_only=True))
    except Exception:  # names that are none, and files that are not there, raise several kinds
        raise ModelError(
            f"{owner} need the model {name or 'that they adapt'!r}, which is neither a folder nor "
            "in the hub's cache; bring it back, or save with merged=True where it is loaded"
        ) from None


def decoder_memory(
    config: PreTrainedConfig, *, rank: int = 32, weights: str = "bfloat16"
) -> dict[str, int]:
    """Bytes that training a decoder takes, from its shapes alone; activations are left out, which
    grow with batch and length (`gradient_checkpointing` keeps one state per layer of them).

    `weights` of the model; float32 `adapters`; their `gradients`; AdamW's two moments of each
    (`optimiser`); and a `checkpoint` on disk: what is trained, its moments, and the best so far. A
    rank of 0 trains all weights.

    Args:
        weights: "float32", "bfloat16", or "4-bit": linear layers in 4 bits with doubly quantised
            scales (QLoRA, https://arxiv.org/abs/2305.14314), embeddings and norms in bfloat16.

    Examples:
        >>> from transformers import LlamaConfig
        >>> from cselab.models.adapters import decoder_memory
        >>> llama_2_7b = LlamaConfig()  # its defaults are this model's
        >>> {name: f"{size / 1e9:.2f} GB" for name, size in decoder_memory(llama_2_7b).items()}
        ... # doctest: +NORMALIZE_WHITESPACE
        {'weights': '13.21 GB', 'adapters': '0.32 GB', 'gradients': '0.32 GB',
         'optimiser': '0.64 GB', 'checkpoint': '1.28 GB'}
    """
    if weights not in PRECISIONS:
        raise ModelError(f"unknown weights {weights!r}; {suggest(weights, PRECISIONS)}")
    with torch.device("meta"):
        model = AutoModel.from_config(config)
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    in_linear = sum(module.weight.numel() for module in linear)
    everything = sum(parameter.numel() for parameter in model.parameters())
    adapters = rank * sum(module.in_features + module.out_features for module in linear)
    trained = 4 * (adapters if rank else everything)
    size = 4 * everything if weights == "float32" else 2 * everything
    if weights == "4-bit":  # a byte of scale for 64 weights, four for 256 scales
        size += in_linear // 2 + in_linear // 64 + in_linear // 4096 - 2 * in_linear
    return {
        "weights": size,
        "adapters": 4 * adapters,
        "gradients": trained,
        "optimiser": 2 * trained,
        "checkpoint": 4 * trained,
    }
