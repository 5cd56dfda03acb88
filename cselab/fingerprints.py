"""Fingerprints of models: hashes of their content, not of their paths."""

import functools
import hashlib
from pathlib import Path

from cselab.paths import MODEL_SUFFIXES

NOTES = ("card.json", "step.json")
"""Files that describe a model and do not change it; excluded from its hash."""


def folder_hash(folder: str | Path) -> str:
    """Fingerprint of a saved model: sixteen hex digits of the names and bytes of its files."""
    folder, digest = Path(folder), hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in MODEL_SUFFIXES and path.name not in NOTES:
            digest.update(path.relative_to(folder).as_posix().encode())
            digest.update(file_hash(path))
    return digest.hexdigest()[:16]


def weights_hash(folder: str | Path) -> str:
    """Fingerprint of what `from_pretrained` reads of a model or of adapters, whatever lies beside
    it."""
    folder, digest = Path(folder), hashlib.sha256()
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    for path in (folder / "config.json", folder / "adapter_config.json", *weights):
        if path.is_file():
            digest.update(path.name.encode() + file_hash(path))
    return digest.hexdigest()[:16]


def file_hash(path: Path) -> bytes:
    """SHA-256 of a file, computed again only if its size or modification time changes."""
    stat = path.stat()
    return _file_hash(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _file_hash(path: Path, size: int, changed: int) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
