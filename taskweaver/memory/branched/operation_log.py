"""The operation logs: one JSON line for each public call, and one for each row.

`memory_calls.jsonl` has all calls, buffered; each layer has a file of its own beside it. A line has
``ts, op, layer, memory_type, branch_id, node_id, phase, run_id`` and, where there is more to say,
``details``. Texts in it are masked and cut; a line that waits while a text is erased, by this
process or another one, is written without them.

`memory_primitive.jsonl` has the rows of core, recall and archival memory. A commit only notes the
sequence numbers it gave out; the rows are read back from the file when the lines are written, so
that a row that was rolled back is in no log. A log that cannot be written never fails an operation.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.log_files import MARKS, LogFolder, encoded, without_secret_value
from taskweaver.memory.branched.storage.database import Database
from taskweaver.utils.redact import redact_data

Layer = Literal["primitive", "public_api", "system", "internal", "llm"]
_KINDS: dict[str, tuple[Layer, str]] = {
    "check_memory_pressure": ("internal", "pressure"),
    "consolidate_recall_events": ("internal", "consolidation"),
    "consolidate_inherited_memory": ("internal", "consolidation"),
    "auto_consolidate_memory": ("internal", "consolidation"),
    "evaluate_importance_with_llm": ("internal", "importance"),
    "render_for_prompt": ("system", "prompt"),
    "apply_llm_memory_updates": ("system", "llm_update"),
    "generate_final_memory_for_paper": ("system", "paper"),
    "model_failed": ("internal", "model"),
}
_PARTS = ("core", "recall", "archival", "node", "resources")
_PHASES = {
    "phase0": "Phase 0: Setup",
    "ingest_phase0_internal_info": "Phase 0: Setup",
    "phase0_planning": "Phase 0: Planning",
    "idea_md": "Phase 0: Idea Loading",
    "resource_index": "Phase 0: Resource Indexing",
    "phase1_iterative": "Phase 1: Environment Setup",
    "draft": "Phase 2: Draft Implementation",
    "debug": "Phase 2: Debug",
    "improve": "Phase 2: Improve",
    "hyperparam_node": "Phase 2: Hyperparameter Tuning",
    "ablation_node": "Phase 2: Ablation Study",
    "compile": "Phase 3: Compile",
    "compiler_selection": "Phase 3: Compiler Selection",
    "execution_review": "Phase 4: Execution Review",
    "datasets_successfully_tested": "Phase 4: Datasets Tested",
}
_ALL = "memory_calls.jsonl"
_MOST_WAITING = 200
_MOST_WAITING_CHARS = 1 << 20
_MOST_WAIT_S = 2.0


_SECRET_CHARS = 1 << 16
"""No secret that begins in the part of a text that is shown ends beyond these characters."""


def _head(
    op: str, layer: str, memory_type: str, *, ts: float | None = None, **known: Any
) -> dict[str, Any]:
    """Return the fields that all lines have; `ts` is the time of the operation, None for now."""
    at = time.time() if ts is None else ts
    fields = {"ts": at, "op": op, "layer": layer, "memory_type": memory_type}
    return {**fields, **dict.fromkeys(MARKS), **known}


def _layer_of(op: str) -> tuple[Layer, str]:
    """Return the layer of an operation, and its part of memory."""
    if op in _KINDS:
        return _KINDS[op]
    part = next((part for part in _PARTS if part in op), "branch")
    if op.startswith("llm_"):
        reads = ("get", "search")
        return "llm", "llm_read" if op.endswith(reads) else "llm_update"
    return "public_api" if op.startswith("mem_") else "internal", part


def _display_phase(phase: object) -> str | None:
    """Return the name of a phase in logs. The phase of an event may be any data."""
    if phase is None:
        return None
    if not isinstance(phase, str):
        return str(phase)
    if phase.startswith("stage_") and phase.endswith("_summary"):
        return "stage_summary"
    if phase[:1].isdigit() and "_" in phase:
        return f"stage_execution_{phase[0]}"
    return _PHASES.get(phase, phase)


def _masked_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without secrets, and without the value of a core key with a secret's name.

    Names of columns are no names of secrets.
    """
    return {name: redact_data(value) for name, value in without_secret_value(row).items()}


