"""The executor of a run: in processes of this machine, or on Dask workers."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.executors.protocol import (
    NO_RESOURCES,
    JobCall,
    JobExecutor,
    Resources,
)
from taskweaver.treesearch.execution.executors.worker_pool import WorkerPool
from taskweaver.treesearch.execution.machine import WorkerFacts, gpus, probe_machine
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.utils.system.requirements import install_command

T = TypeVar("T")


class LocalExecutor:
    """Runs jobs in a pool of processes, which share the machine's GPUs in turn. Close it."""

    def __init__(self, count: int, sandbox: SandboxRequest) -> None:
        """Make `count` slots.

        Raises:
            ValueError: If `count` is below 1.
        """
        self.capacity = count
        self.notes: tuple[str, ...] = ()
        self._sandbox = sandbox
        known = gpus()
        # One more, for plots beside the attempts, unless it took the GPU of an attempt.
        has_more = not known or len(known) > count
        self._pool = WorkerPool(count + has_more, known)

    def submit(
        self,
        call: JobCall[T],
        deadline_s: float,
        resources: Resources = NO_RESOURCES,
    ) -> Future[T]:
        """Run a job in a process; see `JobExecutor.submit`.

        Raises:
            RuntimeError: If the executor is closed.
        """
        return self._pool.submit(
            call.function, *call.args, deadline_s=deadline_s, is_alone=resources.is_alone
        )

    def host_of(self, group: str) -> str:  # noqa: ARG002 - there is one
        """Return no name: all jobs run on this machine."""
        return ""

    def probe(self) -> WorkerFacts:
        """Return facts about this machine."""
        return probe_machine(self._sandbox)

    def close(self) -> None:
        """Cancel the open jobs and end the processes; safe to call again."""
        self._pool.shutdown(cancel_futures=True)


def open_executor(config: SearchConfig, sandbox: SandboxRequest, run_dir: Path) -> JobExecutor:
    """Open the executor of a run that a configuration names.

    `run_dir` is the folder of the run.

    Raises:
        SearchError: If it cannot be opened as configured.
    """
    if config.executor == "dask":
        return _dask_executor(config, sandbox, run_dir)
    return LocalExecutor(config.workers, sandbox)


def _dask_executor(config: SearchConfig, sandbox: SandboxRequest, run_dir: Path) -> JobExecutor:
    if config.is_script:
        raise SearchError(
            "Scripts run in kernels of this machine, not on Dask workers.",
            "Choose search.phase_mode split, or search.executor local.",
        )
    if not config.scheduler:
        raise SearchError(
            "search.executor dask needs the address of a scheduler.",
            "Give it, for example --scheduler tcp://127.0.0.1:8786.",
        )
    try:
        from taskweaver.treesearch.execution.executors.dask_executor import DaskExecutor
    except ImportError as error:
        raise SearchError(
            f"search.executor dask needs a package that is missing: {error}.",
            f"Install it: {install_command('dask')}.",
        ) from error
    return DaskExecutor(config.scheduler, config.workers, sandbox, run_dir)
