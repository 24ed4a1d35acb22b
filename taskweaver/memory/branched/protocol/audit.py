"""Audit trail of the exchange with a model: memory shown in prompts, operations of the blocks.

Prompts are noted in the file, never among the events: events about the memory itself would crowd
out the others. The logs have a line for each operation of a block, or of a write of several things.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.log_files import LogFolder, encoded, without_secret_value
from taskweaver.memory.branched.operation_log import OperationLog
from taskweaver.memory.branched.protocol.protocol import check_updates
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers.branches import Branches
from taskweaver.memory.branched.tiers.recall import TEXTS, text_in
from taskweaver.memory.branched.types import RenderResult
from taskweaver.memory.branched.values import dump
from taskweaver.utils.redact import redact_data

_READS = ("core_get", "archival_search", "recall_search")


@dataclass(frozen=True, slots=True)
class Injection:
    """A memory that was put into a prompt for a task: ids of the shown parts, by section.

    `chars` is the length of the rendered text; `created_at` is in seconds since 1970.
    """

    seq: int
    task_hint: str | None
    chars: int
    shown: dict[str, list[str | int]]
    created_at: float


@dataclass
class Injections:
    """The audit trail of all branches."""

    _database: Database
    _branches: Branches

    def add(self, branch_id: str, result: RenderResult, task_hint: str | None) -> int:
        """Record that a rendered memory was put into a prompt, and return the row's number."""
        shown = {section.title: section.shown for section in result.sections}

        def act(writer: Writer) -> int:
            branch = self._branches.find(writer.connection, branch_id)
            return writer.insert(
                "injections",
                branch_id=branch.number,
                task_hint=task_hint,
                chars=len(result.text),
                shown=dump({"seq": result.seq, **shown}),
                created_at=writer.now,
            )

        return self._database.write(act)

    def of(self, branch_id: str) -> list[Injection]:
        """Return the entries of a branch's own prompts, newest first."""
        with self._branches.view(branch_id) as view:
            rows = view.connection.execute(
                "SELECT seq, task_hint, chars, shown, created_at FROM injections"
                " WHERE branch_id = ? ORDER BY seq DESC",
                (view.branch.number,),
            )
            return [
                Injection(seq, hint, chars, json.loads(shown), created)
                for seq, hint, chars, shown, created in rows
            ]


class MemoryPromptLog:
    """The two logs beside a prompt's own: the shown memory, and the operations of the reply.

    A log that cannot be written raises nothing; see `log_files`.
    """

    def __init__(self, folder: Path, **marks: Any) -> None:
        """Make the logs of a folder, with marks in each line. Nothing is written."""
        self._files = LogFolder(folder)
        self._marks = marks
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def injection(self, result: RenderResult, *, began: float | None = None, **marks: Any) -> None:
        """Add a line to ``memory_injections.jsonl``: the memory that a prompt showed, by id.

        The rendering `began` then, in seconds since 1970; `marks` are names, e.g. of the stage.
        """
        shown = {section.title: list(section.shown) for section in result.sections}
        dropped = {section.title: list(section.dropped) for section in result.sections}
        counts = {
            f"{tier}_count": len(shown.get(f"{tier.title()} Memory", ()))
            for tier in ("core", "recall", "archival")
        }
        facts = {"seq": result.seq, "rendered_chars": len(result.text), "query": result.query}
        line = {**marks, **facts, **counts, "shown": shown, "dropped": dropped}
        self._add("memory_injections.jsonl", line, began)

    def operations(
        self,
        updates: Mapping[str, Any],
        results: Mapping[str, Any],
        *,
        began: float | None = None,
        **marks: Any,
    ) -> None:
        """Add a line to ``memory_operations.jsonl``: a block, and the results.

        Its use `began` then, in seconds since 1970; `marks` are names, e.g. of the stage.
        """
        at = time.time()
        operations = [
            {"type": operation["type"], "timestamp": at, **without_secret_value(operation)}
            for operation in operations_of(updates, results)
        ]
        reads = {name: results[name] for name in _READS if name in results}
        facts = {
            "operations_count": len(operations),
            "operations": operations,
            "input_updates": dict(updates),
            "results": dict(results),
            "read_results": reads,
            "has_read_results": bool(reads),
        }
        self._add("memory_operations.jsonl", {**marks, **facts}, began)

    def _add(self, name: str, line: Mapping[str, Any], began: float | None) -> None:
        now = time.time()
        with self._lock:
            self._counts[name] += 1
            counter = self._counts[name]
        whole = {"timestamp": now, "counter": counter, **self._marks, **line}
        if began is not None:
            whole["timing"] = {
                "start_timestamp": began,
                "end_timestamp": now,
                "duration_seconds": round(now - began, 6),
            }
        try:
            text = encoded(redact_data(whole))
        except (ValueError, TypeError, RecursionError) as error:
            self._files.lose(name, 1, error)
            return
        self._files.append(name, [text])


