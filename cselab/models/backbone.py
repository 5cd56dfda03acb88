"""Load stock transformers encoders (BERT, RoBERTa, ModernBERT …); silent failures are errors."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal

import torch
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils import logging

from cselab.errors import ModelError, suggest
from cselab.models.dropout import ATTENTION, use_fast_dropout
from cselab.models.folder import CARD, read_card
from cselab.models.layers import BERT_LIKE, is_bert_like
from cselab.models.surgery import remove_layer_norms
from cselab.paths import check_readable

NOT_TEXT = {"perceiver", "tapas", "layoutlm", "modernvbert", "ultravbert", "esm"}
"""Model types with a masked-LM head whose input is more, or other, than sentences."""
DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"),
    *("embedding_dropout", "mlp_dropout"),
)
"""Names of probabilities in the families' configurations; those of heads are not here."""

LAYER = re.compile(r"^(?!cls|lm_head|discriminator|c_head).*\blayers?\.\d+\.")
"""Name of a weight inside an encoder's layer, not in a head's."""
UNLIMITED = 1_000_000
"""Tokens of a family without a table of positions."""
POOLERS = ("if_present", "required", "fresh")


def load_backbone(
    name_or_path: str | Path,
    *,
    pooler: Literal["if_present", "required", "fresh"] = "if_present",
    dropout: float | None = None,
    attn_implementation: str = ATTENTION,
) -> PreTrainedModel:
    """Load a stock encoder without a head, in float32 and evaluation mode.

    Any encoder of transformers with a masked-LM head: BERT, RoBERTa, ModernBERT, MPNet, DistilBERT,
    ELECTRA, DeBERTa and others, without code of their own. LayerNorms that `remove_layer_norms`
    removed before saving stay removed. The random state moves only if a new pooler is drawn.

    Args:
        name_or_path: A folder with config.json and weights, or a name on the hub. A folder without
            safetensors has a pytorch_model.bin, of which only tensors are read (torch.load's
            `weights_only`).
        pooler: "if_present": `model.pooler` is None when the checkpoint has none. "required" (for
            the modulus loss, which reads it): a checkpoint without one is an error. "fresh": draw
            new weights where the checkpoint has none.
        dropout: Probability for hidden states and attention; None keeps the checkpoint's.
        attn_implementation: "eager" where attentions are read; the default is faster.

    Raises:
        ModelError: For a missing path, an unsupported architecture, weights that are missing,
            damaged or do not fit the config, and options out of range.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import load_backbone
        >>> model = load_backbone(model_folder("tiny-bert"), dropout=0.2)
        >>> config = model.config
        >>> config.num_hidden_layers, config.hidden_size, config.hidden_dropout_prob
        (6, 192, 0.2)
    """
    if pooler not in POOLERS:  # a typo would otherwise keep a random pooler
        raise ModelError(f"unknown pooler {pooler!r}; {suggest(pooler, POOLERS)}")
    if dropout is not None and not 0 <= dropout < 1:
        raise ModelError(f"dropout={dropout} is no probability below 1; BERT's is 0.1")
    name_or_path = transformer_folder(name_or_path)
    config = read_config(
        name_or_path,
        f"no backbone at {str(name_or_path)!r}: expected a folder with config.json and "
        "model.safetensors, or a hub name",
    )
    if not is_encoder_config(config):
        raise ModelError(
            f"{name_or_path} is a {config.model_type!r} "
            f"{'decoder' if getattr(config, 'is_decoder', False) else 'model'}; expected an "
            f"encoder of text, such as {', '.join(BERT_LIKE)} (for decoders: load_decoder)"
        )
    if dropout is not None:
        for name in DROPOUTS:
            if hasattr(config, name):
                setattr(config, name, dropout)
    how = {"attn_implementation": attn_implementation}
    if not is_bert_like(config) and attn_implementation == ATTENTION:
        how = {}  # the family's own
    pickled = has_only_pickles(name_or_path)
    file = "pytorch_model.bin of tensors alone" if pickled else "model.safetensors"
    with torch.random.fork_rng(devices=[], enabled=pooler != "fresh"):
        model, info = load_weights(
            name_or_path,
            config,
            f"the weights at {str(name_or_path)!r} do not load: expected a {file} that fits its "
            "config.json",
            # from_pretrained keeps the file's dtype: an fp16 file would train in fp16
            dtype=torch.float32,
            **how,
        )
    if removed := getattr(config, "layer_norms_removed", 0):
        remove_layer_norms(model, removed)
    # a removed LayerNorm is not missing
    missing = set(info["missing_keys"]) & model.state_dict().keys()
    if unread := sorted(filter(LAYER.search, info["unexpected_keys"])):
        raise ModelError(
            f"{name_or_path} has weights that its config.json does not ask for ({unread[0]}, "
            f"{len(unread)} in all); correct num_hidden_layers, or get both files from one place"
        )
    no_pooler = {key for key in missing if key.startswith("pooler.")}
    if not hasattr(model, "pooler"):  # DistilBERT, ELECTRA, ModernBERT, …
        model.pooler = None
        if pooler != "if_present":
            raise ModelError(
                f"{config.model_type!r} models have no pooler, which the modulus term and "
                "pooling='pooler' read; use a BERT or RoBERTa, or ictm.measured_on='cls' (twins)"
            )
    if no_pooler and pooler == "if_present":
        model.pooler = None
    check_weights(model, missing - no_pooler, name_or_path)
    if no_pooler and pooler == "required":
        raise ModelError(
            f"{name_or_path} has no trained pooler, which the modulus term and pooling='pooler' "
            "read; set pooler='fresh' to draw a new one, ictm.measured_on='cls' to read the last "
            "[CLS] instead (twins), or leave the term out of `terms`"
        )
    use_fast_dropout(model)
    return model.eval()


