"""Work done side by side, whose events come to listeners in one thread, one work after another.

Each work runs in a thread of its own, its lane. What it does in front of the user waits in the
queue of its lane: the thread that called `side_by_side` does it, the first lane's first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from queue import Queue
from typing import Any, TypeVar

T = TypeVar("T")

_MOST_WAITING = 10_000
"""Most events of a lane that wait; its work waits for room then."""


class _Shown(Future[T]):
    """Work in front of the user that waits in a lane."""

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__()
        self._work = work

    def do(self) -> None:
        """Do the work, and keep the result."""
        if self.set_running_or_notify_cancel():
            try:
                self.set_result(self._work())
            except BaseException as error:
                self.set_exception(error)
                if not isinstance(error, Exception):
                    raise


_Lane = Queue[_Shown[Any] | None]
_lane: ContextVar[_Lane | None] = ContextVar("lane", default=None)


def in_turn(work: Callable[[], T], *, waits: bool = True) -> T | None:
    """Do work in front of the user: at once, or in a lane in turn.

    Args:
        work: The work.
        waits: Whether to wait for its result; else None is returned.
    """
    lane = _lane.get()
    if lane is None:
        return work()
    shown = _Shown(work)
    lane.put(shown)
    return shown.result() if waits else None


def side_by_side(works: Sequence[Callable[[], T]], cancel: Callable[[], None]) -> list[Future[T]]:
    """Do works side by side until all have ended, and return how each ended, in order.

    Args:
        works: The works.
        cancel: Called when the calling thread is interrupted; makes the works end soon.

    Raises:
        BaseException: The interrupt, once all works have ended.
    """
    lanes: list[_Lane] = [Queue(_MOST_WAITING) for _ in works]
    with ThreadPoolExecutor(max(len(works), 1), thread_name_prefix="lane") as pool:
        ends = [
            pool.submit(copy_context().run, _work_in, lane, work)
            for lane, work in zip(lanes, works, strict=True)
        ]
        try:
            for lane in lanes:
                while (shown := lane.get()) is not None:
                    in_turn(shown.do)  # works side by side in a lane are shown in that lane
        except BaseException:
            cancel()
            _discard(lanes, ends)
            raise
    return ends


def _work_in(lane: _Lane, work: Callable[[], T]) -> T:
    _lane.set(lane)
    try:
        return work()
    finally:
        lane.put(None)


def _discard(lanes: Sequence[_Lane], ends: Sequence[Future[Any]]) -> None:
    """Cancel what waits in lanes until their works have ended."""
    for lane, end in zip(lanes, ends, strict=True):
        while not end.done() or not lane.empty():
            shown = lane.get()
            if shown is None:
                break
            shown.cancel()
