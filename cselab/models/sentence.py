"""A single tower as a sentence encoder: a stock backbone, its tokenizer, and the pooling that belongs to it."""

import json
from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError, suggest
from cselab.models.backbone import load_backbone, load_tokenizer
from cselab.models.encode import encode
from cselab.models.folder import new_folder
from cselab.models.pooling import POOLINGS, pool


class SentenceEncoder(nn.Module):
    """`forward(batch) -> (B, d)`: the pooled states of one backbone. The pooling is saved with the model."""

    def __init__(self, backbone: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, *, pooling: str = "cls"):
        super().__init__()
        if pooling not in POOLINGS:
            raise ModelError(f"unknown pooling {pooling!r}; {suggest(pooling, POOLINGS)}")
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.pooling = pooling

    @property
    def backbones(self) -> tuple[PreTrainedModel, ...]:
        return (self.backbone,)

    def forward(self, batch: dict[str, Tensor]) -> Float[Tensor, "B d"]:
        """batch: `input_ids` and `attention_mask`, (B, L) each."""
        all_layers = self.pooling in ("first_last", "last_two")
        output = self.backbone(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], output_hidden_states=all_layers
        )
        states = output.hidden_states if all_layers else (output.last_hidden_state,)
        return pool(states, batch["attention_mask"], self.pooling)

    embed = forward

    def encode(self, sentences: list[str], **options) -> Float[Tensor, "n d"]:
        """Embeddings of sentences, in their order; options as in `cselab.models.encode`."""
        return encode(self, sentences, **options)

    def save_pretrained(self, folder: str | Path) -> None:
        """A stock transformers folder (AutoModel loads it) plus cselab.json; safetensors, whole or not at all."""
        with new_folder(folder) as target:
            self.backbone.save_pretrained(target)
            self.tokenizer.save_pretrained(target)
            (target / "cselab.json").write_text(json.dumps({"kind": "sentence", "pooling": self.pooling}))

    @classmethod
    def from_pretrained(cls, folder: str | Path, **options) -> "SentenceEncoder":
        """What `save_pretrained` wrote, with its pooling; options as in `load_backbone`."""
        path = Path(folder) / "cselab.json"
        if not path.is_file():
            raise ModelError(f"no cselab.json in {folder}: expected a folder that SentenceEncoder.save_pretrained wrote")
        pooling = json.loads(path.read_text())["pooling"]
        return cls(load_backbone(folder, **options), load_tokenizer(folder), pooling=pooling)
