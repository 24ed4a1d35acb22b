"""The operation logs: one JSON line for each public call, buffered.

`memory_calls.jsonl` has all of them; each layer has a file of its own beside it. A line has
``ts, op, layer, memory_type, branch_id, node_id, phase, run_id`` and, where there is more to say,
``details``. Texts in it are masked and cut.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from taskweaver.utils.redact import redact

Layer = Literal["primitive", "public_api", "system", "internal", "llm"]
_ALL = "memory_calls.jsonl"
_FILES: dict[Layer, str] = {
    "primitive": "memory_primitive.jsonl",
    "public_api": "memory_public_api.jsonl",
    "system": "memory_system.jsonl",
    "internal": "memory_internal.jsonl",
    "llm": "memory_llm.jsonl",
}
_KINDS: dict[str, tuple[Layer, str]] = {
    "set_core": ("primitive", "core"),
    "get_core": ("primitive", "core"),
    "write_event": ("primitive", "recall"),
    "write_archival": ("primitive", "archival"),
    "retrieve_archival": ("primitive", "archival"),
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
_MOST_WAITING = 200
_MOST_WAIT_S = 2.0
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


class OperationLog:
    """Writes the logs of a memory; does nothing without a folder."""

    def __init__(self, folder: Path | None, *, max_chars: int, run_id: str = "") -> None:
        self._folder = folder
        self._max_chars = max_chars
        self._run_id = run_id
        self._lock = threading.Lock()
        self._waiting: list[tuple[Layer, dict[str, Any]]] = []
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
        """Note a call; it is written with others, at the latest when the log is closed."""
        if self._folder is None:
            return
        layer, memory_type = _kind(op)
        line = {
            "ts": time.time(),
            "op": op,
            "layer": layer,
            "memory_type": memory_type,
            "branch_id": branch_id,
            "node_id": node_id,
            "phase": display_phase(phase),
            "run_id": self._run_id or None,
        }
        if details:
            line["details"] = details
        with self._lock:
            self._waiting.append((layer, line))
            now = time.monotonic()
            is_due = len(self._waiting) >= _MOST_WAITING or now - self._flushed_at > _MOST_WAIT_S
            waiting = self._take() if is_due else []
        self._write(waiting)

    def problem(self, what: str, error: Exception) -> None:
        """Note that something was done without the model, and why."""
        details = {"what": what, "error": f"{type(error).__name__}: {error}"}
        self.add("model_failed", details=details)

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            waiting = self._take()
        self._write(waiting)

    def _take(self) -> list[tuple[Layer, dict[str, Any]]]:
        waiting, self._waiting = self._waiting, []
        self._flushed_at = time.monotonic()
        return waiting

    def _write(self, waiting: list[tuple[Layer, dict[str, Any]]]) -> None:
        if self._folder is None or not waiting:
            return
        texts: dict[str, list[str]] = {}
        for layer, line in waiting:
            if "details" in line:
                line = {**line, "details": self._clean(line["details"])}
            text = json.dumps(line, ensure_ascii=True, default=str)
            texts.setdefault(_ALL, []).append(text)
            texts.setdefault(_FILES[layer], []).append(text)
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, lines in texts.items():
            append_lines(self._folder / name, lines)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            text = redact(value)
            return text if len(text) <= self._max_chars else text[: self._max_chars - 3] + "..."
        if isinstance(value, Mapping):
            return {str(key): self._clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        return value


def append_lines(path: Path, lines: list[str]) -> None:
    """Append whole lines to a file with one write, so that several processes do not mix theirs."""
    with path.open("ab", buffering=0) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _kind(op: str) -> tuple[Layer, str]:
    """Return the layer and the part of memory an operation belongs to."""
    if op in _KINDS:
        return _KINDS[op]
    part = next((part for part in _PARTS if part in op), "branch")
    if op.startswith("llm_"):
        reads = ("get", "search")
        return "llm", "llm_read" if op.endswith(reads) else "llm_update"
    return "public_api" if op.startswith("mem_") else "internal", part


def display_phase(phase: str | None) -> str | None:
    """Return the name of a phase as the logs show it."""
    if phase is None:
        return None
    if phase.startswith("stage_") and phase.endswith("_summary"):
        return "stage_summary"
    if phase[:1].isdigit() and "_" in phase:
        return f"stage_execution_{phase[0]}"
    return _PHASES.get(phase, phase)
