"""BERT-whitening (Su et al. 2021): a linear map after an encoder, fitted to a text."""

from cselab.methods import register
from cselab.methods.baselines.fitted import Fitted
from cselab.models import Whitened


@register("whitened")
class BertWhitening(Fitted):
    """An encoder, the untrained backbone by default, whitened on a text
    (https://arxiv.org/abs/2103.15316)."""

    map_class = Whitened
    paper_row = "BERT-whitening"
