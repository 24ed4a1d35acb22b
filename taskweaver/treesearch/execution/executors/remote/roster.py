"""The Dask workers that may run the jobs of a run: probed, and all of one kind."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import Client

from taskweaver import __version__
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.errors import ExecutorLost
from taskweaver.treesearch.execution.executors.probe import WorkerFacts
from taskweaver.treesearch.execution.executors.remote.hosted import (
    ANSWER_S,
    HostedFacts,
    assign_gpus,
    probe_worker,
)

_AGE_S = 1.0


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
        """Run a function on workers; return results and, of those that fail, errors."""
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
