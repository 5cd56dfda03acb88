"""Loading stock transformers encoders (BERT, RoBERTa) and their tokenizers, with the silent failures made loud."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from cselab.errors import ModelError, suggest
from cselab.models.dropout import ATTENTION, use_fast_dropout
from cselab.models.surgery import remove_layer_norms

ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert")
"""Model types whose layers the twin can call: `embeddings`, `encoder.layer[i].attention.self.{query,key,value}`."""

POOLERS = ("if_present", "required", "fresh")


def load_backbone(
    name_or_path: str | Path,
    *,
    pooler: Literal["if_present", "required", "fresh"] = "if_present",
    dropout: float | None = None,
    attn_implementation: str = ATTENTION,
) -> PreTrainedModel:
    """A stock encoder in float32 and evaluation mode, whatever precision the file has.

    pooler: "if_present" gives `model.pooler = None` when the checkpoint has none. "required" is for whoever reads it (the
        modulus loss): a checkpoint without one is an error. "fresh" asks for a newly initialised one by name.
    dropout: probability for hidden states and attention; None keeps the checkpoint's.
    attn_implementation: "eager" where attentions are read, "sdpa" everywhere else.

    LayerNorms that `remove_layer_norms` took out stay out. The random state moves only if a fresh pooler is drawn.

    Raises ModelError for a missing path, a decoder, an unsupported architecture, weights that are missing, damaged, no
    safetensors, not finite, or of another shape than the config says, a dropout outside [0, 1) and an unknown `pooler`.
    """
    if pooler not in POOLERS:  # a typo would otherwise keep a random pooler
        raise ModelError(f"unknown pooler {pooler!r}; {suggest(pooler, POOLERS)}")
    if dropout is not None and not 0 <= dropout < 1:
        raise ModelError(f"dropout={dropout} is no probability below 1; BERT's is 0.1")
    config = _config(name_or_path)
    if dropout is not None:
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
    try:
        with torch.random.fork_rng(devices=[], enabled=pooler != "fresh"), quiet():
            model, info = AutoModel.from_pretrained(
                name_or_path,
                config=config,
                dtype=torch.float32,  # from_pretrained keeps the file's dtype: an fp16 file would train in fp16
                attn_implementation=attn_implementation,
                use_safetensors=True,
                output_loading_info=True,
                trust_remote_code=False,  # unset, a folder with code of its own asks at the keyboard
            )
    except (OSError, RuntimeError, ValueError, SafetensorError) as error:
        raise ModelError(
            f"the weights at {str(name_or_path)!r} do not load: expected a model.safetensors that fits its config.json "
            f"({reason(error)})"
        ) from None
    remove_layer_norms(model, getattr(config, "layer_norms_removed", 0))
    missing = set(info["missing_keys"]) & model.state_dict().keys()  # a LayerNorm that is out cannot be missing
    if unread := sorted(key for key in info["unexpected_keys"] if "encoder.layer." in key):
        raise ModelError(
            f"{name_or_path} has weights that its config.json does not ask for ({unread[0]}, {len(unread)} in all); "
            "correct num_hidden_layers, or get both files from one place"
        )
    no_pooler = {key for key in missing if key.startswith("pooler.")}
    if missing - no_pooler:
        raise ModelError(
            f"{name_or_path} lacks weights of its own architecture: {', '.join(sorted(missing - no_pooler)[:3])}, …"
        )
    if no_pooler and pooler == "required":
        raise ModelError(
            f"{name_or_path} has no trained pooler, which the modulus term and pooling='pooler' "
            "read; set pooler='fresh' to draw a new one, "
            "modulus_on='cls' to read the last [CLS] instead (twins), or leave the term out of `terms`"
        )
    if no_pooler and pooler == "if_present":
        model.pooler = None
    check_finite(model, name_or_path)
    use_fast_dropout(model)
    return model.eval()


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' report of every head it did not load: what matters of it is an error here."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _config(name_or_path: str | Path):
    try:
        config = AutoConfig.from_pretrained(name_or_path, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"no backbone at {str(name_or_path)!r}: expected a folder with config.json and model.safetensors, or a hub name "
            f"({reason(error)})"
        ) from None
    if not _encodes(config):
        raise ModelError(
            f"{name_or_path} is a {config.model_type!r} {'decoder' if getattr(config, 'is_decoder', False) else 'model'}; "
            f"expected an encoder of type {', '.join(ENCODERS)} (for Llama-like decoders: load_decoder)"
        )
    return config


def reason(error: Exception) -> str:
    """The first line of a library's error, without its end mark."""
    first = str(error).strip().splitlines()[0]
    if "ignore_mismatched_sizes" in first:  # the shapes are in a report that `quiet` hides
        return "tensors of other shapes than config.json says"
    return first.rstrip(" .:")


