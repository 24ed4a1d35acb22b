"""The protocol of executors, which run the jobs of a search here or on other machines.

Jobs are plain data and functions that can be imported, so that a job can travel; it names files by
path. A worker never opens the memory or the log of a run, and never calls a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from taskweaver.treesearch.execution.machine import WorkerFacts

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class JobCall(Generic[T_co]):
    """A job: a function that can be imported, with its arguments.

    Attributes:
        function: The function; it, its arguments and its result can be pickled.
        args: Its arguments.
        key: Name of the job, which no other job of the run has: ``<node>-<phase>-<try>``.
    """

    function: Callable[..., T_co]
    args: tuple[object, ...] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of a job.

    Attributes:
        gpus: GPUs that it needs for itself, where workers have any: 0 or 1.
        group: Jobs of one group run on the same host; empty for any host.
        is_alone: Whether it waits while another such job runs on its host, also one of another run.
    """

    gpus: int = 0
    group: str = ""
    is_alone: bool = False


NO_RESOURCES = Resources()


class JobExecutor(Protocol):
    """Runs jobs of a search. Close it."""

    @property
    def notes(self) -> Sequence[str]:
        """Remarks for the user about the machines that run jobs."""
        ...

    @property
    def capacity(self) -> int:
        """Number of jobs that can run at the same time now."""
        ...

    def submit(
        self, call: JobCall[T], deadline_s: float, resources: Resources = NO_RESOURCES
    ) -> Future[T]:
        """Run a job in a worker; the deadline counts from its start, or its turn; 0 is none.

        Cancelling the future ends the job, and every process it started, also while it runs. Its
        errors are `WorkerLost` when the worker died or the deadline passed, `NotTransferable`,
        `ExecutorLost` when no job can run any more, or the error of the function.

        Raises:
            RuntimeError: If the executor is closed.
        """
        ...

    def host_of(self, group: str) -> str:
        """Return the host of a group; empty while it is unknown, and where there is one host."""
        ...

    def probe(self) -> WorkerFacts:
        """Return facts about the machines that run the jobs.

        Raises:
            ExecutorLost: If there is no worker.
        """
        ...

    def close(self) -> None:
        """Cancel the open jobs and end the processes; safe to call again."""
        ...
