"""Cells as tool calls: their code, their output while they run, their outcome and figures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acp.helpers import (
    ContentBlock,
    image_block,
    resource_link_block,
    start_tool_call,
    text_block,
    tool_content,
    update_tool_call,
)
from acp.schema import ContentToolCallContent, ToolCallProgress, ToolCallStart, ToolCallStatus

from taskweaver.face.answer import is_picture, read_figures
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.redact import redact_known
from taskweaver.utils.text import fenced, shorten

_TITLE_CHARS = 80
_LIVE_CHARS = 4_000
"""Characters of the output that are shown while a cell runs, the newest."""
_OUTCOME_CHARS = 20_000


@dataclass(slots=True)
class CellCall:
    """The tool call of a cell.

    Attributes:
        id: Id of the call.
        code: The cell.
        output: The newest output.
        is_running: Whether it runs; else a person is asked about it.
    """

    id: str
    code: str
    output: str = ""
    is_running: bool = False

    def begin(self) -> ToolCallStart:
        """Return the beginning of the call."""
        return start_tool_call(
            self.id,
            _title(self.code),
            kind="execute",
            status="in_progress" if self.is_running else "pending",
            content=[self._code_content()],
            raw_input={"code": shown(self.code)},
        )

    def run(self) -> ToolCallProgress:
        """Return the update that says that it runs."""
        self.is_running = True
        return update_tool_call(self.id, status="in_progress")

    def print(self, text: str) -> ToolCallProgress:
        """Add output, and return the update that shows it."""
        self.output = (self.output + text)[-_LIVE_CHARS:]
        printed = text_block(fenced(shown(self.output)))
        content = [self._code_content(), tool_content(printed)]
        return update_tool_call(self.id, status="in_progress", content=content)

    def end(
        self, status: ToolCallStatus, outcome: str, made: Sequence[ContentBlock] = ()
    ) -> ToolCallProgress:
        """Return the end of the call.

        Args:
            status: Whether it succeeded.
            outcome: Its report, as Markdown.
            made: The files that it made.
        """
        blocks = [
            *([text_block(shorten(shown(outcome), _OUTCOME_CHARS))] if outcome else []),
            *made,
        ]
        content = [self._code_content(), *map(tool_content, blocks)]
        return update_tool_call(self.id, status=status, content=content)

    def _code_content(self) -> ContentToolCallContent:
        return tool_content(text_block(fenced(shown(self.code), "python")))


def made_files(names: Sequence[str], folder: Path) -> list[ContentBlock]:
    """Return the files that a cell made: pictures as images, all others as links."""
    blocks: list[ContentBlock] = []
    for name in names:
        figure = next(read_figures([name], folder), None) if is_picture(name) else None
        if figure is not None and figure.data:
            data = base64.b64encode(figure.data).decode()
            blocks.append(image_block(data, figure.mime, uri=figure.path.as_uri()))
        else:
            blocks.append(resource_link_block(name, (folder / name).absolute().as_uri()))
    return blocks


def shown(text: str) -> str:
    """Return a text as clients see it: without secrets and characters that steer a display."""
    return without_steering(redact_known(text))


def _title(code: str) -> str:
    lines = [line.strip() for line in code.strip().splitlines() if line.strip()]
    first = shown(lines[0]) if lines else "code"
    return first if len(first) <= _TITLE_CHARS else f"{first[: _TITLE_CHARS - 3]}..."
