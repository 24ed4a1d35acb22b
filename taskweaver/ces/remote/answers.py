"""Results in the answers of a server: of their types, and bounded, whatever it sends."""

from __future__ import annotations

from typing import Any, get_args

from taskweaver.ces.claims import items, mapping, text, texts
from taskweaver.ces.common import CellStatus, ExecutionArtifact, ExecutionResult
from taskweaver.ces.kernel.reported import report_of

_OUTPUT_CHARS = 1 << 20


def result_from(exec_id: str, code: str, answer: Any, details: Any) -> ExecutionResult:
    """Return the result in an answer.

    Args:
        exec_id: Id of the cell.
        code: Its code.
        answer: The result, in the shape of the original.
        details: The facts for which that has no place.
    """
    found, more = mapping(answer), mapping(details)
    is_success = found.get("is_success") is True
    error = text(found.get("error"), _OUTPUT_CHARS)
    status = next((name for name in get_args(CellStatus) if name == more.get("status")), None)
    report = report_of({**found, "calls": more.get("calls"), "tables": more.get("tables")})
    return ExecutionResult(
        execution_id=exec_id,
        code=code,
        is_success=is_success,
        error=None if is_success else error or "The server gave no result.",
        output="" if report.output is None else report.output,
        stdout=_output(found.get("stdout")),
        stderr=_output(found.get("stderr")),
        log=report.log,
        artifact=[_artifact(item) for item in items(found.get("artifact"))],
        variables=report.variables,
        status=status or ("ok" if is_success else "error"),
        is_state_lost=more.get("is_state_lost") is True,
        is_truncated=more.get("is_truncated") is True,
        duration_s=_number(more.get("duration_s")),
        calls=report.calls,
        tables=report.tables,
    )


def _output(value: Any) -> list[str]:
    whole = "".join(piece for piece in items(value) if isinstance(piece, str))
    return [text(whole, _OUTPUT_CHARS)] if whole else []


def _artifact(item: Any) -> ExecutionArtifact:
    found = mapping(item)
    names = ("name", "type", "mime_type", "original_name", "file_name", "preview")
    facts = dict(zip(names, texts([found.get(name) for name in names]), strict=True))
    content = found.get("file_content")
    return ExecutionArtifact(
        **facts,
        file_content=content if isinstance(content, str) else "",
        file_content_encoding=text(found.get("file_content_encoding")) or "str",
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