_EVENT_FIELDS = {"kind", "tags", "refs", *TEXTS}


def event_details(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of a line about an event: the kind, the text and the tags."""
    details = {"kind": event.get("kind") or "event", "summary_preview": text_in(event)}
    return {**details, **({"tags": event["tags"]} if event.get("tags") else {})}


def log_node_write(
    log: OperationLog, node_id: str, parts: Mapping[str, Any], results: Mapping[str, Any]
) -> None:
    """Log a write of several things to a node: a line for the call, and one for each part.

    The parts are ``core``, ``recall`` and ``archival``; the results are the ids given to it.
    """
    event = parts.get("recall") or {}
    marks = {
        "branch_id": node_id,
        "node_id": _text(event.get("node_id")) or node_id,
        "phase": _text(event.get("phase")),
    }
    records: Sequence[Mapping[str, Any]] = parts.get("archival") or ()
    keys: Mapping[str, Any] = parts.get("core") or {}
    counts = {
        "core_updates": list(keys),
        "recall_event": bool(event),
        "archival_records": len(records),
    }
    log.add("mem_node_write", details=counts, **marks)
    for key, given in keys.items():
        is_full = isinstance(given, Mapping) and "value" in given
        entry = dict(given) if is_full else {"value": given}
        value = str(entry.pop("value"))
        details = {"key": key, "value_preview": value, "value_chars": len(value), **entry}
        log.add("mem_core_set", details=details, **marks)
    for record, id_ in zip(records, results.get("archival", ()), strict=True):
        text = str(record.get("text", ""))
        details = {"record_id": id_, "tags": record.get("tags") or [], "text_preview": text}
        log.add("mem_archival_write", details={**details, "text_chars": len(text)}, **marks)
    if event:
        log.add("mem_recall_append", details=event_details(event), **marks)


def log_block(
    log: OperationLog,
    updates: Mapping[str, Any],
    results: Mapping[str, Any],
    **marks: str | None,
) -> None:
    """Log a block that was applied: a line for each operation, and one for the whole.

    `marks` are its branch, node and phase.
    """
    is_new = not results.get("already_applied")
    operations = operations_of(updates, results) if is_new else []
    for operation in operations:
        details = {name: value for name, value in operation.items() if name != "type"}
        found = details.pop("results", None)
        if found is not None:
            details["record_ids"] = [item.get("id") for item in found]
        log.add(f"llm_{operation['type']}", details=details, **marks)
    names = [operation["type"] for operation in operations]
    details = {
        "core_keys": [item["key"] for item in operations if item["type"] == "core_set"],
        "archival_count": names.count("archival_write"),
        "has_core_get": "core_get" in names,
        "has_archival_search": "archival_search" in names,
        "has_recall_search": "recall_search" in names,
        "operations_count": len(operations),
        "operations_log": operations,
        "already_applied": not is_new,
    }
    log.add("apply_llm_memory_updates", details=details, **marks)


def operations_of(updates: Mapping[str, Any], results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the operations of a block, each with a ``type``, in the order of execution.

    The block may have the ``mem_`` names, too.
    """
    checked = check_updates(updates)
    return [
        operation
        for name, value in checked.items()
        for operation in _entries(name, value, results.get(name))
    ]


def _entries(name: str, value: Any, result: Any) -> Iterator[dict[str, Any]]:
    """Yield the operations of one entry of a checked block."""
    if name == "core":
        yield from ({"type": "core_set", **entry} for entry in value)
    elif name in {"core_delete", "core_get"}:
        field = "found" if name == "core_delete" else "value"
        yield from ({"type": name, "key": key, field: result[key]} for key in value)
    elif name in {"archival", "archival_update"}:
        type_ = "archival_write" if name == "archival" else name
        for item, id_ in zip(value, result, strict=True):
            yield {"type": type_, "record_id": id_, **item}
    elif name == "recall":
        for event, id_ in zip(value, result, strict=True):
            rest = {key: item for key, item in event.items() if key not in _EVENT_FIELDS}
            kind = event.get("kind")
            yield {"type": "recall_append", "kind": kind, "content": text_in(event),
                   "event_id": id_, **rest}  # fmt: skip
    elif name in {"archival_search", "recall_search"}:
        asked = {"tags_filter" if key == "tags" else key: item for key, item in value.items()}
        yield {"type": name, **asked, "results_count": len(result), "results": result}
    elif isinstance(result, Mapping):
        yield {"type": name, **result}
    else:
        yield {"type": name, "value": value}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
