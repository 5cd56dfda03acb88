"""Attention, the energy of [CLS] and norms, as numbers of a trained BERT-like tower.

JTCSE sections III-A, III-C and Eq. 6, https://arxiv.org/abs/2505.02366; norms: TNCSE,
https://arxiv.org/abs/2503.12739.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.models import evaluating
from cselab.models.encode import token_batches
from cselab.models.layers import embed_tokens

__all__ = [
    "CLASSES",
    "Norms",
    "Trace",
    "attention_sink",
    "cls_energy",
    "context_energy",
    "received_attention",
    "token_classes",
    "trace",
    "vector_norms",
]

CLASSES = ("[CLS]", "[SEP]", "final punctuation", "other tokens")


class Trace(NamedTuple):
    """Intermediate results of a tower on a batch, layer by layer.

    n layers, B sentences, h heads, L tokens, d features, e = d / h.

    Attributes:
        attention: softmax(Q K^T / sqrt(d_head)), queries by keys; padding receives 0.
        values: The value vectors of each head.
        context: Attention-weighted values, heads concatenated, before the output projection.
        states: Hidden states; index 0 is the embedding layer.
    """

    attention: Float[Tensor, "n B h L L"]
    values: Float[Tensor, "n B h L e"]
    context: Float[Tensor, "n B L d"]
    states: Float[Tensor, "n+1 B L d"]


def trace(
    tower: PreTrainedModel,
    input_ids: Int[Tensor, "B L"],
    attention_mask: Int[Tensor, "B L"] | None = None,
) -> Trace:
    """Run a BERT-like tower in evaluation mode and return its attention, values and states.

    The maps are computed from the layers' projections, so that the tower may have been loaded with
    any attention implementation: scaled-dot-product attention returns no maps. The mask is 1 for
    tokens, 0 for padding; None: no padding.

    Examples:
        >>> import cselab
        >>> from cselab.analysis import trace
        >>> encoder = cselab.load("tiny-bert")
        >>> batch = encoder.tokenizer(["A dog runs."], return_tensors="pt")
        >>> traced = trace(encoder.backbone, batch["input_ids"])
        >>> traced.attention.shape, traced.states.shape
        (torch.Size([6, 1, 3, 6, 6]), torch.Size([7, 1, 6, 192]))
    """
    keys = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    padding = (1.0 - keys[:, None, None, :].float()) * torch.finfo(torch.float32).min
    attentions, all_values, contexts = [], [], []
    with evaluating(tower), torch.inference_mode():
        state, mask = embed_tokens(tower, input_ids, attention_mask)
        states = [state]
        for layer in tower.encoder.layer:
            module = layer.attention.self
            query, key, value = (
                rearrange(project(state), "b l (h e) -> b h l e", h=module.num_attention_heads)
                for project in (module.query, module.key, module.value)
            )
            attention = (query @ key.transpose(-1, -2) * module.scaling + padding).softmax(-1)
            attentions.append(attention)
            all_values.append(value)
            contexts.append(rearrange(attention @ value, "b h l e -> b l (h e)"))
            state = layer(state, mask)
            states.append(state)
    return Trace(*map(torch.stack, (attentions, all_values, contexts, states)))


def cls_energy(
    tower: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Iterable[str]
) -> Float[Tensor, " n"]:
    """Energy of [CLS], `||h_cls|| / ||H||_F` of the context, by layer; a mean over sentences.

    JTCSE Eq. 6, https://arxiv.org/abs/2505.02366. h_cls is the row of [CLS], H the rows of all
    other tokens without padding. The energy falls with the length of a sentence (H has more rows),
    so compare models on the same sentences only.

    Examples:
        >>> import cselab
        >>> from cselab.analysis import cls_energy
        >>> encoder = cselab.load("tiny-bert")
        >>> cls_energy(encoder.backbone, encoder.tokenizer, ["A dog runs.", "It rains."]).shape
        torch.Size([6])
    """
    energies = []
    for batch in token_batches(tokenizer, sentences, tower):
        energies.append(context_energy(trace(tower, **batch).context, batch["attention_mask"]))
    return torch.cat(energies, dim=1).mean(1).cpu()


def context_energy(
    context: Float[Tensor, "n B L d"], mask: Int[Tensor, "B L"]
) -> Float[Tensor, "n B"]:
    """Energy of [CLS] of each layer and sentence, from the context of a `Trace`.

    JTCSE Eq. 6, https://arxiv.org/abs/2505.02366; see `cls_energy`. The mask leaves padding out.
    """
    squares = context.square().sum(-1) * mask
    return (squares[..., 0] / squares[..., 1:].sum(-1)).sqrt()


def attention_sink(
    tower: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Iterable[str]
) -> Float[Tensor, "n 4"]:
    """Share of attention that each of CLASSES receives, by layer; rows sum to 1.

    A mean over heads, query tokens and sentences; JTCSE section III-A,
    https://arxiv.org/abs/2505.02366. Final punctuation is the token before the last [SEP], if it
    has no letter and no digit.

    Examples:
        >>> import cselab
        >>> from cselab.analysis import CLASSES, attention_sink
        >>> encoder = cselab.load("tiny-bert")
        >>> shares = attention_sink(encoder.backbone, encoder.tokenizer, ["A dog runs."])
        >>> CLASSES, shares.shape
        (('[CLS]', '[SEP]', 'final punctuation', 'other tokens'), torch.Size([6, 4]))
    """
    shares = []
    for batch in token_batches(tokenizer, sentences, tower):
        received = received_attention(trace(tower, **batch).attention, batch["attention_mask"])
        rows = zip(*batch.values(), strict=True)
        classes = torch.stack([token_classes(tokenizer, ids, mask) for ids, mask in rows])
        one_hot = torch.nn.functional.one_hot(classes.clamp(min=0), len(CLASSES))
        members = one_hot * batch["attention_mask"][..., None]
        shares.append(torch.einsum("n b l, b l c -> n b c", received, members.to(received)))
    return torch.cat(shares, dim=1).mean(1).cpu()


def received_attention(
    attention: Float[Tensor, "n B h L L"], mask: Int[Tensor, "B L"]
) -> Float[Tensor, "n B L"]:
    """Attention that each token receives, of the attention of a `Trace`; sums to 1 over tokens.

    A mean over heads and over queries that are not padding.

    Examples:
        >>> import torch
        >>> from cselab.analysis import received_attention
        >>> attention = torch.tensor([[0.9, 0.1], [0.7, 0.3]]).view(1, 1, 1, 2, 2)
        >>> received_attention(attention, torch.ones(1, 2, dtype=torch.long)).squeeze()
        tensor([0.8000, 0.2000])
    """
    weights = mask.to(attention) / mask.sum(-1, keepdim=True)
    return torch.einsum("n b h q k, b q -> n b k", attention, weights) / attention.shape[2]


def token_classes(
    tokenizer: PreTrainedTokenizerBase, ids: Int[Tensor, " L"], mask: Int[Tensor, " L"]
) -> Int[Tensor, " L"]:
    """Index into CLASSES of each token of one sentence, -1 for padding."""
    classes = torch.full_like(ids, CLASSES.index("other tokens"))
    classes[mask == 0] = -1
    tokens = mask.nonzero().flatten()
    first, last = tokens[0], tokens[-1]
    classes[first], classes[last] = CLASSES.index("[CLS]"), CLASSES.index("[SEP]")
    before = tokens[-2] if len(tokens) > 2 else first
    token = tokenizer.decode([int(ids[before])]).strip()
    if before != first and token and not any(letter.isalnum() for letter in token):
        classes[before] = CLASSES.index("final punctuation")
    return classes


class Norms(NamedTuple):
    """Euclidean norms of the vectors of n sentences.

    Attributes:
        cls: Norms of [CLS] in the last layer, h^L.
        pooled: Norms of the pooler's output, h^P; None without a pooler.
    """

    cls: Float[Tensor, " n"]
    pooled: Float[Tensor, " n"] | None


def vector_norms(
    tower: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Iterable[str]
) -> Norms:
    """Norms of the vectors of each sentence, in order, with the tower in evaluation mode.

    Examples:
        >>> import cselab
        >>> from cselab.analysis import vector_norms
        >>> encoder = cselab.load("tiny-bert")
        >>> norms = vector_norms(encoder.backbone, encoder.tokenizer, ["A dog runs.", "It rains."])
        >>> norms.cls.shape, norms.pooled.shape
        (torch.Size([2]), torch.Size([2]))
    """
    cls, pooled = [], []
    with evaluating(tower), torch.inference_mode():
        for batch in token_batches(tokenizer, sentences, tower):
            output = tower(**batch)
            cls.append(output.last_hidden_state[:, 0].norm(dim=-1).cpu())
            if output.pooler_output is not None:
                pooled.append(output.pooler_output.norm(dim=-1).cpu())
    return Norms(torch.cat(cls), torch.cat(pooled) if pooled else None)
