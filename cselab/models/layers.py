"""Layers of stock BERT, ELECTRA and RoBERTa, taken apart: what can be shared, crossed or left out.

There are no new parameters: the functions call the modules of the stock layers, with the attention
implementation that the model was loaded with.
"""

from typing import TypeAlias

from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import BertLayer, eager_attention_forward
from transformers.models.electra.modeling_electra import ElectraLayer
from transformers.models.roberta.modeling_roberta import RobertaLayer

BERT_LIKE = ("bert", "electra", "roberta", "xlm-roberta", "camembert")
"""Model types with `encoder.layer[i].attention.self.{query,key,value}`, which twins, the removal of
LayerNorms and views of attention take apart."""
Layer: TypeAlias = BertLayer | ElectraLayer | RobertaLayer
States = Float[Tensor, "B L d"]
Rows = Float[Tensor, "B R d"]
"""States of all tokens, R = L, or of the first alone, R = 1."""


def is_bert_like(config: PreTrainedConfig) -> bool:
    """Whether the layers are those of `BERT_LIKE` encoders."""
    return config.model_type in BERT_LIKE and not getattr(config, "is_decoder", False)


def embed_tokens(
    tower: PreTrainedModel, input_ids: Int[Tensor, "B L"], attention_mask: Int[Tensor, "B L"] | None
):
    """States before layer 1, and the mask as the tower's attention takes it (None if all ones)."""
    states = tower.embeddings(input_ids=input_ids)
    if hasattr(tower, "embeddings_project"):  # ELECTRA's, where words are narrower than layers
        states = tower.embeddings_project(states)
    mask = create_bidirectional_mask(
        config=tower.config, inputs_embeds=states, attention_mask=attention_mask
    )
    return states, mask


def context(
    layer: Layer,
    other: Layer,
    states: States,
    other_states: States,
    mask: Tensor | None,
    *,
    first_only: bool = False,
) -> Rows:
    """Attention context `softmax(Q K^T / sqrt(d_head)) V'`, heads concatenated.

    Q and K are of `layer` on `states`, V' of `other` on `other_states`. With `other is layer` and
    the same states it is the layer's usual context, CT; else the cross context, CACT. The mask is
    as `embed_tokens` returns it. first_only: (B, 1, d), of the first token alone.
    """
    attention = layer.attention.self

    def heads(projection, x: States) -> Float[Tensor, "B h L e"]:
        shape = (attention.num_attention_heads, attention.attention_head_size)
        return projection(x).unflatten(-1, shape).transpose(1, 2)

    if first_only and mask is not None:
        mask = mask[:, :, :1]
    attend = ALL_ATTENTION_FUNCTIONS.get_interface(
        attention.config._attn_implementation, eager_attention_forward
    )
    output, _ = attend(
        attention,
        heads(attention.query, states[:, :1] if first_only else states),
        heads(attention.key, states),
        heads(other.attention.self.value, other_states),
        mask,
        dropout=attention.dropout.p if attention.training else 0.0,
        scaling=attention.scaling,
    )
    return output.flatten(2)


def feed_forward(layer: Layer, context: Rows, residual: Rows) -> Rows:
    """The rest of a layer: output projection and LayerNorm on `residual`, then the FFN."""
    return layer.feed_forward_chunk(layer.attention.output(context, residual))


def first_row(layer: Layer, states: States, mask: Tensor | None) -> Rows:
    """A layer's output of the first token alone, (B, 1, d).

    Every token is attended to, and nothing else is computed for the others.
    """
    found = context(layer, layer, states, states, mask, first_only=True)
    return feed_forward(layer, found, states[:, :1])


def run_tower(
    tower: PreTrainedModel,
    input_ids: Int[Tensor, "B L"],
    attention_mask: Int[Tensor, "B L"] | None,
    *,
    keep: tuple[int, ...] = (),
) -> tuple[Float[Tensor, "B d"], dict[int, States], Tensor | None]:
    """Run a tower; of its last layer, only [CLS] is computed.

    With six layers, this saves a seventh of a step.

    Args:
        attention_mask: 1 for tokens, 0 for padding; None: all are tokens.
        keep: Layers j, counted from 1, whose inputs HD^{j-1} are returned.

    Returns:
        [CLS] of the last layer, (B, d); the kept inputs by layer, (B, L, d) each; and the mask as
        the tower's attention takes it.
    """
    states, mask = embed_tokens(tower, input_ids, attention_mask)
    inputs, layers = {}, tower.encoder.layer
    for number, layer in enumerate(layers, 1):
        if number in keep:
            inputs[number] = states
        is_last = number == len(layers)
        states = first_row(layer, states, mask) if is_last else layer(states, mask)
    return states[:, 0], inputs, mask
