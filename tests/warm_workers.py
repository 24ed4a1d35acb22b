"""Worker processes of searches that go on with the next search.

A worker does one job of a run after the other. Where its start and its end are not the subject of
a test, it does jobs of other tests' runs too: starting it costs as much as ten jobs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

import pytest

from taskweaver.treesearch.execution.executors import worker_pool
from taskweaver.utils.ids import create_id

_Process = worker_pool._Process
_Birthright = tuple[object, ...]
_MOST = 4


class WarmWorkers:
    """The workers of runs that are over, for the next runs.

    A run in another environment or folder than those before it gets workers of its own.
    """

    def __init__(self, keeper: ThreadPoolExecutor) -> None:
        """Prepare it; nothing runs yet.

        Args:
            keeper: One thread, which the workers end with.
        """
        self._keeper = keeper
        self._lock = Lock()
        self._idle: list[_Kept] = []

    @property
    def pids(self) -> set[int]:
        """Process ids of the workers that wait for a run."""
        with self._lock:
            return {worker._process.pid for worker in self._idle}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have runs take workers from here, and leave them here."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker_pool, "_Process", self._take)
            yield

    @contextmanager
    def out_of_use(self) -> Iterator[None]:
        """Have each run start workers, and end them."""
        self.close()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker_pool, "_Process", _Process)
            yield

    def close(self) -> None:
        """End the workers that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.really_end()

    def _take(self, _mark: str, gpu: str | None) -> _Process:
        """Return a worker that has the environment of a new one, or a new one.

        It does not get the mark of the run, whose end is the end of all that have it.
        """
        birthright = _birthright(gpu)
        with self._lock:
            for worker in self._idle:
                if worker.birthright == birthright:
                    self._idle.remove(worker)
                    return worker
        return self._keeper.submit(_Kept, self, gpu).result()

    def keep(self, worker: _Kept) -> None:
        """Keep a worker for a later run; end one for which there is no place."""
        with self._lock:
            self._idle.append(worker)
            surplus = self._idle.pop(0) if len(self._idle) > _MOST else None
        if surplus is not None:
            surplus.really_end()


class _Kept(_Process):
    """A worker that waits for the next run where it would end by itself."""

    def __init__(self, workers: WarmWorkers, gpu: str | None) -> None:
        self.birthright = _birthright(gpu)
        self._workers = workers
        super().__init__(create_id("kept"), gpu)

    def end(self, grace_s: float) -> None:
        """Wait for the next run; without time to end by itself it is killed."""
        if grace_s and not self.has_ended:
            self._workers.keep(self)
        else:
            super().end(grace_s)

    def really_end(self) -> None:
        """End as other workers do."""
        super().end(worker_pool._STOP_S)


@contextmanager
def warm_workers() -> Iterator[WarmWorkers]:
    """Give a keeper of workers, and end them at last."""
    with ThreadPoolExecutor(1, thread_name_prefix="warm-workers") as keeper:
        keeper.submit(os.getpid).result()  # its thread was there before the first test
        workers = WarmWorkers(keeper)
        yield workers
        workers.close()


def _birthright(gpu: str | None) -> _Birthright:
    """Return what a worker takes over from the process that starts it."""
    own = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    return own, tuple(sys.path), os.getcwd(), gpu  # noqa: PTH109 - as the system says it
