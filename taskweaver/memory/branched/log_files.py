"""Log files and their lines: a failure loses lines, is counted, and never raises.

A line that a full disk cut off is ended before the next one, so it spoils no other. Lines that
cannot be written are dropped and counted; the first line that can be written again gives the
number and the reason. Lines of all logs have common fields, and texts without secrets.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from taskweaver.utils.redact import redact, redact_data

Line = dict[str, Any]
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
_encode = json.JSONEncoder(ensure_ascii=True, default=str).encode
_VALUES = ("value", "value_preview")
_SECRET_CHARS = 1 << 16
"""No secret that begins in the part of a text that is shown ends beyond these characters."""


def head(op: str, layer: str, memory_type: str, *, ts: float | None = None, **known: Any) -> Line:
    """Return the fields that the lines of all logs have.

    Args:
        op: The operation.
        layer: Its layer.
        memory_type: The part of memory it belongs to.
        ts: Time of the operation; None for now.
        known: Any of `branch_id`, `node_id`, `phase` and `run_id`.
    """
    at = time.time() if ts is None else ts
    fields = {"ts": at, "op": op, "layer": layer, "memory_type": memory_type}
    return {**fields, **dict.fromkeys(("branch_id", "node_id", "phase", "run_id")), **known}


def encoded(line: Mapping[str, Any]) -> str:
    """Return a line as JSON without line breaks.

    Raises:
        ValueError, RecursionError: If it is not plain data, or too deep.
    """
    return _encode(line)


def layer_of(op: str) -> tuple[Layer, str]:
    """Return the layer of an operation, and its part of memory."""
    if op in _KINDS:
        return _KINDS[op]
    part = next((part for part in _PARTS if part in op), "branch")
    if op.startswith("llm_"):
        reads = ("get", "search")
        return "llm", "llm_read" if op.endswith(reads) else "llm_update"
    return "public_api" if op.startswith("mem_") else "internal", part


def display_phase(phase: object) -> str | None:
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


def masked_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without secrets, and without the value of a core key with a secret's name.

    Names of columns are no names of secrets.
    """
    return {name: _masked(value) for name, value in without_secret_value(row).items()}


def masked_preview(details: Mapping[str, Any], max_chars: int) -> dict[str, Any]:
    """Return details without secrets, and with texts that are cut at a length.

    Their own names are no names of secrets.
    """
    limit = max_chars + _SECRET_CHARS
    operations = details.get("operations_log")
    if isinstance(operations, list):
        details = {**details, "operations_log": [without_secret_value(item) for item in operations]}
    return {
        name: _cut(_masked(value[:limit] if isinstance(value, str) else value), max_chars)
        for name, value in without_secret_value(details).items()
    }


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    return value if value is None or isinstance(value, int | float) else redact_data(value)


def without_secret_value(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an entry of a key and a value, with the value of a secret's key masked."""
    key = entry.get("key")
    given = [name for name in _VALUES if isinstance(entry.get(name), str)]
    if not isinstance(key, str) or not given:
        return entry
    hidden = {name: next(iter(redact_data({key: entry[name]}).values())) for name in given}
    return {**entry, **hidden}


def _cut(value: Any, max_chars: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= max_chars else value[: max_chars - 3] + "..."
    if isinstance(value, Mapping):
        return {str(key): _cut(item, max_chars) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(item, max_chars) for item in value]
    return value


_MODE = 0o600
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT
# Without O_NONBLOCK the opening of a pipe waits for its reader. Not every system has all of these.
for _name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


class LogFolder:
    """The log files in a folder. The folder and the files are made by the first write.

    All methods may be called from any thread, and several processes may write the same files.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the folder in mind, which may be missing or unusable."""
        self.folder = folder
        self._lock = threading.Lock()
        self._lost: dict[str, int] = {}
        self._reasons: dict[str, str] = {}
        self._has_warned = False

    def append(self, name: str, lines: Sequence[str]) -> int:
        """Append lines to a file, as far as possible.

        Args:
            name: Name of the file.
            lines: The lines, without line breaks.

        Returns:
            How many of the lines are in the file, counted from the first.
        """
        with self._lock:
            note = self._note(name)
            data = "".join(f"{line}\n" for line in (*note, *lines)).encode("utf-8", "replace")
            count, error = _append(self.folder / name, data)
            if note and count:
                del self._lost[name]
            written = max(0, count - len(note))
            if error is not None:
                self._lose(name, len(lines) - written, error)
            return written

    def lose(self, name: str, count: int, error: Exception) -> None:
        """Count lines of a file that could not be made, and warn."""
        with self._lock:
            self._lose(name, count, error)

    def _lose(self, name: str, count: int, error: Exception) -> None:
        if not self._lost.get(name):
            self._reasons[name] = _reason(error)
        self._lost[name] = self._lost.get(name, 0) + count
        if not self._has_warned:
            self._has_warned = True
            import logging  # rarely needed, and slow to import

            message = "The log %s cannot be written: %s. The memory works on without it."
            logging.getLogger(__name__).warning(message, self.folder / name, _reason(error))

    def _note(self, name: str) -> list[str]:
        """Return the line that gives the number of lost lines, if there are any."""
        count = self._lost.get(name, 0)
        if not count:
            return []
        details = {"count": count, "reason": self._reasons[name]}
        return [encoded({**head("log_lines_lost", "internal", "log"), "details": details})]


def _append(path: Path, data: bytes) -> tuple[int, OSError | None]:
    """Append whole lines to a file, and return how many were written, and an error."""
    written, begin = 0, b""
    try:
        descriptor = _open(path)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(None, "is no ordinary file", str(path))
            if found.st_size:
                os.lseek(descriptor, -1, os.SEEK_END)
                begin = b"" if os.read(descriptor, 1) == b"\n" else b"\n"
            # One call for all, so that several processes do not mix their lines. A call that is
            # cut short is followed by one that finds out why.
            left = memoryview(begin + data)
            while left:
                size = os.write(descriptor, left)
                written += size
                left = left[size:]
        finally:
            os.close(descriptor)
    except OSError as error:
        return data[: max(0, written - len(begin))].count(b"\n"), error
    return data.count(b"\n"), None


def _open(path: Path) -> int:
    try:
        return os.open(path, _FLAGS, _MODE)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, _FLAGS, _MODE)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"[:200]
