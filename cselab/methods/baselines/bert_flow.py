"""BERT-flow (Li et al. 2020): an invertible flow after an encoder, fitted to a text."""

from cselab.methods import register
from cselab.methods.baselines.fitted import Fitted
from cselab.models import Flowed


@register("flow")
class BertFlow(Fitted):
    """An encoder, the untrained backbone by default, and a flow to a unit Gaussian
    (https://arxiv.org/abs/2011.05864)."""

    map_class = Flowed
    paper_row = "BERT-flow"
