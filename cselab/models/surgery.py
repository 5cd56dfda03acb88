"""Changes to a stock model's architecture that are recorded in its config, so that a saved model comes back changed."""

from torch import nn
from transformers import PreTrainedModel

from cselab.errors import ModelError


def remove_layer_norms(model: PreTrainedModel, last: int) -> None:
    """Replace both LayerNorms of the `last` layers nearest the output by the identity, in place.

    For TNCSE's study of the norm of h^L: LayerNorm fixes it, so the modulus loss cannot move it. The number is kept as
    `model.config.layer_norms_removed`; `load_backbone` reads it. (Plain `AutoModel.from_pretrained` does not: it
    puts new LayerNorms back, with only a load report.)

    Raises ModelError if `last` is negative or more than there are layers.
    """
    layers = model.encoder.layer
    if not 0 <= last <= len(layers):
        raise ModelError(f"cannot remove the LayerNorms of the last {last} layers; the model has {len(layers)}")
    for layer in layers[len(layers) - last :]:
        layer.attention.output.LayerNorm = nn.Identity()
        layer.output.LayerNorm = nn.Identity()
    model.config.layer_norms_removed = max(last, getattr(model.config, "layer_norms_removed", 0))