def load_weights(
    name_or_path: str | Path, config: PreTrainedConfig, problem: str, **options: Any
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """A stock model without its head, and transformers' report of missing and unread weights.

    Raises ModelError, `problem (reason)`, for weights that do not load.
    """
    try:
        with quiet_loading():
            return AutoModel.from_pretrained(
                name_or_path,
                config=config,
                use_safetensors=not has_only_pickles(name_or_path),
                output_loading_info=True,
                # if unset, a folder that contains code prompts at the keyboard
                trust_remote_code=False,
                **options,
            )
    except Exception as error:  # odd values in config.json raise errors of any kind
        raise ModelError(f"{problem} ({first_line(error)})") from None


def check_weights(model: PreTrainedModel, missing: set[str], name_or_path: str | Path) -> None:
    """Raise ModelError for missing, NaN or infinite weights: training would start from them."""
    if missing:
        raise ModelError(
            f"{name_or_path} lacks weights of its own architecture: "
            f"{', '.join(sorted(missing)[:3])}, …"
        )
    bad = [name for name, values in model.named_parameters() if not math.isfinite(_sum(values))]
    if bad:
        raise ModelError(
            f"the weights at {str(name_or_path)!r} are not finite ({bad[0]}, {len(bad)} tensors in "
            "all); get the file again"
        )


def _sum(values: torch.Tensor) -> float:
    """Sum of a tensor; on a CPU on one thread, or hundreds of small sums wait for each other's."""
    values = values.detach()
    if values.dtype == torch.float32 and values.is_cpu:
        return float(values.numpy().sum())
    return values.float().sum().item()


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Silence transformers' report of heads that are not loaded: missing weights are errors."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def transformer_folder(name_or_path: str | Path) -> str | Path:
    """The folder with config.json: the first module's, of a sentence-transformers model that has
    one for each module. A name on the hub, and any other folder, is itself.

    Raises DataError as `check_readable`, ModelError for a folder of a twin or an ensemble.
    """
    check_readable(folder := Path(name_or_path))
    if not folder.is_dir() or (folder / "config.json").is_file():
        return name_or_path
    if inner := next(folder.glob("0_*/config.json"), None):  # as sentence-transformers names it
        return transformer_folder(inner.parent)
    # the card of a single encoder may stand alone: its own model is missing
    if (folder / CARD).is_file() and (kind := read_card(folder)["kind"]) != "sentence":
        raise ModelError(f"{folder} holds a {kind}; give the folder of a single model inside")
    return name_or_path


def has_only_pickles(name_or_path: str | Path) -> bool:
    """Whether a folder has a pytorch_model.bin and no safetensors."""
    folder = Path(name_or_path)
    return any(folder.glob("pytorch_model*.bin")) and not any(folder.glob("*.safetensors"))


def read_config(name_or_path: str | Path, problem: str, advice: str = "") -> PreTrainedConfig:
    """The configuration of a model. Raises ModelError, `problem (reason)advice`, if there is none,
    or one with null or another odd value."""
    try:
        return AutoConfig.from_pretrained(name_or_path, trust_remote_code=False)
    except Exception as error:  # odd values raise errors of any kind
        raise ModelError(f"{problem} ({first_line(error)}){advice}") from None


def first_line(error: Exception) -> str:
    """First line of a library's error message, without its final full stop."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    # a configuration's error names only a field in its first line
    first = lines[-1 if lines[0].startswith("Validation error") else 0].strip()
    if isinstance(error, UnpicklingError):  # whose advice is to run code that a file brings
        return "it is damaged, or has more than tensors"
    if "ignore_mismatched_sizes" in first:  # the shapes are in a report that `quiet_loading` hides
        return "tensors of other shapes than config.json says"
    return first.rstrip(" .:")


def is_encoder_config(config: PreTrainedConfig) -> bool:
    """Whether `load_backbone` can load a model of this configuration."""
    is_text = config.model_type in {*BERT_LIKE, *MODEL_FOR_MASKED_LM_MAPPING_NAMES} - NOT_TEXT
    other = getattr(config, "is_decoder", False) or getattr(config, "is_encoder_decoder", False)
    return is_text and not other


def is_encoder(folder: str | Path) -> bool:
    """Whether `load_backbone` can load a saved folder. Raises ModelError if it has no config."""
    inner, advice = transformer_folder(folder), "; expected a folder that save_pretrained wrote"
    return is_encoder_config(read_config(inner, f"no model in {folder}", advice))


def longest_input(model: PreTrainedModel) -> int:
    """Largest number of tokens in a sentence, special tokens included."""
    longest = getattr(model.config, "max_position_embeddings", None) or UNLIMITED
    for name, module in model.named_modules():
        # positions of RoBERTa, MPNet and others start after the padding index
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            return longest - padding - 1
    return longest


def check_length(model: PreTrainedModel, length: int) -> None:
    """Raise ModelError for a token batch that is wider than the backbone has positions."""
    if length > (longest := longest_input(model)):
        raise ModelError(
            f"the batch is {length} tokens wide, the backbone reads at most {longest}; truncate it"
        )
