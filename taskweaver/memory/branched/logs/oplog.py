"""The operation logs: one JSON line for each public call, buffered.

`memory_calls.jsonl` has all of them; each layer has a file of its own beside it. A line has
``ts, op, layer, memory_type, branch_id, node_id, phase, run_id`` and, where there is more to say,
``details``. Texts in it are masked and cut; a line that waits while a text is erased, by this
process or another one, is written without them. The rows themselves are in
`memory_primitive.jsonl`, see `row_log`. A log that cannot be written never fails an operation, see
`log_files`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from taskweaver.memory.branched.logs.log_files import LogFolder
from taskweaver.memory.branched.logs.log_lines import (
    Layer,
    display_phase,
    encoded,
    head,
    layer_of,
    masked_preview,
)
from taskweaver.memory.branched.logs.row_log import RowLog

_ALL = "memory_calls.jsonl"
_FILES: dict[Layer, str] = {
    "public_api": "memory_public_api.jsonl",
    "system": "memory_system.jsonl",
    "internal": "memory_internal.jsonl",
    "llm": "memory_llm.jsonl",
}
_MOST_WAITING = 200
_MOST_WAITING_CHARS = 1 << 20
_MOST_WAIT_S = 2.0


class OperationLog:
    """Writes the logs of a memory; does nothing without a folder."""

    def __init__(
        self, files: LogFolder | None, rows: RowLog | None, *, max_chars: int, run_id: str = ""
    ) -> None:
        """Make the logs; nothing is written yet.

        Args:
            files: The folder; None for no logs.
            rows: The log of the rows; None for none.
            max_chars: Longest text in a line.
            run_id: The run that every line names.
        """
        self._files = files
        self._rows = rows
        self._max_chars = max_chars
        self._run_id = run_id
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._waiting: list[tuple[Layer, dict[str, Any]]] = []
        self._chars = 0
        self._flushed_at = time.monotonic()

    @property
    def is_kept(self) -> bool:
        """Whether there is a log."""
        return self._files is not None

    def add(
        self,
        op: str,
        *,
        branch_id: str | None = None,
        details: Mapping[str, Any] | None = None,
        node_id: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Note a call; it is written with others, at the latest when the log is closed."""
        if self._files is None:
            return
        layer, memory_type = layer_of(op)
        run = self._run_id or None
        line = head(
            op, layer, memory_type, branch_id=branch_id, node_id=node_id, phase=phase, run_id=run
        )
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
        """Write the waiting lines, as far as possible; never raises."""
        if self._files is None:
            return
        with self._flushing:
            is_erased = False
            if self._rows is not None:
                self._rows.flush()
                is_erased = self._rows.has_lost_rows()
            with self._lock:
                waiting = self._take()
            if is_erased:
                for _, line in waiting:
                    line.pop("details", None)
            self._write(self._files, waiting)

    def close(self) -> None:
        """Write the waiting lines and end the log of the rows; never raises, safe to call again."""
        self.flush()
        with self._flushing:
            rows, self._rows = self._rows, None
            if rows is not None:
                rows.close()

    def _take(self) -> list[tuple[Layer, dict[str, Any]]]:
        waiting, self._waiting = self._waiting, []
        self._flushed_at = time.monotonic()
        self._chars = 0
        return waiting

    def _write(self, files: LogFolder, waiting: list[tuple[Layer, dict[str, Any]]]) -> None:
        texts: dict[str, list[str]] = {}
        for layer, line in waiting:
            try:
                line["phase"] = display_phase(line["phase"])
                if "details" in line:
                    line["details"] = masked_preview(line["details"], self._max_chars)
                text = encoded(line)
            except (ValueError, TypeError, AttributeError, LookupError, RuntimeError) as error:
                files.lose(_ALL, 1, error)
                continue
            for name in (_ALL, _FILES[layer]):
                texts.setdefault(name, []).append(text)
        for name, lines in texts.items():
            files.append(name, lines)
