"""The log of a run, and the state that it describes: journal and stage.

The log has a line of JSON for each event, on disk before it counts, and defines the run. It is
resumed by reading the log: nodes that had not finished are made again, and a last line that was cut
off by the end of the process is as if it had never been.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from taskweaver.treesearch.errors import RunInUse, SearchError, system_errors
from taskweaver.treesearch.model.journal import Journal, Judgement
from taskweaver.treesearch.model.node import Cost, Node, Objective
from taskweaver.treesearch.model.stages import STAGES, StageState
from taskweaver.treesearch.record.run_statistics import total_cost
from taskweaver.utils.files import create_private


class RunLog:
    """A run's log, open for writing by one process. Close it."""

    def __init__(self, path: Path) -> None:
        """Open the log, or make a new one.

        Raises:
            RunInUse: If another process has it open.
            SearchError: If it cannot be opened, or is no log.
        """
        self._path = path
        self._lock = threading.Lock()
        with system_errors(f"{path} cannot be opened"):
            path.parent.mkdir(parents=True, exist_ok=True)
            create_private(path)
            self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise RunInUse(
                f"Another process works on the run {path.parent.name}.",
                "Wait for it, or start a run of another name.",
            ) from error
        try:
            self.entries = self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> list[dict[str, Any]]:
        self._file.seek(0)
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self._file.truncate(whole)
        return _entries(self._path, data[:whole])

    def add(self, kind: str, **data: Any) -> Mapping[str, Any]:
        """Add an entry, and return it as it will be read. It is on disk when this returns.

        Raises:
            SearchError: If it cannot be written; nothing of it is then in the file.
        """
        return self._write(kind, data, is_synced=True)

    def note(self, kind: str, **data: Any) -> None:
        """Add an entry that outlives the process. If the machine goes down, the last may be lost.

        It is on disk at the latest with the next that is added.

        Raises:
            SearchError: As `add`.
        """
        self._write(kind, data, is_synced=False)

    def _write(self, kind: str, data: Mapping[str, Any], *, is_synced: bool) -> Mapping[str, Any]:
        # Nothing is masked: a resumed run goes on with the programs that are in here.
        whole = {"t": kind, **data}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"), default=_plain)
        line = text.encode("utf-8", "replace")
        entry: dict[str, Any] = json.loads(line)
        with self._lock:
            end = self._file.seek(0, os.SEEK_END)
            try:
                self._file.write(line + b"\n")
                self._file.flush()
                if is_synced:
                    os.fsync(self._file.fileno())
            except OSError as error:
                self._take_back(end)
                raise SearchError(
                    f"{self._path} cannot be written: {error.strerror}.",
                    "Make room, and go on with `search --resume`.",
                ) from error
            self.entries.append(entry)
        return entry

    def _take_back(self, end: int) -> None:
        """Open the file anew, without a half-written line: a buffer would write it later."""
        handle = os.dup(self._file.fileno())  # keeps the lock
        try:
            with suppress(OSError):  # the same lack of room
                self._file.close()
            os.ftruncate(handle, end)
        finally:
            self._file = os.fdopen(handle, "a+b")

    def close(self) -> None:
        """Close the log and release its lock. Safe to call again."""
        self._file.close()

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the log."""
        self.close()


def is_worked_on(path: Path) -> bool:
    """Return whether a process has the log of a run open for writing."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # until it is closed
    except OSError:
        return True
    return False


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a log, also while a process works on it.

    Raises:
        SearchError: If it cannot be read.
    """
    with system_errors(f"There is no run in {path.parent}"):
        data = path.read_bytes()
    return _entries(path, data[: data.rfind(b"\n") + 1])


def _entries(path: Path, data: bytes) -> list[dict[str, Any]]:
    entries = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            entry = json.loads(line)
            entry["t"]  # each has its kind
        except (ValueError, RecursionError, TypeError, LookupError) as error:
            raise SearchError(
                f"{path}, line {number}, is not of a log: {error!r:.200}.",
                "Restore the file, or start a new run.",
            ) from error
        entries.append(entry)
    return entries


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


@dataclass(frozen=True, slots=True)
class StagePassed:
    """A stage that is over, with the id of the best node then, None when none worked."""

    state: StageState
    reason: str
    best: str | None
    summary: str = ""


@dataclass(slots=True)
class RunState:
    """State of a run.

    Attributes:
        journal: Its nodes; those that had not finished are left out when a log is read.
        stage: Its stage; None when it has ended.
        passed: Stages that are over.
        title: Title of its idea.
        seconds: Duration of its earlier sittings.
        counted_at: When `seconds` was counted, in seconds since 1970; 0 for unknown
            and while the run pauses.
        spent: Consumption of its model calls before, those of cancelled nodes too.
        started_at: When it began, in seconds since 1970.
        is_over: Whether it has ended; it does not go on then.
        is_spent: Whether it ended because its budget was spent; with more it can go on.
        reason: Why it ended.
        remarks: Faults of machines, in words: they are no attempt's.
    """

    journal: Journal
    stage: StageState | None
    passed: list[StagePassed] = field(default_factory=list)
    title: str = ""
    seconds: float = 0.0
    counted_at: float = 0.0
    spent: Cost = field(default_factory=Cost)
    started_at: float = 0.0
    is_over: bool = False
    is_spent: bool = False
    reason: str = ""
    remarks: list[str] = field(default_factory=list)

    @property
    def has_waiting_plots(self) -> bool:
        """Whether attempts still want plots, which are drawn when the run goes on."""
        return any(node.wants_plots for node in self.journal.good)


def fold(entries: Iterable[Mapping[str, Any]], *, keeps_running: bool = False) -> RunState | None:
    """Return the state that a log describes, None for an empty one.

    Args:
        entries: The entries of the log.
        keeps_running: Whether a process works on the run, so that nodes which had not finished
            are not left out.

    Raises:
        SearchError: If an entry is not one of a run.
    """
    state: RunState | None = None
    for entry in entries:
        try:
            if entry["t"] == "run":
                objective = Objective(**entry["objective"])
                title = str(entry.get("title", ""))
                state = RunState(Journal(objective), None, title=title, started_at=entry["at"])
            elif state is None:
                raise KeyError("run")
            else:
                _take(state, entry)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise SearchError(
                f"The run's log has an entry that cannot be read: {error}."
            ) from error
    if state is not None:
        for node in () if keeps_running else state.journal.running:
            state.journal.drop(node.id)
        # What calls consumed may be missing: of a machine that went down, or an older version.
        of_nodes = total_cost(state.journal.nodes)
        if state.spent.calls < of_nodes.calls:
            state.spent = of_nodes
    return state


def _take(state: RunState, entry: Mapping[str, Any]) -> None:
    kind = entry["t"]
    state.seconds = entry.get("elapsed", state.seconds)
    state.counted_at = entry.get("at", state.counted_at)
    state.spent += Cost(**entry.get("cost", {}))
    if kind == "node":
        _take_node(state.journal, Node.from_dict(entry["node"]))
    elif kind == "stage":
        stage = STAGES[entry["stage"] - 1]
        state.stage = StageState(
            stage, entry["base"], entry["substage"], entry["goals"], entry["first"]
        )
    elif kind == "judged":
        state.journal.judge(Judgement.from_dict(entry))
    elif kind == "stage_ended" and state.stage is not None:
        passed = StagePassed(state.stage, entry["reason"], entry["best"])
        if state.passed and state.passed[-1].state == state.stage:
            state.passed.pop()  # the process ended before it went on: it was closed again
        state.passed.append(passed)
    elif kind == "stage_summary" and state.passed:
        state.passed[-1] = replace(state.passed[-1], summary=entry["summary"])
    elif kind == "ended":
        state.is_over, state.reason, state.stage = True, entry["reason"], None
        state.is_spent = bool(entry.get("spent"))
    elif kind == "remark":
        state.remarks.append(entry["text"])
    elif kind == "reopened":
        reopen(state)


def _take_node(journal: Journal, node: Node) -> None:
    if node.parent is not None and node.parent not in journal:
        raise KeyError(node.parent)
    # Nodes stand in the order they were begun in, as while the run went on; one that begins
    # again, after it was cancelled, begins anew.
    if node.finished_at is None and node.id in journal:
        journal.drop(node.id)
    journal.put(node)


def reopen(state: RunState) -> None:
    """Reopen a run whose budget was spent: its last stage is not over after all."""
    state.is_over, state.is_spent, state.reason = False, False, ""
    state.stage = state.passed.pop().state if state.passed else None
