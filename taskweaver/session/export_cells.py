"""Cells of exported conversations: outputs, printed results, plain pandas code for `read_table`.

Everything is made from the stored outcomes and the files beside the conversation: no cell runs
again. Rounds that record cells of another Jupyter client become rounds that run these cells.
"""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.reading.cells import ExecutedCell, table_reads
from taskweaver.memory.round import Round
from taskweaver.tables.plans.code import as_code, modules_of
from taskweaver.tables.plans.plan import TableRead
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.parsing import parse
from taskweaver.utils.text import fenced

MAX_PICTURE_BYTES = 2 << 20
"""Size of the largest picture that a notebook holds."""
MAX_PICTURES_BYTES = 16 << 20
"""Size of all pictures of a notebook."""
_HEADING = re.compile(r"#{2,4} (?P<title>[A-Z][A-Za-z ]{2,20})")
_FENCE = re.compile(r"(?P<marks>`{3,})\w*")
_MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_STREAMS = {"Output": "stdout", "Warnings": "stderr"}
_OUTSIDE = "Cells that ran outside of this conversation"
CELL = f"# {_OUTSIDE}"
"""The cell that runs in such a round: it does nothing, and its report has the variables."""
_READ, _PROFILE = "read_table", "profile_tables"


def parts_of(report: str) -> dict[str, str]:
    """Return the fenced texts of a cell's report by heading: ``Result``, ``Output``, ``Error``."""
    found: dict[str, str] = {}
    title = fence = ""
    lines: list[str] = []
    for line in report.split("\n"):
        heading, opening = _HEADING.fullmatch(line), _FENCE.fullmatch(line)
        if fence and line == fence:
            found.setdefault(title, "\n".join(lines))
            fence = ""
        elif fence:
            lines.append(line)
        elif heading:
            title = heading["title"]
        elif opening:
            fence, lines = opening["marks"], []
    return found


class NotebookOutputs:
    """The outputs of a notebook's cells.

    Pictures are embedded up to `MAX_PICTURE_BYTES` each and `MAX_PICTURES_BYTES` together; SVG is
    not, since it can hold script.
    """

    def __init__(self, folder: Path | None) -> None:
        """Take the working directory of the conversation; without one there are no pictures."""
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
        """Return the content of a file; empty for one that is too large, missing or no file."""
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
    return [_with_code(one) if _is_record(one) else one for one in rounds]


def _is_record(round_: Round) -> bool:
    return round_.user_query.startswith(f"{_OUTSIDE}:\n```")


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


def with_plain_tables(rounds: Sequence[Round]) -> list[Round]:
    """Return copies of rounds in which cells read tables with pandas alone.

    A call with a literal path becomes the expression of its plan. Where the path is computed, the
    cell defines a function of this name, with the expressions of all plans of the conversation.
    Cells that only profile files are left out.
    """
    reads = [read for round_ in rounds for post in round_.post_list for read in table_reads(post)]
    return [
        replace(round_, post_list=[_plain_post(post, reads) for post in round_.post_list])
        for round_ in rounds
    ]


def _plain_post(post: Post, reads: Sequence[TableRead]) -> Post:
    codes = [str(item.content) for item in post.get_attachment(AttachmentType.reply_content)]
    if not any(name in code for code in codes for name in (_READ, _PROFILE)):
        return post
    own = table_reads(post) or reads
    kept = []
    for item in post.attachment_list:
        if item.type is AttachmentType.reply_content:
            code = plain_code(str(item.content), own, reads)
            if not code.strip():
                continue
            item = replace(item, content=code)
        kept.append(item)
    return replace(post, attachment_list=kept)


def plain_code(code: str, own: Sequence[TableRead], reads: Sequence[TableRead]) -> str:
    """Return the code of a cell without functions of TaskWeaver's kernels.

    `own` are the calls of `read_table` of this cell, `reads` those of the conversation.
    """
    if code.lstrip().startswith("%%"):
        return code
    code = code.replace("\r\n", "\n").replace("\r", "\n")  # as the parser counts lines
    try:
        tree = parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return code if _READ not in code else _defined(code, reads)
    nodes = list(ast.walk(tree))
    if _is_rebound(nodes):
        return code
    if _is_profile_only(tree):
        return ""
    calls = [node for node in nodes if isinstance(node, ast.Call) and _is_call(node, _READ)]
    found = [(call, _plan_code(call, own)) for call in calls]
    known = [(call, text) for call, text in found if text is not None]
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id == _READ]
    plain = _substituted(code, known)
    modules = modules_of(" ".join(text for _, text in known))
    if len(known) < len(names) and reads:
        plain = _defined(plain, reads)
    if any(isinstance(node, ast.Name) and node.id == _PROFILE for node in nodes):
        plain = f"def {_PROFILE}(path, find='', **options):\n    return None\n\n\n{plain}"
    imports = "".join(f"import {name}\n" for name in modules)
    return f"{imports}\n{plain}" if imports else plain


def _is_rebound(nodes: Iterable[ast.AST]) -> bool:
    """Return whether a cell gives the name another meaning."""
    for node in nodes:
        match node:
            case ast.Name(name, ast.Store()) | ast.alias(name, None) | ast.arg(name):
                if name == _READ:
                    return True
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                if name == _READ:
                    return True
            case ast.alias(asname=str(name)) if name == _READ:
                return True
    return False


def _is_profile_only(tree: ast.Module) -> bool:
    return bool(tree.body) and all(
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and _is_call(statement.value, _PROFILE)
        for statement in tree.body
    )


def _is_call(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


def _plan_code(call: ast.Call, reads: Sequence[TableRead]) -> str | None:
    """Return the code of a call with literal arguments; None for another call."""
    given = dict(zip(("path", "sheet"), call.args, strict=False))
    given |= {keyword.arg or "": keyword.value for keyword in call.keywords}
    values = {name: value.value for name, value in given.items() if isinstance(value, ast.Constant)}
    if len(values) != len(given) or not given.keys() <= {"path", "sheet"} or len(call.args) > 2:
        return None
    wanted = values.get("path"), values.get("sheet")
    plans = [read.plan for read in reads if (read.path, read.sheet) == wanted]
    return as_code(plans[-1]) if plans else None


def _substituted(code: str, known: Sequence[tuple[ast.Call, str]]) -> str:
    """Return code with calls replaced; the positions of a syntax tree count bytes."""
    content = code.encode("utf-8")
    starts = [0]
    for line in content.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    backwards = sorted(known, key=lambda item: (item[0].lineno, item[0].col_offset), reverse=True)
    for call, text in backwards:
        begin = starts[call.lineno - 1] + call.col_offset
        end = starts[(call.end_lineno or call.lineno) - 1] + (call.end_col_offset or 0)
        content = content[:begin] + text.encode("utf-8") + content[end:]
    return content.decode("utf-8")


def _defined(code: str, reads: Sequence[TableRead]) -> str:
    """Return code after the definition of a function that reads the tables of a conversation."""
    plans = {(read.path, read.sheet): as_code(read.plan) for read in reads}
    modules = modules_of(" ".join(plans.values()))
    imports = "".join(f"import {name}\n" for name in modules)
    lines = "\n".join(_entries(plans))
    function = (
        f"def {_READ}(path, sheet=None):\n"
        f"    readers = {{\n{lines}\n    }}\n"
        "    return readers[str(path), sheet]()"
    )
    return f"{imports}import pandas as pd\n\n\n{function}\n\n\n{code}"


def _entries(plans: dict[tuple[str, str | int | None], str]) -> Iterator[str]:
    for key, text in plans.items():
        yield f"        {key!r}: lambda: {text},"
