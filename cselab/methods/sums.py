"""The fair ensemble: towers that nobody trained together, summed."""

from typing import Any

from pydantic import Field

from cselab.methods import AnyMethod, Materials, MethodConfig, TrainingFree, register
from cselab.methods.simcse import twin_towers
from cselab.models import Ensemble, SentenceEncoder, TwinEncoder
from cselab.models.layers import is_bert_like


@register("sum")
class Sum(TrainingFree):
    """The sum of towers, each trained alone (TNCSE, https://arxiv.org/abs/2503.12739, Table 3): a
    twin starts from it. `towers.method=esimcse` sums towers of ESimCSE.

    What a twin gains over it may be longer training alone; the control of joint training is the
    twin `tncse` with `terms={"nce": 1}`, the same towers, batches and steps, each alone.
    """

    class Config(MethodConfig):
        towers: tuple[AnyMethod, ...] = Field(default_factory=twin_towers, min_length=1)

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        """Two stock towers as a twin without cross-attention, anything else as an ensemble."""
        towers = materials.parts
        if len(towers) != 2 or not all(map(_is_stock, towers)):
            return Ensemble(towers)
        one, two = towers
        twin = TwinEncoder(one.backbone, two.backbone, tokenizer=one.tokenizer)
        return twin.to(one.backbone.device).eval()


def _is_stock(tower: Any) -> bool:
    """Whether the tower is a BERT-like encoder that is read by its [CLS] alone."""
    is_single = isinstance(tower, SentenceEncoder) and is_bert_like(tower.backbone.config)
    return is_single and tower.pooling == "cls" and not tower.prompt
