"""Cells of exported conversations: outputs, printed results, `read_table` with pandas alone.

Everything is made from the stored outcomes and the files beside the conversation: no cell runs
again. Rounds that record cells of another Jupyter client become rounds that run these cells.
"""

from __future__ import annotations

import ast
import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import ExecutedCell, parts_of, successful_cells, table_reads
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.tables.plans.code import as_code
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.parsing import parse
from taskweaver.utils.text import fenced

MAX_PICTURE_BYTES = 2 << 20
"""Size of the largest picture that a notebook holds."""
MAX_PICTURES_BYTES = 16 << 20
"""Size of all pictures of a notebook."""
_MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_STREAMS = {"Output": "stdout", "Warnings": "stderr"}
_OUTSIDE = "Cells that ran outside of this conversation"
CELL = f"# {_OUTSIDE}"
"""The cell that runs in such a round: it does nothing, and its report has the variables."""
_READ, _PROFILE = "read_table", "profile_tables"


class NotebookOutputs:
    """The outputs of a notebook's cells.

    Pictures are embedded up to `MAX_PICTURE_BYTES` each and `MAX_PICTURES_BYTES` together; SVG is
    not, since it can hold script.
    """

    def __init__(self, folder: Path | None) -> None:
        """Take the working directory of the conversation. Without one there are no pictures."""
        self._folder = folder
        self._rest_bytes = MAX_PICTURES_BYTES

    def of(self, cell: ExecutedCell, number: int) -> list[dict[str, Any]]:
        """Return the outputs of a cell in the notebook format."""
        parts = parts_of(cell.report)
        outputs: list[dict[str, Any]] = [
            {"output_type": "stream", "name": name, "text": f"{without_steering(parts[title])}\n"}
            for title, name in _STREAMS.items()
            if title in parts
        ]
        outputs += self._pictures(cell)
        if "Result" in parts:
            data = {"text/plain": without_steering(parts["Result"])}
            outputs.append(
                {
                    "output_type": "execute_result",
                    "execution_count": number,
                    "metadata": {},
                    "data": data,
                }
            )
        return outputs

    def _pictures(self, cell: ExecutedCell) -> Iterator[dict[str, Any]]:
        for name in cell.artifacts:
            picture = self._read(name)
            kind = next((k for magic, k in _MAGIC.items() if picture.startswith(magic)), "")
            if kind:
                data = {kind: base64.b64encode(picture).decode()}
                yield {"output_type": "display_data", "metadata": {}, "data": data}

    def _read(self, name: str) -> bytes:
        """Return the content of a file, empty for one that is too large, missing or no file."""
        if self._folder is None:
            return b""
        try:
            with Folder.at(self._folder) as folder, folder.open_file(name) as file:
                content = file.read(MAX_PICTURE_BYTES + 1)
        except (OSError, ValueError):  # files that were removed or renamed since
            return b""
        if len(content) > min(MAX_PICTURE_BYTES, self._rest_bytes):
            return b""
        self._rest_bytes -= len(content)
        return content


def printing(code: str, report: str) -> str:
    """Return the code of a cell with its last expression printed, if the cell had a result."""
    if "Result" not in parts_of(report) or "\r" in code:
        return code
    try:
        last = parse(code).body[-1]
        if not isinstance(last, ast.Expr):
            return code
        changed = _wrapped(code, last.value)
        parse(changed)
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        return code  # magics and shell commands, which are no Python
    return changed


def _wrapped(code: str, value: ast.expr) -> str:
    """Return code with a call of `print` around an expression."""
    lines = code.encode().split(b"\n")  # columns of syntax trees count bytes
    assert value.end_lineno is not None
    assert value.end_col_offset is not None
    end, start = value.end_lineno - 1, value.lineno - 1
    opening, closing = (b"print((", b"))") if isinstance(value, ast.Tuple) else (b"print(", b")")
    lines[end] = lines[end][: value.end_col_offset] + closing + lines[end][value.end_col_offset :]
    lines[start] = lines[start][: value.col_offset] + opening + lines[start][value.col_offset :]
    return b"\n".join(lines).decode()


def outside_query(codes: Sequence[str]) -> str:
    """Return the text of a round that records cells."""
    cells = fenced("\n\n".join(codes), "python")
    return f"{_OUTSIDE}:\n{cells}"


def with_outside_cells(rounds: Sequence[Round]) -> list[Round]:
    """Return copies of rounds in which the recorded cells are code, so that exports run them."""
    start = f"{_OUTSIDE}:\n```"
    return [_with_code(one) if one.user_query.startswith(start) else one for one in rounds]


def _with_code(round_: Round) -> Round:
    _, _, *lines, _ = round_.user_query.split("\n")
    posts = [_with_cell(post, "\n".join(lines)) for post in round_.post_list]
    return replace(round_, user_query=f"{_OUTSIDE}.", post_list=posts)


def _with_cell(post: Post, code: str) -> Post:
    items = [
        replace(item, content=code)
        if item.type is AttachmentType.reply_content and item.content == CELL
        else item
        for item in post.attachment_list
    ]
    return replace(post, attachment_list=items)


def without_profiles(rounds: Sequence[Round]) -> list[Round]:
    """Return copies of rounds without the cells that only profile files."""
    return [
        replace(round_, post_list=[_without_profile(post) for post in round_.post_list])
        for round_ in rounds
    ]


def _without_profile(post: Post) -> Post:
    kept = [
        item
        for item in post.attachment_list
        if item.type is not AttachmentType.reply_content or not _is_profile(str(item.content))
    ]
    return replace(post, attachment_list=kept)


def _is_profile(code: str) -> bool:
    if _PROFILE not in code:
        return False
    try:
        body = parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    calls = (line.value for line in body if isinstance(line, ast.Expr))
    found = [getattr(call.func, "id", "") for call in calls if isinstance(call, ast.Call)]
    return bool(body) and found == [_PROFILE] * len(body)


def table_functions(rounds: Sequence[Round]) -> str:
    """Return code that defines the kernel's functions on tables, as far as cells use them.

    `read_table` reads each table of the conversation with pandas alone, by the newest plan.
    """
    reads = [read for round_ in rounds for post in round_.post_list for read in table_reads(post)]
    plans = {(read.path, read.sheet): as_code(read.plan) for read in reads}
    code = "\n".join(cell.code for cell in successful_cells(rounds))
    found = []
    if plans and _READ in code:
        lines = "\n".join(f"        {key!r}: lambda: {text}," for key, text in plans.items())
        found.append(
            f"def {_READ}(path, sheet=None):\n"
            f"    readers = {{\n{lines}\n    }}\n"
            "    return readers[str(path), sheet]()"
        )
    if _PROFILE in code:
        found.append(f"def {_PROFILE}(path, find='', **options):\n    return None")
    return "\n\n\n".join(found)
