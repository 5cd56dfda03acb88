"""The backbone before any contrastive training."""

from typing import Any, Literal

from cselab.config import shared
from cselab.methods.nodes import MethodConfig, ModelName
from cselab.methods.registry import register
from cselab.methods.training_free import Materials, TrainingFree
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer


@register("untrained")
class Untrained(TrainingFree):
    """A pooling of the backbone; "first_last" is the papers' "first-last avg.\""""

    class Config(MethodConfig):
        """The backbone and how it is pooled."""

        backbone: ModelName = shared("google-bert/bert-base-uncased")
        """A shipped name, a folder, or a name on the hub."""
        pooling: Literal["cls", "mean", "first_last", "last_two", "pooler"] = "cls"

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        folder = materials.folder(config.backbone)
        backbone, tokenizer = load_backbone(folder), load_tokenizer(folder)
        encoder = SentenceEncoder(backbone, tokenizer, pooling=config.pooling)
        return encoder.to(materials.device).eval()