def _masked_preview(details: Mapping[str, Any], max_chars: int) -> dict[str, Any]:
    """Return details without secrets, and with texts that are cut at a length.

    Their own names are no names of secrets.
    """
    limit = max_chars + _SECRET_CHARS
    operations = details.get("operations_log")
    if isinstance(operations, list):
        details = {**details, "operations_log": [without_secret_value(item) for item in operations]}
    return {
        name: _cut(redact_data(value[:limit] if isinstance(value, str) else value), max_chars)
        for name, value in without_secret_value(details).items()
    }


def _cut(value: Any, max_chars: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= max_chars else value[: max_chars - 3] + "..."
    if isinstance(value, Mapping):
        return {str(key): _cut(item, max_chars) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(item, max_chars) for item in value]
    return value


class OperationLog:
    """Writes the logs of a memory, unless the configuration turns logs off."""

    def __init__(self, database: Database, config: MemoryConfig, folder: Path) -> None:
        """Make the logs of a folder. Nothing is written, and no folder is made, before a call.

        Every line names the run: the folder of the memory, or the one around ``memory/``.

        Raises:
            StoreCorrupt: If the file cannot be read.
        """
        home = database.path.parent
        self._run_id = (home.parent if home.name == "memory" else home).name or None
        self._files = LogFolder(folder) if config.memory_log_enabled else None
        self._rows: RowLog | None = None
        if self._files is not None:
            self._rows = RowLog(database, self._files, run_id=self._run_id)
        self._max_chars = config.memory_log_max_chars
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._waiting: list[tuple[Layer, dict[str, Any]]] = []
        self._chars = 0
        self._flushed_at = time.monotonic()

    def add(
        self,
        op: str,
        *,
        branch_id: str | None = None,
        details: Mapping[str, Any] | None = None,
        node_id: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Note a call, which is written later, at the latest when the log is closed."""
        if self._files is None:
            return
        layer, memory_type = _layer_of(op)
        marks: dict[str, Any] = {"branch_id": branch_id, "node_id": node_id, "phase": phase}
        line = _head(op, layer, memory_type, **marks, run_id=self._run_id)
        if details:
            line["details"] = details
        chars = sum(len(item) for item in (details or {}).values() if isinstance(item, str))
        with self._lock:
            self._waiting.append((layer, line))
            self._chars += chars
            now = time.monotonic()
            is_due = (
                len(self._waiting) >= _MOST_WAITING
                or now - self._flushed_at > _MOST_WAIT_S
                or self._chars > _MOST_WAITING_CHARS
            )
        if is_due:
            self.flush()

    def problem(self, what: str, error: Exception) -> None:
        """Note that something was done without the model, and why."""
        details = {"what": what, "error": f"{type(error).__name__}: {error}"}
        self.add("model_failed", details=details)

    def flush(self) -> None:
        """Write the waiting lines, as far as possible. Never raises."""
        if self._files is None:
            return
        with self._flushing:
            is_erased = False
            if self._rows is not None:
                self._rows.flush()
                is_erased = self._rows.has_lost_rows()
            with self._lock:
                waiting, self._waiting = self._waiting, []
                self._flushed_at = time.monotonic()
                self._chars = 0
            if is_erased:
                for _, line in waiting:
                    line.pop("details", None)
            self._write(self._files, waiting)

    def close(self) -> None:
        """Write the waiting lines and end the log of the rows. Never raises, safe to call again."""
        self.flush()
        with self._flushing:
            rows, self._rows = self._rows, None
            if rows is not None:
                rows.close()

    def _write(self, files: LogFolder, waiting: list[tuple[Layer, dict[str, Any]]]) -> None:
        texts: dict[str, list[str]] = {}
        for layer, line in waiting:
            try:
                line["phase"] = _display_phase(line["phase"])
                if "details" in line:
                    line["details"] = _masked_preview(line["details"], self._max_chars)
                text = encoded(line)
            except (ValueError, TypeError, AttributeError, LookupError, RuntimeError) as error:
                files.lose(_ALL, 1, error)
                continue
            for name in (_ALL, f"memory_{layer}.jsonl"):
                texts.setdefault(name, []).append(text)
        for name, lines in texts.items():
            files.append(name, lines)


ROWS_FILE = "memory_primitive.jsonl"
_OPS = {
    "core_kv": ("set_core", "core"),
    "events": ("write_event", "recall"),
    "archival": ("write_archival", "archival"),
    "exclusions": ("hide_event", "recall"),
    "digests": ("write_digest", "recall"),
}
_JSON_COLUMNS = ("tags", "data", "meta", "kinds")
_DERIVED = ("text_hash", "place")
_AT_ONCE = 256
"""Sequence numbers whose lines are written with one call."""


class RowLog:
    """Writes the rows of a memory to the log. One thread at a time flushes or closes the log."""

    def __init__(self, database: Database, files: LogFolder, *, run_id: str | None) -> None:
        """Begin with the next commit of a memory. Every line names the run.

        Raises:
            StoreCorrupt: If the file cannot be read.
        """
        self._database = database
        self._files = files
        self._run_id = run_id
        self._lock = threading.Lock()
        self._ranges: list[tuple[int, int]] = []
        with database.guarded():
            # A thread's own connection may be in a snapshot, which lacks the newest rows.
            self._connection = database.connect_reader()
            self._schema = self._read_schema()
        database.on_commit = self._committed

    def _committed(self, first: int, last: int) -> None:
        with self._lock:  # called by the thread that commits, while another one flushes
            if self._ranges and self._ranges[-1][1] == first - 1:
                first = self._ranges.pop()[0]
            self._ranges.append((first, last))

    def flush(self) -> None:
        """Write the lines of the commits so far, as far as possible. Never raises."""
        with self._lock:
            ranges, self._ranges = self._ranges, []
        for first, last in ranges:
            for low in range(first, last + 1, _AT_ONCE):
                self._write(low, min(last, low + _AT_ONCE - 1))

    def has_lost_rows(self) -> bool:
        """Return whether rows may have been erased since the last call, by any process."""
        try:
            # An erasure removes free pages, which changes the number of the schema.
            former, self._schema = self._schema, self._read_schema()
        except sqlite3.Error as error:
            self._files.lose(ROWS_FILE, 0, error)
            return True
        return former != self._schema

    def close(self) -> None:
        """End the log. The rows were flushed."""
        self._connection.close()

    def _read_schema(self) -> int:
        return int(self._connection.execute("PRAGMA schema_version").fetchone()[0])

    def _write(self, first: int, last: int) -> None:
        try:
            lines = sorted(self._lines(first, last))
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            self._files.lose(ROWS_FILE, last - first + 1, error)
            return
        if lines:
            self._files.append(ROWS_FILE, [text for _, text in lines])

    def _lines(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        """Yield the number and the line of each row of a range, a table after the other."""
        for table in _OPS:
            cursor = self._connection.execute(
                "SELECT b.name AS branch, r.* FROM branches AS b JOIN"
                f" {table} AS r ON r.branch_id = b.id WHERE r.seq BETWEEN ? AND ?",
                (first, last),
            )
            names = [column[0] for column in cursor.description]
            for values in cursor:
                row = dict(zip(names, values, strict=True))
                yield row["seq"], self._line(table, row)

    def _line(self, table: str, row: dict[str, Any]) -> str:
        op, memory_type = _OPS[table]
        branch, seq = row.pop("branch"), row.pop("seq")
        if table == "core_kv" and row["value"] is None:
            op = "core_delete"
        elif table == "archival" and row.get("is_deleted"):
            op = "delete_archival"
        elif table == "archival" and row["record"] != seq:
            op = "update_archival"
        row = {
            name: json.loads(value) if name in _JSON_COLUMNS else value
            for name, value in row.items()
            if name not in _DERIVED
        }
        ts, data = row.get("created_at"), row.get("data")
        line = _head(
            op, "primitive", memory_type, ts=ts or None, branch_id=branch, run_id=self._run_id
        )
        if isinstance(data, dict):
            phase = data.get("phase")
            line["node_id"] = data.get("node_id")
            line["phase"] = _display_phase(phase) if isinstance(phase, str) else None
        line |= {"file": self._database.path.name, "seq": seq, "table": table}
        return encoded({**line, "row": _masked_row(row)})
