"""Clusters that compute runs: a local cluster of processes, or any dask scheduler."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster, Security
from distributed.comm import connect

from cselab.errors import CselabError
from cselab.experiments.code import library_hash
from cselab.machine import MALLOC

START = 60
"""Seconds that a scheduler or the first worker may take to answer."""


@contextmanager
def connected(scheduler: str | None, workers: int, threads: int) -> Iterator[Client]:
    """A client of a scheduler ("tcp://host:8786"), or of a local cluster of so many processes with
    so many threads of torch each.

    Raises:
        CselabError: For a scheduler that does not answer, has no worker, or whose workers run other
            code than this process.
    """
    if scheduler is not None:
        with _attached(scheduler) as client:
            yield client
        return
    if workers < 1 or threads < 1:
        raise CselabError(f"--workers {workers} --threads {threads}: expected 1 or more of both")
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = {**dict.fromkeys(names, str(threads)), "TOKENIZERS_PARALLELISM": "false"}
    options = {"threads_per_worker": 1, "processes": True, "silence_logs": 50, "env": environment}
    with (  # `env` comes too late for malloc, and dask's own values are worse
        dask.config.set({"distributed.nanny.pre-spawn-environ": MALLOC}),
        LocalCluster(n_workers=workers, dashboard_address=":0", **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


async def _greet(address: str) -> None:
    """Wait for a scheduler's answer; for another server's, a client would wait for ever."""
    if not address.startswith("inproc:"):
        options = Security().get_connection_args("client")
        async with asyncio.timeout(START):
            (await connect(address, timeout=START, **options)).abort()


@contextmanager
def _attached(scheduler: str) -> Iterator[Client]:
    try:
        asyncio.run(_greet(scheduler))
        client = Client(scheduler, timeout=START)
    except Exception as error:  # what another server answers is read as anything
        raise CselabError(
            f"no scheduler answers at {scheduler} ({str(error) or type(error).__name__}); start "
            "one: dask scheduler"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=START)
        except TimeoutError:
            raise CselabError(
                f"the scheduler at {scheduler} has no worker; start some: "
                f"dask worker {scheduler} --nthreads 1"
            ) from None
        for worker, source in client.run(library_hash).items():
            if source != library_hash():
                raise CselabError(
                    f"worker {worker} runs other source ({source}) than this process "
                    f"({library_hash()}); install the same"
                )
        yield client
