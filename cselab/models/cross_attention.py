"""Cross-attention encoder layers (CAELs) of JTCSE: own queries and keys, the other tower's values. No parameter is new.

The functions call the modules of stock BERT and RoBERTa layers; the attention itself is the one the model was loaded with.
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
    """Layers, counted from 1, that are CAELs: every `every`-th one, {i : i mod every = 0} (JTCSE Eq. 7).

    Raises ModelError, listing what is possible, when `every` does not divide the depth.
    """
    if every < 1 or num_layers % every:
        divisors = [n for n in range(1, num_layers + 1) if num_layers % n == 0]
        raise ModelError(
            f"every={every} does not divide {num_layers} layers; use one of {', '.join(map(str, divisors))}"
        )
    return tuple(range(every, num_layers + 1, every))


def embed_tokens(tower: PreTrainedModel, input_ids: Int[Tensor, "B L"], attention_mask: Int[Tensor, "B L"] | None):
    """States before layer 1, and the attention mask in the form this tower's attention wants (None if all ones)."""
    states = tower.embeddings(input_ids=input_ids)
    mask = create_bidirectional_mask(config=tower.config, inputs_embeds=states, attention_mask=attention_mask)
    return states, mask


def context(layer: Layer, other: Layer, states: States, other_states: States, mask: Tensor | None) -> States:
    """`softmax(Q K^T / sqrt(d_head)) V'`, heads concatenated: Q, K of `layer` on `states`, V' of `other` on `other_states`.

    With `other is layer` and the same states it is the layer's own context, CT; else the cross context, CACT.
    """
    own = layer.attention.self

    def heads(projection, x: States) -> Float[Tensor, "B h L e"]:
        return projection(x).unflatten(-1, (own.num_attention_heads, own.attention_head_size)).transpose(1, 2)

    attend = ALL_ATTENTION_FUNCTIONS.get_interface(own.config._attn_implementation, eager_attention_forward)
    output, _ = attend(
        own,
        heads(own.query, states),
        heads(own.key, states),
        heads(other.attention.self.value, other_states),
        mask,
        dropout=own.dropout.p if own.training else 0.0,
        scaling=own.scaling,
    )
    return output.flatten(2)


def feed_forward(layer: Layer, context: States, residual: States) -> States:
    """The rest of the layer after attention: output projection and LayerNorm on `residual`, then its FFN block."""
    return layer.feed_forward_chunk(layer.attention.output(context, residual))


def cross_stream(
    tower: PreTrainedModel,
    other: PreTrainedModel,
    cael: tuple[int, ...],
    inputs: dict[int, States],
    other_inputs: dict[int, States],
    mask: Tensor | None,
) -> States:
    """The running cross stream of `tower`, up to the output of the last CAEL (METHODS 4, "parallel").

    inputs, other_inputs: HD^{j-1} of both towers at each CAEL j. The first CAEL's residual is the tower's own input; from
    there the stream is its own residual, and passes through the tower's ordinary layers between CAELs.
    """
    stream = inputs[cael[0]]
    for number in range(cael[0], cael[-1] + 1):
        layer = tower.encoder.layer[number - 1]
        if number in cael:
            crossed = context(layer, other.encoder.layer[number - 1], inputs[number], other_inputs[number], mask)
            stream = feed_forward(layer, crossed, stream)
        else:
            stream = layer(stream, mask)
    return stream
