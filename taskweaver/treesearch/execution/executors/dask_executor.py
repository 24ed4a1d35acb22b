"""DaskExecutor: jobs run on the workers of a Dask scheduler, which share this file system."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from distributed import Client

from taskweaver import __version__
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.errors import ExecutorLost, SearchError, WorkerLost
from taskweaver.treesearch.execution.executors.dask_worker import (
    ANSWER_S,
    GPU,
    HostedFacts,
    HostedJob,
    assign_gpus,
    end_jobs,
    leave,
    probe_worker,
    run_hosted,
)
from taskweaver.treesearch.execution.executors.protocol import NO_RESOURCES, JobCall, Resources
from taskweaver.treesearch.execution.executors.worker_pool import WorkerFuture, packed_call
from taskweaver.treesearch.execution.executors.worker_process import WorkerReply
from taskweaver.treesearch.execution.machine import WorkerFacts
from taskweaver.treesearch.record.places import remove
from taskweaver.utils.ids import create_id
from taskweaver.utils.text import counted

_AGE_S = 1.0
T = TypeVar("T")
_CONNECT_S = 10.0
_FIRST_WORKER_S = 60.0
_WATCH_S = 1.0
_HOST_GONE_S = 30.0
_NO_WORKER_S = 300.0
_MARKERS = ".jobs-"
_AGAIN = "Start it again, and go on with --resume."


class Roster:
    """The workers of a scheduler, probed when they are first seen.

    Workers of one run are of one kind: another CPU, compiler or sandbox would make its figures, and
    what prompts say of the machine, untrue for some of its attempts.

    Attributes:
        notes: Remarks for the user about workers.
    """

    def __init__(self, client: Client, request: SandboxRequest, run_dir: Path) -> None:
        self.notes: list[str] = []
        self._client = client
        self._request, self._run_dir = request, run_dir
        self._known: dict[str, HostedFacts] = {}
        self._refused: dict[str, str] = {}
        self._kind = ""
        self._read_at = 0.0
        self._lock = threading.Lock()

    def choose_kind(self) -> WorkerFacts:
        """Choose the kind with the most threads, and return facts about its first worker.

        Raises:
            ExecutorLost: If no worker can run jobs.
        """
        self._refresh()
        threads: Counter[str] = Counter()
        for known in self._known.values():
            if not known.facts.problem:
                threads[known.facts.kind] += known.threads
        if not threads:
            problems = {known.facts.problem for known in self._known.values()}
            problems |= set(self._refused.values())
            raise ExecutorLost(f"No Dask worker can run jobs: {'; '.join(sorted(problems))}.")
        self._kind = max(threads, key=lambda kind: (threads[kind], kind))
        for address, known in self._known.items():
            self._note(address, known.facts)
        self._assign_gpus()
        fitting = [known.facts for known in self._known.values() if self._fits(known)]
        return min(fitting, key=lambda facts: facts.host)

    @property
    def threads(self) -> int:
        """Threads of the workers there are."""
        return sum(self._known[address].threads for address in self.addresses())

    def addresses(self, host: str = "") -> list[str]:
        """Return the addresses of the workers there are, on a host if one is named."""
        with self._lock:
            if time.monotonic() - self._read_at > _AGE_S:
                self._refresh()
                self._assign_gpus()
            return [
                address
                for address, known in self._known.items()
                if self._fits(known) and host in {"", known.facts.host}
            ]

    def _fits(self, known: HostedFacts) -> bool:
        return not known.facts.problem and known.facts.kind == self._kind

    def _refresh(self) -> None:
        """Probe the workers that are new, and forget those that are gone."""
        there = self._client.scheduler_info()["workers"]
        for address in self._known.keys() - there.keys():
            del self._known[address]
        new = [address for address in there if address not in self._known | self._refused]
        self._read_at = time.monotonic()
        answers = self._ask(new, probe_worker, self._request, self._run_dir)
        for address, answer in sorted(answers.items()):
            if isinstance(answer, HostedFacts) and answer.facts.version == __version__:
                self._known[address] = answer
                self._note(address, answer.facts)
            else:
                self._refused[address] = reason = _reason(answer)
                self._say(f"{address} is not used: {reason}")

    def _ask(
        self, addresses: list[str], function: Callable[..., Any], *args: Any
    ) -> dict[str, Any]:
        """Run a function on workers, and return results and, of those that fail, errors."""
        if not addresses:
            return {}
        try:
            answers: dict[str, Any] = self._client.run(
                function,
                *args,
                workers=addresses,
                on_error="return",
                callback_timeout=ANSWER_S,
            )
        except (OSError, TimeoutError) as error:
            return dict.fromkeys(addresses, error)
        return answers

    def _note(self, address: str, facts: WorkerFacts) -> None:
        if facts.problem:
            self._say(f"{address} on {facts.host} is not used: {facts.problem}")
        elif self._kind and facts.kind != self._kind:
            self._say(f"{address} on {facts.host} is not used, as it differs: {facts.title}")

    def _say(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _assign_gpus(self) -> None:
        """Divide the GPUs of each host among its workers that have none of their own yet."""
        for host in {known.facts.host for known in self._known.values() if self._fits(known)}:
            on_host = {
                address: known
                for address, known in sorted(self._known.items())
                if known.facts.host == host and known.facts.gpus
            }
            taken = {gpu for known in on_host.values() for gpu in known.gpus or ()}
            waiting = [address for address, known in on_host.items() if known.gpus is None]
            for number, address in enumerate(waiting):
                known = on_host[address]
                left = [gpu for gpu in known.facts.gpus if gpu not in taken]
                own = tuple(left[number :: len(waiting)])
                self._ask([address], assign_gpus, own)  # without, it gets no job that needs one
                self._known[address] = HostedFacts(known.facts, known.threads, own)


def _reason(answer: Any) -> str:
    """Return why a worker could not be probed."""
    if isinstance(answer, HostedFacts):
        return f"it has taskweaver {answer.facts.version}, and the coordinator {__version__}"
    if isinstance(answer, ImportError):
        return f"taskweaver {__version__} is not installed there ({answer})"
    return f"{answer!r:.300}"


class _Client(Client):
    """A client that ends its thread when its scheduler does not answer.

    `Client` leaves it running, and its finalizer waits for a lock that the same thread may hold.
    """

    def start(self, **kwargs: Any) -> None:
        """Connect (see `Client`)."""
        try:
            super().start(**kwargs)
        except BaseException:
            self.close()
            self._loop_runner.stop()
            raise


class DaskExecutor:
    """Runs jobs on Dask workers. Close it.

    Each job has a thread here, which submits it, watches its worker, and settles its future. A job
    begins at most once: when its worker dies, Dask begins it again elsewhere, and finds the marker
    of the first start.
    """

    def __init__(self, address: str, count: int, request: SandboxRequest, run_dir: Path) -> None:
        """Connect to a scheduler, and end the jobs that a killed coordinator of the run left.

        Args:
            address: Address of the scheduler.
            count: Most jobs at a time.
            request: The sandbox of commands.
            run_dir: Folder of the run.

        Raises:
            ExecutorLost: If there is no scheduler, or no worker that can run jobs.
        """
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # it is told here
        self._address = address
        self._run = f"{run_dir.name}-{create_id()[-8:]}"
        self._folder = run_dir
        self._markers = run_dir / f"{_MARKERS}{self._run}"
        self._hosts: dict[str, str] = {}
        self._open: set[WorkerFuture] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        try:
            self._client = _Client(
                address, timeout=_CONNECT_S, set_as_default=False, name=f"taskweaver-{self._run}"
            )
        except (OSError, ValueError) as error:
            raise ExecutorLost(
                f"No Dask scheduler answers at {address}: {error}.",
                "Start one with `dask scheduler`, or choose search.executor local.",
            ) from error
        self._threads = ThreadPoolExecutor(count + 1, "search-dask")  # one more, for plots
        try:
            self._roster = self._opened(request)
        except BaseException:
            self.close()
            raise

    def _opened(self, request: SandboxRequest) -> Roster:
        try:
            self._client.wait_for_workers(1, timeout=_FIRST_WORKER_S)
            self._client.run(end_jobs, str(self._folder), callback_timeout=ANSWER_S)
            for old in self._folder.glob(f"{_MARKERS}*"):
                remove(old)
            self._markers.mkdir()
            roster = Roster(self._client, request, self._folder)
            self._facts = roster.choose_kind()
        except TimeoutError as error:
            raise ExecutorLost(
                f"No worker came to {self._address} within {_FIRST_WORKER_S:g} s.",
                f"Start one on each host with `dask worker {self._address}`.",
            ) from error
        except OSError as error:
            raise ExecutorLost(f"The scheduler at {self._address} is lost: {error}.") from error
        return roster

    @property
    def notes(self) -> list[str]:
        """Remarks for the user: where jobs run, and which workers are not used."""
        place = urlsplit(self._address)
        is_local = (place.hostname or "").startswith("127.") or place.hostname == "localhost"
        facts, workers = self.probe(), len(self._roster.addresses())
        notes = [f"{counted(workers, 'Dask worker')} with {self.capacity} threads: {facts.title}"]
        notes += [facts.warning] if facts.warning else []
        if place.scheme != "tls" and not is_local:
            notes.append(
                f"{self._address} has no TLS: who reaches it can run code as you"
                " ('A search on a laptop, a workstation, several hosts' in the documentation)"
            )
        return [*notes, *self._roster.notes]

    @property
    def capacity(self) -> int:
        """Threads of the workers there are."""
        return self._roster.threads

    def probe(self) -> WorkerFacts:
        """Return facts about the kind of machine that was chosen when the executor was opened."""
        return self._facts

    def host_of(self, group: str) -> str:
        """Return the host of a group, empty while none of its jobs has ended."""
        return self._hosts.get(group, "")

    def submit(
        self, call: JobCall[T], deadline_s: float, resources: Resources = NO_RESOURCES
    ) -> Future[T]:
        """Run a job on a worker (see `JobExecutor.submit`).

        Raises:
            RuntimeError: If the executor is closed.
        """
        future = WorkerFuture()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("The executor is closed.")
            self._open.add(future)
        future.add_done_callback(self._open.discard)  # one step, which needs no lock
        self._threads.submit(self._work, future, call, deadline_s, resources)
        return future

    def _work(
        self, future: WorkerFuture, call: JobCall[Any], deadline_s: float, resources: Resources
    ) -> None:
        """Run a job to its end, in a thread of its own, and settle its future."""
        try:
            job = HostedJob(
                call=packed_call(call.function, *call.args),
                key=f"{self._run}-{call.key}",
                run=str(self._folder),
                marker=self._markers / call.key,
                deadline_s=deadline_s,
                gpus=resources.gpus if self.probe().gpus else 0,
                is_alone=resources.is_alone,
            )
            host, reply = self._reply(future, job, resources.group)
            if resources.group:
                self._hosts[resources.group] = host
            future.settle(reply)
        except CancelledError:
            future.settle(WorkerReply())
        except Exception as error:  # noqa: BLE001 - it belongs to the reader of the future
            future.settle(WorkerReply(error=self._explained(error)))

    def _reply(self, future: WorkerFuture, job: HostedJob, group: str) -> tuple[str, WorkerReply]:
        """Submit a job, again while no worker has begun it; return its host and its outcome.

        Raises:
            CancelledError: If the future was cancelled.
            WorkerLost: If its worker died, or its host has no worker any more.
            ExecutorLost: If the scheduler is lost, or there is no worker.
        """
        reply = None
        while reply is None:
            addresses = self._placed(future, self._hosts.get(group, "") if group else "")
            task = self._client.submit(
                run_hosted,
                job,
                key=job.key,
                workers=addresses,
                resources={GPU: 1} if job.gpus else None,
                pure=False,
                retries=0,
            )
            future.has_begun = True
            future.add_done_callback(partial(_release, task))
            reply = self._watched(future, task, job, addresses)
            job = replace(job, key=f"{job.key}+")  # Dask may not have forgotten the first one
        return reply

    def _placed(self, future: WorkerFuture, host: str) -> list[str]:
        """Wait for workers, of one host if it is named, and return their addresses."""
        is_cancelled = threading.Event()
        future.add_done_callback(lambda _: is_cancelled.set())
        began = time.monotonic()
        while not (addresses := self._roster.addresses(host)):
            self._refuse_if_lost()
            waited_s = time.monotonic() - began
            if host and waited_s > _HOST_GONE_S:
                raise WorkerLost(f"{host}, where the attempt began, has no worker any more.")
            if waited_s > _NO_WORKER_S:
                raise ExecutorLost(
                    f"{self._address} has had no worker of the run's kind for {_NO_WORKER_S:g} s.",
                    "Start one, and go on with --resume.",
                )
            if is_cancelled.wait(_WATCH_S):
                raise CancelledError
        return addresses

    def _watched(
        self, future: WorkerFuture, task: Any, job: HostedJob, addresses: list[str]
    ) -> tuple[str, WorkerReply] | None:
        """Wait for a task, and return None when its workers are gone before one began it."""
        is_done = threading.Event()
        task.add_done_callback(lambda _: is_done.set())
        while not is_done.wait(_WATCH_S):
            self._refuse_if_lost()
            if set(self._roster.addresses()).isdisjoint(addresses):
                self._refuse_if_silent()
                if job.marker.exists():
                    where = job.marker.read_text("utf-8")
                    raise WorkerLost(f"The worker on {where} was lost while it ran the job.")
                task.release()
                return None
        try:
            reply: tuple[str, WorkerReply] = task.result(timeout=ANSWER_S)
        except CancelledError:
            if future.cancelled():
                raise
            self._refuse_if_lost()
            raise WorkerLost("Dask gave the job up.") from None
        return reply

    def _refuse_if_silent(self) -> None:
        """Ask the scheduler: a client that has just lost it still says that it is there."""
        try:
            if self._client.scheduler is not None:
                self._client.sync(self._client.scheduler.identity, callback_timeout=ANSWER_S)
        except (OSError, TimeoutError) as error:
            lost = f"The scheduler at {self._address} is lost: {error}."
            raise ExecutorLost(lost, _AGAIN) from error

    def _refuse_if_lost(self) -> None:
        if self._client.status != "running":
            raise ExecutorLost(f"The scheduler at {self._address} is lost.", _AGAIN)

    def _explained(self, error: Exception) -> SearchError:
        """Return an error of Dask as one of the search."""
        if isinstance(error, SearchError):
            return error
        if self._client.status != "running":
            return ExecutorLost(f"The scheduler at {self._address} is lost: {error}.", _AGAIN)
        return WorkerLost(f"Dask could not run the job: {error!r:.500}.")

    def close(self) -> None:
        """Cancel the open jobs and leave the scheduler. Safe to call again."""
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
            jobs = list(self._open)
        if not is_first:
            return
        for job in jobs:
            job.cancel()
        self._threads.shutdown()
        if self._client.status == "running":
            with suppress(Exception):  # their processes end later, without jobs
                self._client.run(
                    leave, str(self._folder), on_error="ignore", callback_timeout=_CONNECT_S
                )
        self._client.close()
        with suppress(SearchError):  # its folder may be gone already
            remove(self._markers)


def _release(task: Any, _: object) -> None:
    """Give a task up: the scheduler forgets it, and its worker ends the job if it still runs."""
    task.release()
