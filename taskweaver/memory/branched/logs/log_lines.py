"""The lines of the operation logs: their common fields, and texts without secrets."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
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
    """Return the layer of an operation, and the part of memory it belongs to."""
    if op in _KINDS:
        return _KINDS[op]
    part = next((part for part in _PARTS if part in op), "branch")
    if op.startswith("llm_"):
        reads = ("get", "search")
        return "llm", "llm_read" if op.endswith(reads) else "llm_update"
    return "public_api" if op.startswith("mem_") else "internal", part


def display_phase(phase: object) -> str | None:
    """Return the name of a phase as the logs show it; an event may give one that is no text."""
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
    """Return a row without secrets; also of a core key whose name says that it holds one.

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
    """Return an entry of a key and its value with the value masked as a field of that name is."""
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
