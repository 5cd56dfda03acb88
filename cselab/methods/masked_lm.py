"""Masked language models beside an encoder: what fills masked words, and what has to be told them."""

from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM

from cselab.errors import ModelError
from cselab.models.backbone import quiet


def load_masked_lm(folder: str | Path) -> nn.Module:
    """The checkpoint with its masked-LM head, in float32, no weight shared between the two (a checkpoint of a method holds each once).

    Raises ModelError where it has none: a head from chance fills in noise.
    """
    with torch.random.fork_rng(devices=[]), quiet():
        model, info = AutoModelForMaskedLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
        )
    if info["missing_keys"]:
        raise ModelError(
            f"{folder} has no masked-LM head ({', '.join(sorted(info['missing_keys'])[:2])}, …); "
            "use a pretrained checkpoint, such as the shipped backbone"
        )
    seen: set[int] = set()
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            if id(weight) in seen:
                setattr(module, name, nn.Parameter(weight.detach().clone()))
            seen.add(id(weight))
    return model.eval()


def filled(model: nn.Module, ids: Tensor, mask: Tensor, masked: Tensor) -> Tensor:
    """`ids` with a word drawn from the model's distribution in each place of `masked` ids that differs."""
    with torch.no_grad():
        hidden = masked != ids
        logits = model(input_ids=masked, attention_mask=mask).logits[hidden].float()
        drawn = torch.multinomial(logits.softmax(-1), 1)[:, 0] if len(logits) else ids.new_empty(0)
        return ids.masked_scatter(hidden, drawn)


def by_sentence(losses: Float[Tensor, "N L"], counted: Tensor) -> Float[Tensor, "1 N 2"]:
    """Sum and number of a sentence's token losses: what survives being gathered, and chunked, as vectors do."""
    return torch.stack([(losses * counted).sum(1), counted.sum(1).to(losses.dtype)], dim=-1)[None]


def token_mean(parts: Float[Tensor, "1 N 2"]) -> Float[Tensor, ""]:
    """Mean over all tokens of `by_sentence`."""
    total, count = parts[0].sum(0)
    return total / count.clamp_min(1)


def cross_entropy_at(logits: Float[Tensor, "M V"], ids: Tensor, hidden: Tensor) -> Float[Tensor, "N L"]:
    """Token losses at the places `hidden`, 0 elsewhere."""
    losses = F.cross_entropy(logits.float(), ids[hidden], reduction="none")
    return torch.zeros(ids.shape, device=ids.device).masked_scatter(hidden, losses)
