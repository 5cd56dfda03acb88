"""Cross-attention encoder layers (CAELs) of JTCSE: a tower's queries and keys, the other's values.

https://arxiv.org/abs/2505.02366. There are no new parameters: the functions call the modules of
stock BERT and RoBERTa layers, with the attention implementation that the model was loaded with.
"""

from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import BertLayer, eager_attention_forward
from transformers.models.roberta.modeling_roberta import RobertaLayer

from cselab.errors import ModelError

Layer = BertLayer | RobertaLayer
States = Float[Tensor, "B L d"]


def cael_positions(num_layers: int, every: int) -> tuple[int, ...]:
    """Layers that are CAELs, counted from 1: {i : i mod every = 0} (JTCSE Eq. 7).

    Raises ModelError, listing what is possible, when `every` does not divide the depth.
    """
    if every < 1 or num_layers % every:
        divisors = [n for n in range(1, num_layers + 1) if num_layers % n == 0]
        raise ModelError(
            f"every={every} does not divide {num_layers} layers; use one of "
            f"{', '.join(map(str, divisors))}"
        )
    return tuple(range(every, num_layers + 1, every))


def embed_tokens(
    tower: PreTrainedModel, input_ids: Int[Tensor, "B L"], attention_mask: Int[Tensor, "B L"] | None
):
    """States before layer 1, and the mask as the tower's attention takes it (None if all ones)."""
    states = tower.embeddings(input_ids=input_ids)
    mask = create_bidirectional_mask(
        config=tower.config, inputs_embeds=states, attention_mask=attention_mask
    )
    return states, mask


def context(
    layer: Layer, other: Layer, states: States, other_states: States, mask: Tensor | None
) -> States:
    """Attention context `softmax(Q K^T / sqrt(d_head)) V'`, heads concatenated.

    Q and K are of `layer` on `states`, V' of `other` on `other_states`. With `other is layer` and
    the same states it is the layer's usual context, CT; else the cross context, CACT.
    """
    attention = layer.attention.self

    def heads(projection, x: States) -> Float[Tensor, "B h L e"]:
        shape = (attention.num_attention_heads, attention.attention_head_size)
        return projection(x).unflatten(-1, shape).transpose(1, 2)

    attend = ALL_ATTENTION_FUNCTIONS.get_interface(
        attention.config._attn_implementation, eager_attention_forward
    )
    output, _ = attend(
        attention,
        heads(attention.query, states),
        heads(attention.key, states),
        heads(other.attention.self.value, other_states),
        mask,
        dropout=attention.dropout.p if attention.training else 0.0,
        scaling=attention.scaling,
    )
    return output.flatten(2)


def feed_forward(layer: Layer, context: States, residual: States) -> States:
    """The rest of a layer: output projection and LayerNorm on `residual`, then the FFN."""
    return layer.feed_forward_chunk(layer.attention.output(context, residual))


def cross_stream(
    tower: PreTrainedModel,
    other: PreTrainedModel,
    cael: tuple[int, ...],
    inputs: dict[int, States],
    other_inputs: dict[int, States],
    mask: Tensor | None,
) -> States:
    """The running cross stream of `tower`: its output at the last CAEL ("parallel").

    inputs, other_inputs: HD^{j-1} of both towers at each CAEL j.

    The residual of the first CAEL is the tower's input; that of a later CAEL is the stream itself.
    Between CAELs, the stream passes through the tower's ordinary layers.
    """
    stream = inputs[cael[0]]
    for number in range(cael[0], cael[-1] + 1):
        layer = tower.encoder.layer[number - 1]
        if number in cael:
            crossed = context(
                layer, other.encoder.layer[number - 1], inputs[number], other_inputs[number], mask
            )
            stream = feed_forward(layer, crossed, stream)
        else:
            stream = layer(stream, mask)
    return stream
