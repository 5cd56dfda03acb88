"""The backbone before any contrastive training."""

from typing import Any

from cselab.config import shared
from cselab.methods import Materials, MethodConfig, TrainingFree, register
from cselab.methods.nodes import ModelName, Pooling
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer


@register("untrained")
class Untrained(TrainingFree):
    """A pooling of the backbone; "first_last" is the papers' "first-last avg.\""""

    class Config(MethodConfig):
        backbone: ModelName = shared("google-bert/bert-base-uncased")
        """A shipped name, a folder, or a name on the hub."""
        pooling: Pooling = "cls"

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        folder = materials.folder(config.backbone)
        tower = load_backbone(folder), load_tokenizer(folder)
        return SentenceEncoder(*tower, pooling=config.pooling).to(materials.device).eval()
