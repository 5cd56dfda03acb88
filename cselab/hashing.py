"""Content keys: what makes two models the same model, wherever their files lie."""

import functools
import hashlib
from pathlib import Path

import torch

MODEL_SUFFIXES = (".json", ".txt", ".model", ".spm", ".safetensors", ".bin")
"""Endings of configuration, tokenizer and weights."""
NOTES = ("card.json", "stage.json")
"""Files beside a model that say something of it and change nothing in it."""


def weights_hash(*models: torch.nn.Module) -> str:
    """16 hexadecimal digits of the parameters and buffers, names and values, on whatever device they lie."""
    digest = hashlib.sha256()
    for model in models:
        for name, values in model.state_dict().items():
            digest.update(name.encode() + values.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def folder_hash(folder: str | Path) -> str:
    """16 hexadecimal digits of a saved model: names and bytes of its files, in all its folders, and not its path."""
    folder, digest = Path(folder), hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in MODEL_SUFFIXES and path.name not in NOTES:
            stat = path.stat()
            digest.update(path.relative_to(folder).as_posix().encode())
            digest.update(_file_hash(path, stat.st_size, stat.st_mtime_ns))
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=256)
def _file_hash(path: Path, size: int, changed: int) -> bytes:
    """Read again only if the file's size or time of change is another."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
