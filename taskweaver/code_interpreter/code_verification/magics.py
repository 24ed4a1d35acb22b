"""The magics and shell lines that every policy allows: installing packages, and measuring time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ALLOWED_INSTALL = re.compile(r"install(?:\s+(?:-q|--quiet|-U|--upgrade|[\w.\-\[\],=<>!~]+))+\s*")
_SHELL_INSTALL = re.compile(rf"\s*(?:pip3?|conda)\s+{ALLOWED_INSTALL.pattern}")
_INSTALLERS = {"pip", "conda", "mamba"}
_TIMERS = {"time", "timeit"}
_TIMER_OPTIONS = re.compile(r"\s*(?:-[nr]\s*\d+\s+|-[tcpqo]+(?:\s*\d+)?\s+)*")
_HARMLESS = {
    "matplotlib": re.compile(r"\s*\w*\s*"),
    "precision": re.compile(r"\s*\d*\s*"),
    "pwd": re.compile(r"\s*"),
    "who": re.compile(r"[\s\w]*"),
    "whos": re.compile(r"[\s\w]*"),
    "config": re.compile(r"\s*InlineBackend\.figure_formats?\s*=\s*(['\"]?)\w+\1\s*"),
}


@dataclass(frozen=True, slots=True)
class AllowedMagic:
    """A use of a magic that is allowed.

    Attributes:
        name: The name ``get_ipython`` in it.
        texts: Its arguments, which are data or are checked as code.
        code: The code that it runs, which is checked like the rest; empty for none.
    """

    name: ast.AST
    texts: tuple[ast.AST, ...]
    code: str = ""


def allowed_magics(nodes: Iterable[ast.AST]) -> Iterator[AllowedMagic]:
    """Give the uses of ``get_ipython`` that only install packages, measure time or show things."""
    for node in nodes:
        match node:
            case ast.Call(
                ast.Attribute(ast.Call(ast.Name("get_ipython") as name)) as function, arguments
            ) if all(isinstance(item, ast.Constant) for item in arguments):
                texts = [str(item.value) for item in arguments if isinstance(item, ast.Constant)]
                code = _allowed_code(function.attr, texts)
                if code is not None:
                    yield AllowedMagic(name, (function, *arguments), code)


def _allowed_code(kind: str, texts: list[str]) -> str | None:
    """Return the code that a magic runs; None if the magic is not allowed."""
    if kind == "system":
        return "" if texts and _SHELL_INSTALL.fullmatch(texts[0]) else None
    if kind not in {"run_line_magic", "run_cell_magic"} or len(texts) < 2:
        return None
    name, line, *body = texts
    if name in _TIMERS:
        setup = line[len(_TIMER_OPTIONS.match(line)[0]) :]  # type: ignore[index]  # it matches ""
        return "\n".join([setup, *body])
    if kind == "run_cell_magic":
        return None
    if name in _INSTALLERS:
        return "" if ALLOWED_INSTALL.fullmatch(line) else None
    pattern = _HARMLESS.get(name)
    return "" if pattern is not None and pattern.fullmatch(line) else None
