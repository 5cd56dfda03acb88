"""Files of the Hugging Face hub, fetched once per process.

The rest of the package reads local folders. Offline (HF_HUB_OFFLINE=1, or no network), the hub's
cache is used.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cselab.data.packages import INSTALL, PACKAGED, packaged_model
from cselab.data.sources import embedded_dir
from cselab.errors import DataError, SettingsError, suggest
from cselab.paths import check_readable, expanded

MODEL_FILES = ["*.json", "*.txt", "*.model", "*.spm", "model*.safetensors"]
"""Configuration, tokenizer and weights of a model's repository, without copies in other formats."""
PICKLED = ["pytorch_model*.bin"]
"""Weights of repositories without safetensors (the translators, checkpoints of the papers)."""
MODULES = ["[0-9]_*/*"]
"""Modules of a sentence-transformers model (modules.json), each in a folder."""


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE is set to one of the values that huggingface_hub takes for true."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}


def model_folder(name: str, *, hub: bool = False, setting: str = "model") -> Path:
    """Local folder of a model: shipped, such as "tiny-bert", a path, in a package that is installed
    (`PACKAGED`), or what the hub has of it.

    `hub`: fetch what is neither shipped nor a folder, or take it from the hub's cache. `setting` is
    the name's setting, for the message.

    Raises:
        SettingsError: With the nearest shipped name, for anything else.
        DataError: For what the hub does not have, and as `check_readable`.
    """
    shipped = {path.name: path for path in (embedded_dir() / "backbones").glob("*/")}
    if name in shipped:
        return shipped[name]
    check_readable(folder := expanded(name))
    if folder.is_dir():
        return folder
    packaged = name.lower().removeprefix("sentence-transformers/")
    if packaged in PACKAGED:
        if found := packaged_model(packaged):
            return found
        name = PACKAGED[packaged].hub_name
    if hub:
        try:
            return hub_model(name)
        except DataError as error:
            known = ", ".join(sorted(shipped))
            message = f"{error}; or give another {setting}: a folder, or one of {known}"
            raise DataError(message) from None
    if packaged in PACKAGED:
        raise SettingsError(f"{setting}: {packaged} is not installed: {INSTALL}, or set hub=True")
    raise SettingsError(
        f"{setting}: no {name!r} here; {suggest(name, [*shipped, *PACKAGED])}; or give a folder, "
        "or set hub=True to fetch it from the hub"
    )


@functools.cache
def hub_model(name: str) -> Path:
    """Local folder with the configuration, tokenizer and weights of the hub's model `name`.

    Raises:
        DataError: If the model is neither on the hub nor in the cache.
    """
    folder = _snapshot(name, "model", MODEL_FILES)
    if not any(folder.glob("model*.safetensors*")):
        folder = _snapshot(name, "model", PICKLED)
    if (folder / "modules.json").is_file():
        folder = _snapshot(name, "model", MODULES, subfolders=True)
    weights = [*folder.glob("model*.safetensors"), *folder.glob("pytorch_model*.bin")]
    if not ((folder / "config.json").is_file() and weights):  # left by an interrupted download
        raise DataError(
            f"the hub's cache lacks config or weights of {name}; {_download_hint(name, 'model')}"
        )
    return folder


@functools.cache
def hub_dataset(name: str) -> Path:
    """Local folder with all files of the hub's data set `name`; errors as `hub_model`."""
    return _snapshot(name, "dataset", None)


@functools.cache
def hub_file(name: str, file: str) -> Path:
    """One file of the hub's data set `name`; errors as `hub_model`."""
    from huggingface_hub import hf_hub_download

    return _download(hf_hub_download, name, "dataset", filename=file)


def _snapshot(name: str, kind: str, files: list[str] | None, *, subfolders: bool = False) -> Path:
    from huggingface_hub import snapshot_download

    ignored = ["*/*"] if files and not subfolders else None
    return _download(snapshot_download, name, kind, allow_patterns=files, ignore_patterns=ignored)


def _download(fetch: Callable[..., str], name: str, kind: str, **options: Any) -> Path:
    from huggingface_hub import errors

    try:
        return Path(fetch(name, repo_type=kind, **options))
    except errors.GatedRepoError:
        raise DataError(
            f"{name} is gated: accept its licence on the hub, then log in with `hf auth login`"
        ) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise DataError(f"there is no {kind} {name!r} on the hub; check the name") from None
    except errors.LocalEntryNotFoundError:
        why = "HF_HUB_OFFLINE is set" if is_offline() else "the hub does not answer"
        raise DataError(
            f"{name} is not in the hub's cache, and {why}; {_download_hint(name, kind)}"
        ) from None
    except Exception as error:  # those of the network library differ by version
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise DataError(
            f"{name} could not be fetched from the hub ({reason}); {_download_hint(name, kind)}"
        ) from None


def _download_hint(name: str, kind: str) -> str:
    option = " --repo-type dataset" if kind == "dataset" else ""
    return f"where there is a network: hf download {name}{option}"
