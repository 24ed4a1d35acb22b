"""The states of a session's kernels at round ends: taken after the answer is shown, then stored.

At a round's end two children are forked off the kernel, in the background: a snapshot, which
branches start from at once, and a writer, which stores the variables. The next cell waits for the
forks, never for the writing. One writer writes at a time; of those of a branch that wait the
newest wins.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from taskweaver.ces.common import Client, Snapshot, forkable
from taskweaver.ces.errors import KernelError
from taskweaver.ces.state_folder import StateFolder
from taskweaver.ces.state_transfer import StateWriter
from taskweaver.logging.log import TelemetryLogger

_MOST = 16
"""Most snapshots that are kept: each is a process, however little memory it takes."""


@dataclass(slots=True)
class _Kept:
    """A snapshot, and the memory it alone keeps.

    `resident_bytes` is the size of its kernel at that moment. `extra_bytes` is the memory that the
    kernel has overwritten or freed since, up to the next snapshot; None until that one is taken.
    """

    snapshot: Snapshot
    client: Client
    resident_bytes: int
    extra_bytes: int | None = None
    used_at: float = field(default_factory=time.monotonic)


class Snapshots:
    """Snapshots by branch and round, within a memory budget. Close it.

    Each is measured once, when its kernel's next one is taken: its extra memory is settled then.
    """

    def __init__(self, limit_bytes: float, most: int = _MOST) -> None:
        """Prepare to keep `most` snapshots, and `limit_bytes` of extra memory; 0 keeps none."""
        self._limit_bytes, self._most = limit_bytes, most
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._refused: dict[str, str] = {}

    def take(self, branch: str, round_id: str, client: Client) -> None:
        """Keep the state after a round, and drop those over the budget, longest unused first."""
        if not self._limit_bytes:
            return
        try:
            kernel = forkable(client)
            now, snapshot = kernel.footprint(), kernel.snapshot()
        except KernelError as error:
            self._refused[round_id] = str(error)
            return
        for earlier in self._kept.values():
            if earlier.client is client and earlier.extra_bytes is None:
                # Pages that the kernel wrote since are its own now. As far as it has grown they
                # are new; the others replaced pages that the snapshot keeps.
                grown = now.resident_bytes - earlier.resident_bytes
                earlier.extra_bytes = max(0, now.resident_bytes - now.shared_bytes - grown)
        self._drop((branch, round_id))  # of an attempt that did not finish
        self._kept[branch, round_id] = _Kept(snapshot, client, now.resident_bytes)
        while len(self._kept) > self._most or self.extra_bytes > self._limit_bytes:
            self._drop(min(self._kept, key=lambda key: self._kept[key].used_at))

    def _drop(self, key: tuple[str, str]) -> None:
        if key in self._kept:
            self._kept.pop(key).snapshot.close()

    @property
    def extra_bytes(self) -> int:
        """The memory that the snapshots take up beyond their kernels, as far as it is settled."""
        return sum(kept.extra_bytes or 0 for kept in self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, branches: Sequence[str], round_id: str) -> Snapshot | None:
        """Return the snapshot after a round, as the first of some branches took it."""
        for branch in branches:
            kept = self._kept.get((branch, round_id))
            if kept is not None:
                kept.used_at = time.monotonic()
                return kept.snapshot
        return None

    def why_none(self, round_id: str) -> str:
        """Return why there is no snapshot of a round."""
        return self._refused.get(round_id, "No snapshot is kept from that round.")

    def close(self) -> None:
        """Discard all snapshots."""
        for key in list(self._kept):
            self._drop(key)


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """A round that ran code."""

    branch: str
    round_id: str
    client: Client


class RoundStates:
    """Takes and stores states at round ends, in threads of its own. Close it."""

    def __init__(
        self,
        snapshots: Snapshots,
        folder: StateFolder,
        logger: TelemetryLogger,
        in_use: Callable[[], Collection[Path]],
        problems: Sequence[str] = (),
    ) -> None:
        """Prepare. No thread runs yet.

        Args:
            snapshots: Keeps the states that branches start from.
            folder: Keeps those on disk.
            logger: The log.
            in_use: Returns the manifests that stay when the folder is over its limit.
            problems: Sentences for `take_problems`.
        """
        self.snapshots = snapshots
        self.folder = folder
        self._logger = logger
        self._in_use = in_use
        self._forker = ThreadPoolExecutor(1, thread_name_prefix="round-end")
        self._storer = ThreadPoolExecutor(1, thread_name_prefix="state")
        self._lock = threading.Lock()
        self._playing: set[str] = set()
        self._again: dict[str, RoundEnd] = {}
        self._forks: Future[None] | None = None
        self._waiting: dict[str, tuple[Future[None], StateWriter]] = {}
        self._stuck: dict[str, str] = {}
        self._problems = list(problems)
        self._noted: set[str] = set()
        self._is_closed = False

    def begin_round(self, branch: str) -> None:
        """Wait until the state of the last round is taken: a cell of the branch may run then."""
        with self._lock:
            self._playing.add(branch)
        self.settle()

    def end_round(self, branch: str, ends: Sequence[RoundEnd]) -> None:
        """Take and store the states of the end of a branch's round, of those on which code ran.

        Returns at once.
        """
        with self._lock:
            self._playing.discard(branch)
            again = self._again.pop(branch, None)
            if self._is_closed:
                return
            if again is not None and again.branch not in {end.branch for end in ends}:
                self._forks = self._forker.submit(self._take, again, is_again=True)
            for end in ends:
                self._forks = self._forker.submit(self._take, end)

    def settle(self) -> None:
        """Wait until the state of the last round is taken."""
        with self._lock:
            forks = self._forks
        if forks is not None:
            forks.result()

    def finish(self) -> None:
        """Wait until the newest state is stored, or return at once when closed."""
        if not self._is_closed:
            self._finish()

    def _finish(self) -> None:
        before = None
        while before is not self._forks:
            before = self._forks
            self.settle()
            with suppress(RuntimeError):  # closed by another thread meanwhile
                self._storer.submit(lambda: None).result()

    def take_problems(self) -> list[str]:
        """Return, once each, a sentence for each state that could not be stored."""
        problems, self._problems = self._problems, []
        return problems

    def note(self, sentence: str) -> None:
        """Keep a sentence for `take_problems`, unless it was kept before."""
        if sentence not in self._noted:
            self._noted.add(sentence)
            self._problems.append(sentence)

    def _take(self, end: RoundEnd, *, is_again: bool = False) -> None:
        try:
            if not is_again:
                self.snapshots.take(end.branch, end.round_id, end.client)
            if self.folder.limit_bytes:
                self._start_storing(end)
        except Exception:
            self._logger.exception(f"the state after round {end.round_id} is not kept")
            self._problems.append("The variables are not stored (the log has the details).")

    def _start_storing(self, end: RoundEnd) -> None:
        try:
            writer = forkable(end.client).state_writer(self._stuck, self.folder.limit_bytes)
        except KernelError as error:
            self._logger.info(f"the state after round {end.round_id} is not stored: {error}")
            return
        older = self._waiting.get(end.branch)
        if older is not None and older[0].cancel():
            older[1].close()
        self._waiting[end.branch] = self._storer.submit(self._store, end, writer), writer

    def _store(self, end: RoundEnd, writer: StateWriter) -> None:
        try:
            stored = writer.write(self.folder, end.branch, end.round_id)
            if stored.stuck_at and stored.stuck_at not in self._stuck:
                self._stuck[stored.stuck_at] = f"storing it made {stored.problem}"
                self._take_again(end)
            elif stored.problem:
                self._report(stored.problem)
                self.folder.remove_incomplete()
            else:
                self.folder.tidy(self._in_use)
        except Exception as error:
            self._logger.exception(f"the state after round {end.round_id} is not stored")
            self._report(f"{type(error).__name__}: {error}")
        finally:
            writer.close()

    def _take_again(self, end: RoundEnd) -> None:
        """Store the state without the variable that held it up, once no cell can run."""
        with self._lock:
            if end.branch in self._playing:
                self._again[end.branch] = end  # at the end of the open round, if that runs no code
            else:
                self._forks = self._forker.submit(self._take, end, is_again=True)

    def _report(self, problem: str) -> None:
        self._logger.warning(f"variables are not stored: {problem}")
        self._problems.append(
            f"The variables are not stored ({problem}): --resume finds those of an earlier round."
        )

    def close(self) -> None:
        """Store the newest state, then discard the snapshots. An interrupt breaks that off."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        try:
            self._finish()
        except BaseException:
            for future, writer in self._waiting.values():
                if future.cancel():
                    writer.close()
                else:
                    writer.cancel()
            raise
        finally:
            self._forker.shutdown(wait=True)
            self._storer.shutdown(wait=True)
            self.snapshots.close()
