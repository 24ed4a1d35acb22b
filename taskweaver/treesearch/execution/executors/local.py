"""LocalExecutor: jobs run in processes of this machine."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.execution.executors.probe import WorkerFacts, probe_machine
from taskweaver.treesearch.execution.executors.protocol import NO_RESOURCES, JobCall, Resources
from taskweaver.treesearch.execution.executors.worker_pool import WorkerPool
from taskweaver.treesearch.execution.gpus import gpus

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
        return self._pool.submit_within(
            deadline_s, call.function, *call.args, is_alone=resources.is_alone
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
