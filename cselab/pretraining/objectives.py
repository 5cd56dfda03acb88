"""What a small BERT learns from: masked words, the sentence rebuilt from [CLS], and which sentence comes next."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import BertConfig, BertForPreTraining
from transformers.models.bert.modeling_bert import BertLayer


class Bottleneck(nn.Module):
    """RetroMAE's decoder (Xiao et al. 2022, 3.2): [CLS] state and a heavily masked copy, through one layer."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.layer = BertLayer(config)

    def forward(
        self, cls: Float[Tensor, "B d"], embeddings: Float[Tensor, "B L d"], attention_mask: Int[Tensor, "B L"]
    ) -> Float[Tensor, "B L d"]:
        states = torch.cat([cls[:, None], embeddings[:, 1:]], dim=1)
        return self.layer(states, attention_mask[:, None, None, :].bool())


def chosen(ids: Int[Tensor, "B L"], special: Int[Tensor, " S"], share: float) -> Bool[Tensor, "B L"]:
    """A random `share` of the ordinary tokens."""
    return (torch.rand(ids.shape) < share) & ~torch.isin(ids, special)


def token_loss(
    model: BertForPreTraining, states: Float[Tensor, "B L d"], ids: Int[Tensor, "B L"], where: Bool[Tensor, "B L"]
) -> Float[Tensor, ""]:
    """Mean cross-entropy of `ids` at `where` only: the projection to the vocabulary is most of a small model's work."""
    return F.cross_entropy(model.cls.predictions(states[where]).float(), ids[where])


def sentence_losses(
    model: BertForPreTraining,
    bottleneck: Bottleneck,
    ids: Int[Tensor, "B L"],
    special: Int[Tensor, " S"],
    *,
    mask_id: int,
    pad_id: int,
    encoder_masked: float,
    decoder_masked: float,
    decoder_scored: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """(masked-LM loss, bottleneck loss) of single sentences; `decoder_scored` of all tokens are rebuilt for the loss."""
    attention = (ids != pad_id).long()
    hidden = chosen(ids, special, encoder_masked)
    states = model.bert(input_ids=ids.masked_fill(hidden, mask_id), attention_mask=attention).last_hidden_state
    hidden_too = chosen(ids, special, decoder_masked)
    embeddings = model.bert.embeddings(input_ids=ids.masked_fill(hidden_too, mask_id))
    rebuilt = bottleneck(states[:, 0], embeddings, attention)
    scored = hidden_too & (torch.rand(ids.shape) < decoder_scored / decoder_masked)
    return token_loss(model, states, ids, hidden), token_loss(model, rebuilt, ids, scored)


def pair_losses(
    model: BertForPreTraining,
    ids: Int[Tensor, "B L"],
    segments: Int[Tensor, "B L"],
    labels: Int[Tensor, " B"],
    special: Int[Tensor, " S"],
    *,
    mask_id: int,
    pad_id: int,
    masked: float = 0.15,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """(masked-LM loss, next-sentence loss) of sentence pairs: BERT's own two (Devlin et al. 2019, 3.1)."""
    hidden = chosen(ids, special, masked)
    out = model.bert(
        input_ids=ids.masked_fill(hidden, mask_id), attention_mask=(ids != pad_id).long(), token_type_ids=segments
    )
    follows = model.cls.seq_relationship(out.pooler_output).float()
    return token_loss(model, out.last_hidden_state, ids, hidden), F.cross_entropy(follows, labels)
