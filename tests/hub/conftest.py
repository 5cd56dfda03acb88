"""A simulated hub for the tests of what the project does with models and data of the public one."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from server import HubServer

READ_BY_CLIENTS = ("HF_", "HUGGINGFACE_", "TRANSFORMERS_", "DATASETS_", "CSELAB_DATA")
"""Prefixes of variables that a developer's shell may set and that change where data comes from."""


@dataclass(frozen=True)
class Hub:
    """A running hub. home: the folder of downloads that `environment` names."""

    server: HubServer
    home: Path

    @property
    def requests(self) -> list[str]:
        """Method and path of every request so far, as "GET /api/models/OWNER/NAME".

        A test that counts requests calls `clear()` on the list first.
        """
        return self.server.requests

    @property
    def environment(self) -> dict[str, str]:
        return self.environment_with(self.home)

    def environment_with(self, home: Path) -> dict[str, str]:
        """All variables of a new process that uses this hub, with downloads in a folder.

        DISABLE_SAFETENSORS_CONVERSION: without it, transformers asks a public service to convert
        every repository that has only a pytorch_model.bin.
        """
        kept = {k: v for k, v in os.environ.items() if not k.startswith(READ_BY_CLIENTS)}
        return kept | {
            "HF_ENDPOINT": self.server.address,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",
            "DISABLE_SAFETENSORS_CONVERSION": "1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }


@pytest.fixture(scope="session")
def hub(tmp_path_factory) -> Iterator[Hub]:
    """The simulated hub with all stand-ins, and a folder of downloads that the tests share."""
    from repositories import make_repositories

    folder = tmp_path_factory.mktemp("hub")
    make_repositories(folder)
    server = HubServer(folder)
    server.start()
    yield Hub(server, tmp_path_factory.mktemp("hub-home"))
    server.stop()
