"""Results in the answers of a server: of their types, and bounded, whatever it sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from taskweaver.ces.claims import items, rows, text, texts
from taskweaver.ces.common import CellStatus, ExecutionArtifact, ExecutionResult, PluginCall
from taskweaver.tables.plans.plan import reads_of

_OUTPUT_CHARS = 1 << 20


def result_from(exec_id: str, code: str, answer: Any, details: Any) -> ExecutionResult:
    """Return the result in an answer.

    Args:
        exec_id: Id of the cell.
        code: Its code.
        answer: The result, in the shape of the original.
        details: The facts for which that has no place.
    """
    found: Mapping[str, Any] = answer if isinstance(answer, dict) else {}
    more: Mapping[str, Any] = details if isinstance(details, dict) else {}
    is_success = found.get("is_success") is True
    error = text(found.get("error"), _OUTPUT_CHARS)
    status = next((name for name in get_args(CellStatus) if name == more.get("status")), None)
    return ExecutionResult(
        execution_id=exec_id,
        code=code,
        is_success=is_success,
        error=None if is_success else error or "The server gave no result.",
        output="" if found.get("output") is None else found["output"],
        stdout=_output(found.get("stdout")),
        stderr=_output(found.get("stderr")),
        log=[(level, tag, line) for level, tag, line in rows(found.get("log"), 3)],
        artifact=[_artifact(item) for item in items(found.get("artifact"))],
        variables=[(name, value) for name, value in rows(found.get("variables"), 2)],
        status=status or ("ok" if is_success else "error"),
        is_state_lost=more.get("is_state_lost") is True,
        is_truncated=more.get("is_truncated") is True,
        duration_s=_number(more.get("duration_s")),
        calls=[_call(*row) for row in items(more.get("calls")) if _is_call(row)],
        tables=reads_of(more.get("tables")),
    )


def _output(value: Any) -> list[str]:
    whole = "".join(piece for piece in items(value) if isinstance(piece, str))
    return [text(whole, _OUTPUT_CHARS)] if whole else []


def _artifact(item: Any) -> ExecutionArtifact:
    found = item if isinstance(item, dict) else {}
    names = ("name", "type", "mime_type", "original_name", "file_name", "preview")
    facts = dict(zip(names, texts([found.get(name) for name in names]), strict=True))
    content = found.get("file_content")
    return ExecutionArtifact(
        **facts,
        file_content=content if isinstance(content, str) else "",
        file_content_encoding=text(found.get("file_content_encoding")) or "str",
    )


def _is_call(row: Any) -> bool:
    return isinstance(row, list) and len(row) == len(PluginCall.__slots__)


def _call(name: Any, began_s: Any, duration_s: Any, error: Any) -> PluginCall:
    return PluginCall(text(name, 200), _number(began_s), _number(duration_s), text(error, 200))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
