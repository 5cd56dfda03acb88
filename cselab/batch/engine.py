"""One notebook through papermill, in a kernel of this very interpreter, with a log and a report of each cell."""

import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import papermill
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from traitlets import default

from cselab.errors import CselabError

OnCell = Callable[[int, int], None]
"""Called as a cell starts: its index, and how many cells there are."""


class NotebookFailed(CselabError):
    """A notebook did not finish: a cell raised, the kernel died, or time ran out. `detail` is what a person needs to see."""

    def __init__(self, summary: str, detail: str):
        super().__init__(summary)
        self.detail = detail


class _ThisInterpreter(KernelSpecManager):
    """Whatever kernel a notebook names, and whatever a user's own `python3` kernel points to."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        # What native code says as it dies must reach the log at once, not a thread of the dying kernel.
        keep_stderr = "--IPKernelApp.capture_fd_output=False"
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", keep_stderr]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def _kernel_manager(sockets: Path, stdout_file: TextIO) -> type[AsyncKernelManager]:
    """Kernels of this interpreter that talk through `sockets` and write what they say aloud to a file."""
    windows = sys.platform == "win32"

    class Kernel(AsyncKernelManager):
        transport = "tcp" if windows else "ipc"  # ports of parallel runs would clash

        @default("ip")
        def _ip(self):  # otherwise a name in the working folder, the same for every run
            return "127.0.0.1" if windows else str(sockets / "kernel")

        @default("kernel_spec_manager")
        def _spec_manager(self):
            return _ThisInterpreter()

        async def _async_launch_kernel(self, kernel_cmd, **kw):
            await super()._async_launch_kernel(kernel_cmd, **{**kw, "stdout": stdout_file, "stderr": stdout_file})

        _launch_kernel = _async_launch_kernel

    return Kernel


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, *, on_cell: OnCell, stdout_file: TextIO, **options):
        start = nb_man.cell_start

        def cell_start(cell, cell_index=None, **more):
            on_cell(cell_index, len(nb_man.nb.cells))
            return start(cell, cell_index, **more)

        nb_man.cell_start = cell_start
        with tempfile.TemporaryDirectory(prefix="cselab-") as sockets:
            manager = _kernel_manager(Path(sockets), stdout_file)
            return super().execute_managed_notebook(
                nb_man, kernel_name, kernel_manager_class=manager, stdout_file=stdout_file, **options
            )


papermill_engines.register("cselab", _Engine)
# papermill warns of `x: str | None` as an unknown parameter; ours are checked before.
logging.getLogger("papermill").setLevel(logging.ERROR)


def execute(
    notebook: Path,
    output: Path,
    parameters: dict[str, Any],
    *,
    log: Path,
    cwd: Path,
    timeout: int | None,
    limit: int | None,
    on_cell: OnCell,
) -> None:
    """Run `notebook` in its own kernel process and save it, cell by cell, as `output`.

    timeout, limit: seconds that a cell, and that all of them together, may take. Raises NotebookFailed.
    """
    end = time.monotonic() + (limit or 0)

    def left(_cell: object) -> float | None:
        given = ([timeout] if timeout else []) + ([max(1.0, end - time.monotonic())] if limit else [])
        return min(given, default=None)

    with log.open("w", encoding="utf-8") as file:
        try:
            papermill.execute_notebook(
                notebook, output, parameters, engine_name="cselab", kernel_name="python3", progress_bar=False, cwd=cwd,
                on_cell=on_cell, stdout_file=file, stderr_file=file, timeout_func=left, autosave_cell_every=30,
            )  # fmt: skip
        except PapermillExecutionError as error:
            where = f"cell {error.exec_count}: {error.ename}: {error.evalue}".splitlines()[0]
            kinds = (CselabError, *CselabError.__subclasses__())
            own = error.ename in {kind.__name__ for kind in kinds}  # says all in its one line
            raise NotebookFailed(where, f"see {log}" if own else "\n".join(error.traceback)) from None
        except DeadKernelError:
            raise NotebookFailed("the kernel died (out of memory, or the process was killed)", _tail(log)) from None
        except CellTimeoutError:
            if limit and time.monotonic() >= end:
                raise NotebookFailed(f"it took longer than {limit} s; raise --notebook-timeout", _tail(log)) from None
            raise NotebookFailed(f"a cell took longer than {timeout} s; raise --timeout", _tail(log)) from None


def _tail(log: Path, lines: int = 20) -> str:
    return "\n".join(
        [f"last lines of {log}:", *log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]]
    )
