"""Load stock transformers encoders (BERT, RoBERTa) and tokenizers; silent failures are errors."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Literal

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from cselab.errors import ModelError, suggest
from cselab.models.dropout import ATTENTION, use_fast_dropout
from cselab.models.folder import CARD, open_card
from cselab.models.surgery import remove_layer_norms
from cselab.paths import check_readable

ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert")
"""Supported model types; all have `encoder.layer[i].attention.self.{query,key,value}`."""

POOLERS = ("if_present", "required", "fresh")


def load_backbone(
    name_or_path: str | Path,
    *,
    pooler: Literal["if_present", "required", "fresh"] = "if_present",
    dropout: float | None = None,
    attn_implementation: str = ATTENTION,
) -> PreTrainedModel:
    """Load a stock encoder in float32 and evaluation mode, whatever precision its file has.

    LayerNorms that `remove_layer_norms` removed before saving stay removed. The random state moves
    only if a new pooler is drawn.

    Args:
        name_or_path: A folder with config.json and weights, or a name on the hub. A folder without
            safetensors has a pytorch_model.bin, of which only tensors are read (torch.load's
            `weights_only`).
        pooler: "if_present": `model.pooler` is None when the checkpoint has none. "required" (for
            the modulus loss, which reads it): a checkpoint without one is an error. "fresh": draw
            new weights where the checkpoint has none.
        dropout: Probability for hidden states and attention; None keeps the checkpoint's.
        attn_implementation: "eager" where attentions are read; the default is faster.

    Returns:
        The model, without a head.

    Raises:
        ModelError: For a missing path, a decoder, an unsupported architecture, weights that are
            missing, damaged, not safetensors, not finite, or of another shape than the config says,
            a dropout outside [0, 1), and an unknown `pooler`.

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
    config, pickled = _load_config(name_or_path), has_only_pickles(name_or_path)
    if dropout is not None:
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
    try:
        with torch.random.fork_rng(devices=[], enabled=pooler != "fresh"), quiet_loading():
            model, info = AutoModel.from_pretrained(
                name_or_path,
                config=config,
                # from_pretrained keeps the file's dtype: an fp16 file would train in fp16
                dtype=torch.float32,
                attn_implementation=attn_implementation,
                use_safetensors=not pickled,
                output_loading_info=True,
                # if unset, a folder that contains code prompts at the keyboard
                trust_remote_code=False,
            )
    except Exception as error:  # odd values in config.json raise errors of any kind
        file = "pytorch_model.bin of tensors alone" if pickled else "model.safetensors"
        raise ModelError(
            f"the weights at {str(name_or_path)!r} do not load: expected a {file} that "
            f"fits its config.json ({first_line(error)})"
        ) from None
    remove_layer_norms(model, getattr(config, "layer_norms_removed", 0))
    # a removed LayerNorm is not missing
    missing = set(info["missing_keys"]) & model.state_dict().keys()
    if unread := sorted(key for key in info["unexpected_keys"] if "encoder.layer." in key):
        raise ModelError(
            f"{name_or_path} has weights that its config.json does not ask for ({unread[0]}, "
            f"{len(unread)} in all); correct num_hidden_layers, or get both files from one place"
        )
    no_pooler = {key for key in missing if key.startswith("pooler.")}
    if missing - no_pooler:
        raise ModelError(
            f"{name_or_path} lacks weights of its own architecture: "
            f"{', '.join(sorted(missing - no_pooler)[:3])}, …"
        )
    if no_pooler and pooler == "required":
        raise ModelError(
            f"{name_or_path} has no trained pooler, which the modulus term and pooling='pooler' "
            "read; set pooler='fresh' to draw a new one, ictm.measured_on='cls' to read the last "
            "[CLS] instead (twins), or leave the term out of `terms`"
        )
    if no_pooler and pooler == "if_present":
        model.pooler = None
    check_finite(model, name_or_path)
    use_fast_dropout(model)
    return model.eval()


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Silence transformers' load report.

    The report lists every head that is not loaded; here, missing weights are errors.
    """
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def transformer_folder(name_or_path: str | Path) -> str | Path:
    """The folder with config.json: the first module's, of a sentence-transformers model that has
    one for each module. A name on the hub, and any other folder, is itself.

    Raises:
        DataError: As `check_readable`.
        ModelError: For a folder that holds several models, of a twin or an ensemble.
    """
    check_readable(folder := Path(name_or_path))
    if not folder.is_dir() or (folder / "config.json").is_file():
        return name_or_path
    if inner := next(folder.glob("0_*/config.json"), None):  # as sentence-transformers names it
        return transformer_folder(inner.parent)
    if (folder / CARD).is_file():
        kind = open_card(folder, "save_pretrained")["kind"]
        if kind != "sentence":  # whose own model is missing
            raise ModelError(f"{folder} holds a {kind}; give the folder of a single model inside")
    return name_or_path


def has_only_pickles(name_or_path: str | Path) -> bool:
    """Whether a folder has a pytorch_model.bin and no safetensors."""
    folder = Path(name_or_path)
    return any(folder.glob("pytorch_model*.bin")) and not any(folder.glob("*.safetensors"))


def _load_config(name_or_path: str | Path):
    config = read_config(
        name_or_path,
        f"no backbone at {str(name_or_path)!r}: expected a folder with config.json and "
        "model.safetensors, or a hub name",
    )
    if not _is_encoder_config(config):
        raise ModelError(
            f"{name_or_path} is a {config.model_type!r} "
            f"{'decoder' if getattr(config, 'is_decoder', False) else 'model'}; expected an "
            f"encoder of type {', '.join(ENCODERS)} (for Llama-like decoders: load_decoder)"
        )
    return config


def read_config(name_or_path: str | Path, problem: str, advice: str = "") -> PreTrainedConfig:
    """The configuration of a model.

    Args:
        name_or_path: As in `load_backbone`.
        problem: What the message says of one that cannot be read, before the reason.
        advice: What it says after the reason.

    Raises:
        ModelError: For one that cannot be read, or has null or another odd value.
    """
    try:
        return AutoConfig.from_pretrained(name_or_path, trust_remote_code=False)
    except Exception as error:  # odd values raise errors of any kind
        raise ModelError(f"{problem} ({first_line(error)}){advice}") from None


def first_line(error: Exception) -> str:
    """First line of a library's error message, without its final full stop.

    Of a configuration's, the last: the first only names a field.
    """
    lines = (str(error).strip() or type(error).__name__).splitlines()
    first = lines[-1 if lines[0].startswith("Validation error") else 0].strip()
    if isinstance(error, UnpicklingError):  # whose advice is to run code that a file brings
        return "it is damaged, or has more than tensors"
    if "ignore_mismatched_sizes" in first:  # the shapes are in a report that `quiet_loading` hides
        return "tensors of other shapes than config.json says"
    return first.rstrip(" .:")


def check_finite(model: PreTrainedModel, name_or_path: str | Path) -> None:
    """Raise ModelError for NaN or infinite weights: training would start from them silently."""
    bad = [name for name, values in model.named_parameters() if not math.isfinite(_sum(values))]
    if bad:
        raise ModelError(
            f"the weights at {str(name_or_path)!r} are not finite ({bad[0]}, {len(bad)} tensors in "
            "all); get the file again"
        )


def _sum(values: torch.Tensor) -> float:
    """The sum of a tensor, on one thread if possible.

    Hundreds of small sums on a busy machine would wait for each other's threads.
    """
    values = values.detach()
    if values.dtype == torch.float32 and values.is_cpu:
        return float(values.numpy().sum())
    return values.float().sum().item()


def _is_encoder_config(config) -> bool:
    return config.model_type in ENCODERS and not getattr(config, "is_decoder", False)


def is_encoder(folder: str | Path) -> bool:
    """Whether `load_backbone` can load a saved folder.

    Raises:
        ModelError: If it has no config.
    """
    inner, advice = transformer_folder(folder), "; expected a folder that save_pretrained wrote"
    return _is_encoder_config(read_config(inner, f"no model in {folder}", advice))


def load_tokenizer(name_or_path: str | Path) -> PreTrainedTokenizerBase:
    """Load the backbone's tokenizer, which then pads on the right.

    Args:
        name_or_path: A folder with tokenizer.json, or a name on the hub.

    Raises:
        ModelError: If there is none, or if it maps plain words to the unknown token.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import load_tokenizer
        >>> load_tokenizer(model_folder("tiny-bert")).tokenize("A man plays an accordion.")
        ['a', 'man', 'plays', 'an', 'accord', '##ion', '.']
    """
    name_or_path = transformer_folder(name_or_path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, trust_remote_code=False)
    except Exception as error:  # the tokenizers library raises nothing narrower
        raise ModelError(
            f"no tokenizer at {str(name_or_path)!r}: expected a tokenizer.json beside config.json "
            f"({first_line(error)})"
        ) from None
    try:
        words = tokenizer("the of and in a", add_special_tokens=False)["input_ids"]
    except Exception as error:  # the tokenizers library raises nothing narrower
        raise ModelError(
            f"the tokenizer at {str(name_or_path)!r} cannot read plain English "
            f"({first_line(error)}); save it again as tokenizer.json"
        ) from None
    if all(token == tokenizer.unk_token_id for token in words):
        raise ModelError(
            f"the tokenizer at {str(name_or_path)!r} maps every common English word to "
            f"{tokenizer.unk_token}: its vocabulary was not loaded; save it again as tokenizer.json"
        )
    tokenizer.padding_side = "right"  # [CLS] comes first, at position 0; training pads so too
    return tokenizer


def has_tokenizer(folder: str | Path) -> bool:
    """Whether a folder of a model has a tokenizer beside it, of today's files or of older ones."""
    inner = Path(transformer_folder(folder))
    return any(any(inner.glob(files)) for files in ("tokenizer*", "vocab.*", "*.model"))


