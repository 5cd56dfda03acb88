"""Cross-attention encoder layers (CAELs) of JTCSE: a tower's queries and keys, the other's values.

https://arxiv.org/abs/2505.02366. There are no new parameters.
"""

from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from cselab.errors import ModelError
from cselab.models.layers import States, context, feed_forward


def cael_positions(num_layers: int, every: int) -> tuple[int, ...]:
    """Layers that are CAELs, counted from 1: {i : i mod every = 0}.

    JTCSE Eq. 7, https://arxiv.org/abs/2505.02366.

    Raises:
        ModelError: With what is possible, when `every` does not divide the depth of a tower.

    Examples:
        >>> from cselab.models import cael_positions
        >>> cael_positions(12, every=2)
        (2, 4, 6, 8, 10, 12)
    """
    if every < 1 or num_layers % every:
        divisors = [n for n in range(1, num_layers + 1) if num_layers % n == 0]
        raise ModelError(
            f"every={every} does not divide {num_layers} layers; use one of "
            f"{', '.join(map(str, divisors))}"
        )
    return tuple(range(every, num_layers + 1, every))


def cross_stream(
    tower: PreTrainedModel,
    other: PreTrainedModel,
    cael: tuple[int, ...],
    inputs: dict[int, States],
    other_inputs: dict[int, States],
    mask: Tensor | None,
) -> Float[Tensor, "B d"]:
    """[CLS] of the running cross stream of `tower` at the last CAEL ("parallel").

    The residual of the first CAEL is the tower's input; that of a later CAEL is the stream itself.
    Between CAELs, the stream passes through the tower's ordinary layers. At the last CAEL nothing
    but [CLS] is computed.

    Args:
        tower: The tower of the queries, keys and feed-forward layers.
        other: The tower of the values.
        cael: Layers that are CAELs, counted from 1.
        inputs: HD^{j-1} of `tower` at each CAEL j.
        mask: As the tower's attention takes it.
    """
    stream = inputs[cael[0]]
    for number in range(cael[0], cael[-1] + 1):
        layer, last = tower.encoder.layer[number - 1], number == cael[-1]
        if number in cael:
            crossed = context(
                layer,
                other.encoder.layer[number - 1],
                inputs[number],
                other_inputs[number],
                mask,
                first_only=last,
            )
            stream = feed_forward(layer, crossed, stream[:, :1] if last else stream)
        else:
            stream = layer(stream, mask)
    return stream[:, 0]
