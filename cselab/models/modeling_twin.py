"""The second tower of a twin, as a module of sentence-transformers.

Copied into exported folders, so it must not import cselab.
"""

from pathlib import Path

from sentence_transformers.sentence_transformer.modules import Module
from transformers import AutoModel, PreTrainedModel


class SecondTower(Module):
    """Add tower II's [CLS] to the sentence embedding of tower I (TNCSE, JTCSE: their sum)."""

    def __init__(self, tower: PreTrainedModel):
        super().__init__()
        self.tower = tower

    def forward(self, features: dict, **kwargs) -> dict:
        states = self.tower(
            input_ids=features["input_ids"], attention_mask=features["attention_mask"]
        ).last_hidden_state
        features["sentence_embedding"] = features["sentence_embedding"] + states[:, 0]
        return features

    def save(self, output_path: str, *args, **kwargs) -> None:
        self.tower.save_pretrained(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs) -> "SecondTower":
        folder = Path(model_name_or_path)
        if not folder.is_dir():
            from huggingface_hub import snapshot_download

            folder = Path(snapshot_download(model_name_or_path, allow_patterns=f"{subfolder}/*"))
        return cls(AutoModel.from_pretrained(folder / subfolder))