def check_finite(model: PreTrainedModel, name_or_path: str | Path) -> None:
    """Raises ModelError for weights that are not numbers: a training would start from them without a word."""
    bad = [name for name, values in model.named_parameters() if not math.isfinite(_total(values))]
    if bad:
        raise ModelError(
            f"the weights at {str(name_or_path)!r} are not finite ({bad[0]}, {len(bad)} tensors in all); get the file again"
        )


def _total(values: torch.Tensor) -> float:
    """Their sum, on one thread: hundreds of small sums on a busy machine would wait for each other's threads."""
    values = values.detach()
    return (
        float(values.numpy().sum()) if values.dtype == torch.float32 and values.is_cpu else values.float().sum().item()
    )


def _encodes(config) -> bool:
    return config.model_type in ENCODERS and not getattr(config, "is_decoder", False)


def is_encoder(folder: str | Path) -> bool:
    """Whether `load_backbone` opens what a saved folder holds. Raises ModelError for no config."""
    try:
        return _encodes(AutoConfig.from_pretrained(folder, trust_remote_code=False))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"no model in {folder} ({reason(error)}); expected a folder that save_pretrained wrote"
        ) from None


def load_tokenizer(name_or_path: str | Path) -> PreTrainedTokenizerBase:
    """The backbone's tokenizer. Raises ModelError if there is none, or if it maps plain words to the unknown token."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"no tokenizer at {str(name_or_path)!r}: expected a tokenizer.json beside config.json ({reason(error)})"
        ) from None
    try:
        words = tokenizer("the of and in a", add_special_tokens=False)["input_ids"]
    except Exception as error:  # the tokenizers library raises nothing narrower
        raise ModelError(
            f"the tokenizer at {str(name_or_path)!r} cannot read plain English ({reason(error)}); save it again as tokenizer.json"
        ) from None
    if all(token == tokenizer.unk_token_id for token in words):
        raise ModelError(
            f"the tokenizer at {str(name_or_path)!r} maps every common English word to {tokenizer.unk_token}: its vocabulary "
            "was not loaded; save it again as tokenizer.json"
        )
    return tokenizer


def longest_input(model: PreTrainedModel) -> int:
    """Tokens a sentence may have: positions of the RoBERTa family start after its padding index."""
    config = model.config
    offset = config.pad_token_id + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0
    return config.max_position_embeddings - offset


def check_length(model: PreTrainedModel, length: int) -> None:
    """Raises ModelError for a token batch wider than the backbone has positions."""
    if length > (longest := longest_input(model)):
        raise ModelError(f"the batch is {length} tokens wide, the backbone reads at most {longest}; truncate it")


def check_tokenizer(tokenizer: PreTrainedTokenizerBase | None, model: PreTrainedModel) -> None:
    """Raises ModelError if the tokenizer's ids are not the backbone's: more of them, or another padding id."""
    if tokenizer is None:
        return
    tokens, rows = len(tokenizer), model.config.vocab_size
    if tokens > rows:
        raise ModelError(f"the tokenizer has {tokens} tokens, the backbone {rows} embeddings; load both together")
    pads, expected = tokenizer.pad_token_id, model.config.pad_token_id
    if pads != expected:  # RoBERTa numbers its positions by this id
        raise ModelError(f"the tokenizer pads with id {pads}, the backbone with {expected}; load both together")
