"""Replace `read_table` in cells of exported files by the plain pandas code of its plans."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import table_reads
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.tables.plans.code import as_code, modules_of
from taskweaver.tables.plans.plan import TableRead
from taskweaver.utils.parsing import parse

_READ, _PROFILE = "read_table", "profile_tables"


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
