"""The part of the Dask executor that runs in a Dask worker.

A Dask worker hosts a `WorkerPool`: programs run in its processes, so deadlines and cancelling end
them and all they started. A thread of Dask waits for each job. Dask stops no task that runs; but a
future that is cancelled, a coordinator that is gone and a scheduler that is gone all show in the
state of the Dask worker, which the thread watches.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Worker, get_worker

from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.errors import WorkerLost
from taskweaver.treesearch.execution.executors.worker_pool import WorkerPool
from taskweaver.treesearch.execution.executors.worker_process import WorkerReply
from taskweaver.treesearch.execution.machine import WorkerFacts, probe_machine

GPU = "GPU"
"""The Dask resource of a GPU; a worker that declares it itself keeps its own number."""
ANSWER_S = 60.0
"""Longest wait for a worker that is asked something."""
_WATCH_S = 0.25
_IDLE_S = 60.0
_WORKING = frozenset({"running", "paused", "closing_gracefully"})
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


@dataclass(frozen=True, slots=True)
class HostedJob:
    """A job as it travels.

    Attributes:
        call: The packed call.
        key: Its name at the scheduler.
        run: Folder of its run.
        marker: File that is made when it starts: Dask starts a task again when its worker dies.
        deadline_s: Longest time from its start; 0 is none.
        gpus: GPUs for itself, 0 or 1.
        is_alone: Whether it waits for its turn at the host.
    """

    call: bytes
    key: str
    run: str
    marker: Path
    deadline_s: float
    gpus: int
    is_alone: bool


class _Pools:
    """The pools of one Dask worker: one for its threads, and one with a slot for each GPU."""

    def __init__(self, threads: int) -> None:
        self.gpus: tuple[str, ...] | None = None
        self._threads = threads
        self._pools: dict[bool, WorkerPool] = {}
        self._jobs = 0
        self._lock = threading.Lock()

    def submit(self, job: HostedJob) -> Future[Any]:
        """Run a job."""
        own = self.gpus if job.gpus and self.gpus else ()
        with self._lock:
            pool = self._pools.get(bool(own))
            if pool is None:
                pool = WorkerPool(len(own) or self._threads, own, idle_s=_IDLE_S)
                self._pools[bool(own)] = pool
            self._jobs += 1
            future = pool.submit_packed(job.deadline_s, job.call, is_alone=job.is_alone)
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        with self._lock:
            self._jobs -= 1

    def rest(self) -> None:
        """End the processes, unless a job runs."""
        with self._lock:
            if not self._jobs:
                for pool in self._pools.values():
                    pool.shutdown()
                self._pools.clear()


_POOLS: dict[str, _Pools] = {}
_OPEN: dict[str, tuple[str, Future[Any]]] = {}
"""Run and future of each job that runs, by its key."""
_LOCK = threading.Lock()


def run_hosted(job: HostedJob) -> tuple[str, WorkerReply]:
    """Run a job, as a task of Dask; return the host it ran on, and the outcome.

    Raises:
        WorkerLost: If another worker had begun it, or it is not wanted any more.
    """
    worker = get_worker()
    host = socket.gethostname()
    _begin(job, f"{host} ({worker.address})")
    future = _pools(worker).submit(job)
    _OPEN[job.key] = job.run, future
    try:
        while not wait([future], _WATCH_S).done:
            task = worker.state.tasks.get(job.key)
            is_given_up = task is None or task.state == "cancelled"
            if is_given_up or worker.status.value not in _WORKING:
                future.cancel()
        return host, WorkerReply(future.result())
    except CancelledError:
        raise WorkerLost("The job was ended: it was not wanted any more.") from None
    except Exception as error:  # noqa: BLE001 - it is the caller's to handle
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return host, WorkerReply(error=WorkerLost(f"{host} cannot write: {error}."))
        return host, WorkerReply(error=error)
    finally:
        del _OPEN[job.key]


def _begin(job: HostedJob, where: str) -> None:
    """Claim a job. A second start means that the worker of the first one died."""
    try:
        with job.marker.open("x", encoding="utf-8") as file:
            file.write(where)
    except FileExistsError:
        lost = job.marker.read_text("utf-8")
        raise WorkerLost(f"The worker on {lost} was lost while it ran the job.") from None
    except OSError as error:
        raise WorkerLost(f"The worker on {where} cannot begin the job: {error}.") from error


def _pools(worker: Worker) -> _Pools:
    with _LOCK:
        return _POOLS.setdefault(worker.address, _Pools(worker.state.nthreads))


async def end_jobs(run: str) -> None:
    """End the jobs of a run that an earlier coordinator left, and wait for their end."""
    futures = [future for of_run, future in list(_OPEN.values()) if of_run == run]
    for future in futures:
        future.cancel()
    await asyncio.to_thread(wait, futures)


async def leave(run: str, dask_worker: Worker) -> None:
    """End the jobs of a run, and the processes of a Dask worker unless another run uses them."""
    await end_jobs(run)
    await asyncio.to_thread(_pools(dask_worker).rest)


@dataclass(frozen=True, slots=True)
class HostedFacts:
    """Facts about a Dask worker. Its own GPUs are None until they are assigned."""

    facts: WorkerFacts
    threads: int
    gpus: tuple[str, ...] | None


async def probe_worker(request: SandboxRequest, run_dir: Path, dask_worker: Worker) -> HostedFacts:
    """Return facts about the machine of a Dask worker, asked there."""
    facts = await asyncio.to_thread(probe_machine, request, run_dir)
    return HostedFacts(facts, dask_worker.state.nthreads, _pools(dask_worker).gpus)


async def assign_gpus(names: tuple[str, ...], dask_worker: Worker) -> None:
    """Give a Dask worker its own GPUs of those of its host, unless it has them already."""
    pools = _pools(dask_worker)
    if pools.gpus is None:
        pools.gpus = names
    if GPU not in dask_worker.state.total_resources:
        await dask_worker.set_resources(**{GPU: len(pools.gpus)})
