"""Audit trail of prompts: the memory that each one showed, beside the tiers.

It is kept in the file, and never among the events: events about the memory itself would crowd out
the others.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.logs.log_files import LogFolder
from taskweaver.memory.branched.logs.log_lines import encoded, without_secret_value
from taskweaver.memory.branched.protocol.operation_lines import operations_of
from taskweaver.memory.branched.storage.database import Database, Writer
from taskweaver.memory.branched.tiers.branches import Branches
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


class Injections:
    """The audit trail of all branches."""

    def __init__(self, database: Database, branches: Branches) -> None:
        self._database = database
        self._branches = branches

    def add(self, branch_id: str, result: RenderResult, task_hint: str | None) -> int:
        """Record that a rendered memory was put into a prompt; return the row's number."""
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
        with self._database.snapshot() as connection:
            branch = self._branches.find(connection, branch_id)
            rows = connection.execute(
                "SELECT seq, task_hint, chars, shown, created_at FROM injections"
                " WHERE branch_id = ? ORDER BY seq DESC",
                (branch.number,),
            )
            return [
                Injection(seq, hint, chars, json.loads(shown), created)
                for seq, hint, chars, shown, created in rows
            ]


class MemoryPromptLog:
    """The two logs beside a prompt's own: the memory it showed, and the operations of its reply.

    A log that cannot be written raises nothing; see `log_files`.
    """

    def __init__(self, folder: Path, **marks: Any) -> None:
        """Make the logs of a folder, with marks in each line, e.g. of the stage; write none."""
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
        """Add a line to ``memory_operations.jsonl``: a block, and its results.

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
