"""A kernel's report of a cell, as the host accepts it.

Code can forge everything its kernel sends, so each field is a claim: of its type or left out,
bounded, and never a path or a name that is used as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskweaver.ces.claims import items, rows, text
from taskweaver.ces.common import PluginCall
from taskweaver.ces.errors import KernelError
from taskweaver.ces.kernel.traces import readable_trace
from taskweaver.tables.plans.plan import TableRead, reads_of

MAX_REPORT_CHARS = 16 << 20
_MAX_DEPTH = 64
_MAX_TRACE_CHARS = 1 << 20
_MAX_SECONDS = 1e7


@dataclass(frozen=True, slots=True)
class Report:
    """The report on a cell.

    Attributes:
        output: Value of its last expression.
        variables: Visible variables: name, short rendering.
        log: Plugin log lines: level, tag, message.
        artifacts: The artifacts it lists.
        is_truncated: Whether the kernel left output out.
        calls: Calls of plugins.
        tables: Calls of `read_table`.
        table: Value of its last expression as a table; empty for none.
    """

    output: Any = ""
    variables: list[tuple[str, str]] = field(default_factory=list)
    log: list[tuple[str, str, str]] = field(default_factory=list)
    artifacts: list[Mapping[str, Any]] = field(default_factory=list)
    is_truncated: bool = False
    calls: list[PluginCall] = field(default_factory=list)
    tables: list[TableRead] = field(default_factory=list)
    table: object = ""


def fields(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields the kernel's own side put into a reply; none when there are none."""
    expressions = reply.get("user_expressions")
    text = expressions.get("taskweaver") if isinstance(expressions, dict) else None
    if not isinstance(text, str):
        return {}
    if len(text) > MAX_REPORT_CHARS:
        return {"output": f"<the report of this cell is too large: {len(text):,} characters>"}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def answer(operation: str, reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in the reply to an operation.

    Raises:
        KernelError: If it failed in the kernel, which goes on.
    """
    if reply.get("status") == "error":
        reason = trace(reply).rpartition("\n")[2]
        raise KernelError(f"The kernel could not do `{operation}`: {reason}")
    return fields(reply)


def read_report(reply: Mapping[str, Any]) -> Report:
    """Return the report on a cell in a reply."""
    return report_of(fields(reply))


def report_of(found: Mapping[str, Any]) -> Report:
    """Return the report on a cell, from its fields."""
    output = found.get("output", "")
    dropped = found.get("dropped_chars")
    return Report(
        output if _is_shallow(output) else "<a value that is nested too deeply>",
        [(row[0], row[1]) for row in rows(found.get("variables"), 2)],
        [(row[0], row[1], row[2]) for row in rows(found.get("log"), 3)],
        [item for item in items(found.get("artifacts")) if isinstance(item, dict)],
        isinstance(dropped, int) and dropped > 0,
        [call for row in items(found.get("calls")) if (call := _call(row))],
        reads_of(found.get("tables")),
        found.get("table", ""),
    )


def _call(row: object) -> PluginCall | None:
    match row:
        case [str(name), int() | float() as began_s, int() | float() as took_s, str(error)]:
            if 0 <= began_s < _MAX_SECONDS and 0 <= took_s < _MAX_SECONDS:
                kind = error if error.isidentifier() or not error else "error"
                return PluginCall(text(name, 200), began_s, took_s, text(kind, 200))
    return None


def trace(reply: Mapping[str, Any]) -> str:
    """Return the traceback in a reply; empty when there is none."""
    lines = reply.get("traceback")
    parts = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    return readable_trace(text("".join(parts), _MAX_TRACE_CHARS).strip())


def _is_shallow(value: Any) -> bool:
    """Return whether plain data is nested so little that whoever walks it comes to an end."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, list | dict)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return True
    return False
