"""Cases played side by side, each in a thread of its own and within its time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from taskweaver.evaluation.cases.case import EvalCase
from taskweaver.evaluation.results.row import ResultRow
from taskweaver.evaluation.running.play import CasePlay, PlaySetup

GRACE_S = 20.0
"""Time in which a case that was interrupted, then stopped, has to end."""


def play_all(cases: Sequence[EvalCase], setup: PlaySetup, jobs: int) -> Iterator[ResultRow]:
    """Play cases, `jobs` of them at the same time; yield their rows as they end.

    Closing the iterator interrupts those under way.
    """
    waiting = queue.SimpleQueue[EvalCase]()
    for case in cases:
        waiting.put(case)
    pool = _Pool(setup, waiting)
    workers = [
        threading.Thread(target=pool.work, name=f"eval-{number}", daemon=True)
        for number in range(min(max(jobs, 1), len(cases)))
    ]
    for worker in workers:
        worker.start()
    try:
        for _ in cases:
            yield pool.rows.get()
    finally:
        pool.end()
        for worker in workers:
            worker.join()


@dataclass
class _Pool:
    """Workers that take cases from a queue.

    Attributes:
        setup: Settings of all cases.
        waiting: Cases that are not begun.
        rows: Rows of the cases that are over.
    """

    setup: PlaySetup
    waiting: queue.SimpleQueue[EvalCase]
    rows: queue.SimpleQueue[ResultRow] = field(default_factory=queue.SimpleQueue)
    _playing: set[int] = field(default_factory=set)
    _plays: list[CasePlay] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_over: bool = False

    def work(self) -> None:
        """Play cases until none is left."""
        while True:
            try:
                case = self.waiting.get_nowait()
            except queue.Empty:
                return
            play = CasePlay(case, self.setup)
            with self._lock:
                if self._is_over:
                    return
                self._plays.append(play)
            self.rows.put(_within_limit(play))
            with self._lock:
                self._plays.remove(play)

    def end(self) -> None:
        """Begin no case any more, and interrupt those under way."""
        with self._lock:
            self._is_over = True
            plays = list(self._plays)
        for play in plays:
            play.interrupt()


def _within_limit(play: CasePlay) -> ResultRow:
    """Play a case; interrupt it at its limit, stop its application after that, then leave it."""
    ended: list[ResultRow] = []

    def run() -> None:
        try:
            ended.append(play.run())
        except Exception as error:  # noqa: BLE001 - of any kind: the other cases go on
            problem = f"{type(error).__name__}: {error}"
            ended.append(play.row("error", problems=(problem,)))

    thread = threading.Thread(target=run, name=f"eval-{play.case.name}", daemon=True)
    thread.start()
    thread.join(play.case.limit_s)
    is_late = thread.is_alive()
    for end in (play.interrupt, play.stop):
        if thread.is_alive():
            end()
            thread.join(GRACE_S)
    limit = f"it took longer than {play.case.limit_s:g} s"
    if not ended:
        return play.row("timeout", problems=(f"{limit}, and does not end",))
    row = ended[0]
    # One that is interrupted while its application opens fails there.
    if row.outcome == "timeout" or (is_late and row.outcome == "error"):
        return play.row("timeout", problems=(limit, *row.problems))
    return row
