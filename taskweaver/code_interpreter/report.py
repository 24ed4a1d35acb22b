"""Reports of cells: a message for the Planner, feedback for the code model."""

from __future__ import annotations

import pprint
import re
from collections.abc import Iterable
from typing import Any

from taskweaver.ces.common import ExecutionResult
from taskweaver.utils.markup.quoting import indented
from taskweaver.utils.text import fenced, shorten

RESULT_CHARS = 8_000
OUTPUT_CHARS = 4_000
ERROR_CHARS = 3_000
PREVIEW_CHARS = 700
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
"""Earlier states of a line that a progress bar writes again and again.

Without the anchor each character of a long line would be tried as the first one.
"""


def render_value(value: Any) -> str:
    """Return the value of a cell as text; plain data is laid out over lines."""
    return value if isinstance(value, str) else pprint.pformat(value, width=100, sort_dicts=False)


def sections(result: ExecutionResult, *, level: int = 2, code: str | None = None) -> str:
    """Describe a run in sections: code, execution, result, output, error, artifacts.

    Without `code` that section is left out.
    """
    output, warned = (_OVERWRITTEN.sub("", "".join(one)) for one in (result.stdout, result.stderr))
    error = "\n".join(filter(None, [result.error or "", warned]))
    logs = "\n".join(f"{level_}: {tag}: {message}" for level_, tag, message in result.log)
    parts = [
        ("Code", fenced(code, "python") if code else ""),
        ("Execution", _verdict(result)),
        ("Result", _bounded(render_value(result.output), RESULT_CHARS)),
        ("Output", _bounded(output, OUTPUT_CHARS)),
        ("Plugin log", _bounded(logs, OUTPUT_CHARS)),
        ("Warnings" if result.is_success else "Error", _bounded(error, ERROR_CHARS)),
        ("Artifacts", "\n".join(_artifact_lines(result))),
    ]
    heading = "#" * level
    return "\n\n".join(f"{heading} {title}\n{text}" for title, text in parts if text)


def _verdict(result: ExecutionResult) -> str:
    text = "The code ran to its end." if result.is_success else "The code failed."
    shown = (render_value(result.output), *result.stdout, *result.artifact, *result.log)
    if result.is_success and not any(shown):
        text += " It has no value and printed nothing."
    if result.is_state_lost:
        text += " The Python session was restarted."
    if result.is_truncated:
        text += " Some of its output was left out because there was too much."
    return text


def _bounded(text: str, limit_chars: int) -> str:
    return fenced(shorten(text, limit_chars)) if text.strip() else ""


def _artifact_lines(result: ExecutionResult) -> Iterable[str]:
    for artifact in result.artifact:
        place = artifact.file_name or artifact.original_name or artifact.name
        note = f" ({shorten(artifact.preview, PREVIEW_CHARS)})" if artifact.preview else ""
        yield f"- {indented(f'{artifact.type}: {place}{note}')}"
