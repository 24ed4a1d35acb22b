"""The span of a cell, with one below it for each plugin that the cell called."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator
from contextlib import contextmanager

from taskweaver.ces.common import ExecutionResult
from taskweaver.code_interpreter.scope import SCRIPT
from taskweaver.logging.spans import ARGUMENTS, RESULT, Span, tool
from taskweaver.logging.tracing import Tracing

_EXCEPTION = re.compile(r"(?:\w+\.)*([A-Z]\w{2,60})(?::|$)")


@contextmanager
def cell_span(tracing: Tracing, exec_id: str, code: str) -> Iterator[Span]:
    """Record the block as the run of a cell."""
    language = "bash" if code.startswith(SCRIPT) else "python"
    operation = tool(language, "extension", {"gen_ai.tool.call.id": exec_id})
    with tracing.running(operation) as span:
        span.content(ARGUMENTS, lambda: json.dumps({"code": code}, ensure_ascii=False))
        yield span


def note_result(span: Span, result: ExecutionResult, plugins: Container[str]) -> None:
    """Record how a cell ended, and the plugins it called.

    Calls of others than `plugins` are tools, which have spans of their own.
    """
    span.set("taskweaver.cell.status", result.status)
    span.content(RESULT, lambda: _outcome(result))
    for call in result.calls:
        if call.name in plugins:
            span.child(tool(call.name, "function"), call.began_s, call.duration_s, call.error)
    if not result.is_success:
        # Not with its text, which may quote data: that is a content.
        span.fail(result.status if result.status != "error" else _error_name(result))


def _error_name(result: ExecutionResult) -> str:
    """Return the name of the exception in the last line of a traceback."""
    found = _EXCEPTION.match(result.reason)
    return found[1] if found else "error"


def _outcome(result: ExecutionResult) -> str:
    outcome = {
        "output": result.output,
        "stdout": "".join(result.stdout),
        "stderr": "".join(result.stderr),
        "error": result.error or "",
    }
    return json.dumps(outcome, ensure_ascii=False, default=str)
