"""Execute one notebook with papermill, in a kernel of this Python interpreter, with a log."""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import nbformat
import papermill
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from traitlets import default

from cselab.errors import CselabError, Stopped

OnCell = Callable[[int, int], None]
"""Function of the index of the cell that starts and the number of cells."""


class NotebookFailed(CselabError):
    """A notebook did not finish: one line, and as `detail` the traceback or the log's end."""

    def __init__(self, summary: str, detail: str):
        super().__init__(summary)
        self.detail = detail


class _ThisInterpreter(KernelSpecManager):
    """Kernels of this interpreter, whichever kernel a notebook names."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        # output of dying native code must reach the log directly, not through a kernel's thread
        keep_stderr = "--IPKernelApp.capture_fd_output=False"
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", keep_stderr]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def _kernel_manager(sockets: Path, stdout_file: TextIO) -> type[AsyncKernelManager]:
    """A class of kernels of this interpreter, with sockets in a folder and output in a file."""
    windows = sys.platform == "win32"

    class Kernel(AsyncKernelManager):
        transport = "tcp" if windows else "ipc"  # ports of parallel runs may collide

        @default("ip")
        def _ip(self):  # the default is a name in the working folder, equal for all runs
            return "127.0.0.1" if windows else str(sockets / "kernel")

        @default("kernel_spec_manager")
        def _spec_manager(self):
            return _ThisInterpreter()

        async def _async_launch_kernel(self, kernel_cmd, **kw):
            files = {"stdout": stdout_file, "stderr": stdout_file}
            await super()._async_launch_kernel(kernel_cmd, **{**kw, **files})

        _launch_kernel = _async_launch_kernel

    return Kernel


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(
        cls, nb_man, kernel_name, *, on_cell: OnCell, stdout_file: TextIO, **options
    ):
        start = nb_man.cell_start

        def cell_start(cell, cell_index=None, **more):
            on_cell(cell_index, len(nb_man.nb.cells))
            return start(cell, cell_index, **more)

        nb_man.cell_start = cell_start
        # the address of a socket has at most 107 characters
        short = "/tmp" if len(tempfile.gettempdir()) > 80 and os.path.isdir("/tmp") else None
        with tempfile.TemporaryDirectory(prefix="cselab-", dir=short) as sockets:
            manager = _kernel_manager(Path(sockets), stdout_file)
            options |= {"kernel_manager_class": manager, "stdout_file": stdout_file}
            super().execute_managed_notebook(nb_man, kernel_name, **options)
        _end_where_stopped(nb_man.nb)


def _end_where_stopped(nb: nbformat.NotebookNode) -> None:
    """Of a notebook that raised `Stopped`: its reason in place of the error, and no later cells."""
    for number, cell in enumerate(nb.cells):
        for output in cell.get("outputs", ()):
            if output.get("ename") == Stopped.__name__:
                text = {"text/markdown": f"**This run stops here.** {output.evalue}"}
                cell.outputs = [nbformat.v4.new_output("display_data", text)]
                cell.metadata.papermill.exception = False  # else papermill calls it a failure
                nb.metadata.papermill["stopped"] = output.evalue
                del nb.cells[number + 1 :]
                return


papermill_engines.register("cselab", _Engine)
# papermill warns of `x: str | None` as an unknown parameter; `parameters.py` has checked them.
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
) -> str:
    """Run a notebook in its own kernel process and save it, cell by cell.

    Args:
        parameters: Values by name, from `parameters.assign`.
        log: File for the output of the kernel.
        cwd: Working folder of the kernel.
        timeout: Seconds for each cell; None for no limit.
        limit: Seconds for the whole notebook; None for no limit.

    Returns:
        The reason of a notebook that stopped early, by `Stopped`; else an empty text.

    Raises:
        NotebookFailed: For a cell's error, a dead kernel, and a time that ran out.
    """
    end = time.monotonic() + (limit or 0)

    def seconds_left(_cell: object) -> float | None:
        limits: list[float] = [timeout] if timeout else []
        if limit:
            limits.append(max(1.0, end - time.monotonic()))
        return min(limits, default=None)

    with log.open("w", encoding="utf-8") as file:
        try:
            nb = papermill.execute_notebook(
                _literally(notebook),
                _literally(output),
                parameters,
                engine_name="cselab",
                kernel_name="python3",
                language="python",  # a notebook need not say so
                progress_bar=False,
                cwd=cwd,
                on_cell=on_cell,
                stdout_file=file,
                stderr_file=file,
                timeout_func=seconds_left,
                autosave_cell_every=30,
            )
            return nb.metadata.papermill.get("stopped", "")
        except PapermillExecutionError as error:
            where = f"cell {error.exec_count}: {error.ename}: {error.evalue}".splitlines()[0]
            kinds: list[type] = [CselabError, *CselabError.__subclasses__()]
            one_line = error.ename in {kind.__name__ for kind in kinds}  # needs no traceback
            detail = f"see {log}" if one_line else "\n".join(error.traceback)
            raise NotebookFailed(where, detail) from None
        except DeadKernelError:
            died = "the kernel died (out of memory, or the process was killed)"
            raise NotebookFailed(died, _tail(log)) from None
        except CellTimeoutError:
            late = f"a cell took longer than {timeout} s; raise --timeout"
            if limit and time.monotonic() >= end:
                late = f"it took longer than {limit} s; raise --notebook-timeout"
            raise NotebookFailed(late, _tail(log)) from None


def _literally(path: Path) -> str:
    """A path as papermill takes it, which fills in what is between braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _tail(log: Path, lines: int = 20) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    return "\n".join([f"last lines of {log}:", *text.splitlines()[-lines:]])
