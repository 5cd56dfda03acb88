"""Removal of LayerNorms, recorded in the config, so that a saved model loads without them."""

from torch import nn
from transformers import PreTrainedModel

from cselab.errors import ModelError
from cselab.models.layers import BERT_LIKE, is_bert_like


def remove_layer_norms(model: PreTrainedModel, last: int) -> None:
    """Replace both LayerNorms of the `last` layers nearest the output by the identity, in place.

    For TNCSE's study of the norm of h^L (https://arxiv.org/abs/2503.12739): LayerNorm fixes it, so
    the modulus loss cannot change it. The number is kept as `model.config.layer_norms_removed`,
    which `load_backbone` reads. (`AutoModel.from_pretrained` does not: it puts new LayerNorms back,
    with only a load report.)

    Raises:
        ModelError: If `last` is negative or more than there are layers.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import load_backbone, remove_layer_norms
        >>> model = load_backbone(model_folder("tiny-bert"))
        >>> remove_layer_norms(model, last=2)
        >>> [type(layer.output.LayerNorm).__name__ for layer in model.encoder.layer[-3:]]
        ['LayerNorm', 'Identity', 'Identity']
    """
    if not is_bert_like(model.config):
        if not last:
            return
        raise ModelError(
            f"the LayerNorms of a {model.config.model_type!r} model cannot be removed; expected "
            f"one of {', '.join(BERT_LIKE)}"
        )
    layers = model.encoder.layer
    if not 0 <= last <= len(layers):
        raise ModelError(
            f"cannot remove the LayerNorms of the last {last} layers; the model has {len(layers)}"
        )
    for layer in layers[len(layers) - last :]:
        layer.attention.output.LayerNorm = nn.Identity()
        layer.output.LayerNorm = nn.Identity()
    model.config.layer_norms_removed = max(last, getattr(model.config, "layer_norms_removed", 0))
