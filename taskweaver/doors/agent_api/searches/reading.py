"""Reading of runs from their logs; the log of a run that did not change is not read again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.runlog import is_worked_on, read_log
from taskweaver.treesearch.record.state import RunState, fold
from taskweaver.treesearch.service import allowance_of, find_run, runs

_MOST_KEPT = 8


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run as its log was read.

    Attributes:
        places: Its files.
        state: Its state, with the nodes that run.
        budget: Its budget.
        version: A text that changes with the log.
        is_worked_on: Whether a process works on it.
    """

    places: RunPlaces
    state: RunState
    budget: Budget
    version: str
    is_worked_on: bool


class RunReader:
    """Reads runs; it may be asked from any thread."""

    def __init__(self, app: TaskWeaverApp) -> None:
        """Prepare to read the runs of a project."""
        self._app = app
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[str, RunState | None]] = {}

    def find(self, name: str) -> ReadRun:
        """Return the run of a name.

        Raises:
            SearchError: If there is none, or its log cannot be read.
        """
        places = find_run(self._app, name)
        found = self._read(places)
        if found is None:
            raise SearchError(f"The run {places.folder.name} has not begun.")
        return found

    def every(self) -> Iterator[ReadRun]:
        """Yield the runs, the newest first, but those that cannot be read."""
        for places in runs(self._app):
            try:
                found = self._read(places)
            except SearchError:  # the command line names the reason
                continue
            if found is not None:
                yield found

    def _read(self, places: RunPlaces) -> ReadRun | None:
        # Before the log: what ended meanwhile is then read to its end.
        is_running = is_worked_on(places.log)
        version, state = self._state(places, is_running=is_running)
        if state is None:
            return None
        try:
            limits = allowance_of(self._app, places)
        except (SearchError, ConfigError):  # who goes on with the run is told; it can be read
            limits = (0, 0.0, 0, 0.0)
        budget = Budget(*limits, before_s=state.seconds, spent=state.spent, clock=float)
        return ReadRun(places, state, budget, version, is_running)

    def _state(self, places: RunPlaces, *, is_running: bool) -> tuple[str, RunState | None]:
        name = places.folder.name
        try:
            facts = places.log.stat()
        except OSError as error:
            raise SearchError(f"{places.log} cannot be read: {error.strerror}.") from error
        version = f"{facts.st_ino:x}-{facts.st_size:x}-{facts.st_mtime_ns:x}-{is_running:d}"
        with self._lock:
            known = self._kept.get(name)
        if known is None or known[0] != version:
            known = version, fold(read_log(places.log), keeps_running=is_running)
            with self._lock:
                self._kept.pop(name, None)
                self._kept[name] = known
                for oldest in list(self._kept)[:-_MOST_KEPT]:
                    del self._kept[oldest]
        return known