def longest_input(model: PreTrainedModel) -> int:
    """Largest number of tokens in a sentence, special tokens included.

    Fewer than the position embeddings for the RoBERTa family, whose positions start after the
    padding index.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import load_backbone, longest_input
        >>> longest_input(load_backbone(model_folder("tiny-bert")))
        128
    """
    config = model.config
    from_padding_id = config.model_type in ("roberta", "xlm-roberta", "camembert")
    offset = config.pad_token_id + 1 if from_padding_id else 0
    return config.max_position_embeddings - offset


def longest_text(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Tokens of a sentence that are read unless a max_length is given: as many as the backbone
    reads, or as its tokenizer keeps (`model_max_length`), if that is fewer.

    Examples:
        >>> import cselab
        >>> from cselab.models.backbone import longest_text
        >>> encoder = cselab.load("tiny-bert")
        >>> encoder.tokenizer.model_max_length = 16
        >>> longest_text(encoder.backbone, encoder.tokenizer)
        16
    """
    return min(longest_input(model), tokenizer.model_max_length or longest_input(model))


def check_length(model: PreTrainedModel, length: int) -> None:
    """Raise ModelError for a token batch that is wider than the backbone has positions."""
    if length > (longest := longest_input(model)):
        raise ModelError(
            f"the batch is {length} tokens wide, the backbone reads at most {longest}; truncate it"
        )


def check_tokenizer(tokenizer: PreTrainedTokenizerBase | None, model: PreTrainedModel) -> None:
    """Raise ModelError if tokenizer and backbone do not belong together.

    That is, if the tokenizer has more ids than the backbone has embeddings, or another padding id.
    """
    if tokenizer is None:
        return
    if tokenizer.pad_token_id is None:
        raise ModelError(
            "the tokenizer has no padding token, and none of the end of a text to pad with; set "
            "its pad_token, in tokenizer_config.json too"
        )
    tokens, rows = len(tokenizer), model.config.vocab_size
    if tokens > rows:
        raise ModelError(
            f"the tokenizer has {tokens} tokens, the backbone {rows} embeddings; load both together"
        )
    pads, expected = tokenizer.pad_token_id, model.config.pad_token_id
    if pads != expected:  # RoBERTa numbers its positions by this id
        raise ModelError(
            f"the tokenizer pads with id {pads}, the backbone with {expected}; load both together"
        )
