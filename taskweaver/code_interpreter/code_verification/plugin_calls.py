"""Check of cells that may only call plugins.

A cell that passes is a list of calls of known functions, with literal values or results of earlier
calls. Unlike a policy for code this is a wall: nothing else of Python is let through, so that a
cell can do no more than its plugins.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator

from taskweaver.ces.inkernel.namespace import USUAL_NAMES
from taskweaver.code_interpreter.code_verification.policy_check import (
    nodes_of,
    tree_of,
    unreadable,
)

_RESERVED = frozenset({*dir(builtins), *USUAL_NAMES, "get_ipython", "In", "Out"})
_FORM = "write `result = plugin(...)`, one call at a time"


def plugin_call_problems(
    code: str, plugins: Collection[str], earlier: Iterable[str] = ()
) -> list[str]:
    """Return the statements of a cell that are no calls of plugins, a sentence each, by line.

    It never raises, whatever the text.

    The variables of the `earlier` cells, which ran before, still hold.
    """
    try:
        check = _Check(frozenset(plugins), _assigned(earlier))
        statements = tree_of(code).body
        found = [problem for statement in statements for problem in check.statement(statement)]
    except Exception as error:  # noqa: BLE001 - a text that no parser takes is refused
        return [unreadable(error)]
    if not statements:
        return ["There is no call in it."]
    return [f"Line {line}: {problem}." for line, problem in dict.fromkeys(found)]


def _assigned(cells: Iterable[str]) -> set[str]:
    """Return the names cells assign, without imports and definitions."""
    return {
        node.id
        for cell in cells
        for node in nodes_of(cell)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


Finding = tuple[int, str]


class _Check:
    """Checks one cell, statement by statement; assigned names are known to the next."""

    def __init__(self, plugins: frozenset[str], known: set[str]) -> None:
        self._plugins = plugins
        self._known = known - plugins - _RESERVED

    def statement(self, node: ast.stmt) -> Iterator[Finding]:
        """Yield the violations of a statement."""
        match node:
            case ast.Assign([target], ast.Call() as call):
                yield from self._call(call)
                yield from self._target(target)
            case ast.Expr(ast.Call() as call):
                yield from self._call(call)
            # No others: IPython takes a line `rm["x"]` for a command where `rm` is no variable.
            case ast.Expr(ast.Name() | ast.List() | ast.Dict() as value):
                yield from self._value(value)
            case _:
                yield node.lineno, f"only calls of plugins are allowed; {_FORM}"

    def _call(self, call: ast.Call) -> Iterator[Finding]:
        match call.func:
            case ast.Name(name) if name in self._plugins:
                pass
            case ast.Name("get_ipython") | ast.Attribute(ast.Call(ast.Name("get_ipython"))):
                yield call.lineno, "magics and shell commands are not allowed"
                return
            case function:
                known = ", ".join(sorted(self._plugins)) or "none"
                text = f"calling `{ast.unparse(function)}` is not allowed; the plugins are: {known}"
                yield call.lineno, text
        yield from self._values(call.args)
        for keyword in call.keywords:
            if keyword.arg is None:
                yield call.lineno, "`**` is not allowed; write the arguments out"
            yield from self._value(keyword.value)

    def _target(self, target: ast.expr) -> Iterator[Finding]:
        match target:
            case ast.Name(name) if name in self._plugins | _RESERVED or name.startswith("_"):
                yield target.lineno, f"{name!r} is not a name for a result"
            case ast.Name(name):
                self._known.add(name)
            case ast.Tuple(parts) | ast.List(parts):
                for part in parts:
                    yield from self._target(part)
            case _:
                yield target.lineno, "a result is given a name, and nothing else is assigned"

    def _value(self, node: ast.expr) -> Iterator[Finding]:
        match node:
            case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant(int() | float())):
                pass
            case ast.Name(name) if name not in self._known:
                yield node.lineno, f"{name!r} is not the result of an earlier call"
            case ast.Name():
                pass
            case ast.List(parts) | ast.Tuple(parts) | ast.Set(parts):
                yield from self._values(parts)
            case ast.Dict(keys, values) if None not in keys:
                yield from self._values([key for key in keys if key is not None])
                yield from self._values(values)
            case ast.Attribute() | ast.Subscript():
                yield from self._part(node)
            case ast.Call():
                yield node.lineno, f"a call inside another is not allowed; {_FORM}"
            case _:
                text = ast.unparse(node)
                yield node.lineno, f"`{text}` is neither a plain value nor an earlier result"

    def _values(self, nodes: Iterable[ast.expr]) -> Iterator[Finding]:
        for node in nodes:
            yield from self._value(node)

    def _part(self, node: ast.Attribute | ast.Subscript) -> Iterator[Finding]:
        """Check the access to a result, or to a part of one."""
        if not isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
            yield node.lineno, "only results have parts"
            return
        yield from self._value(node.value)
        if isinstance(node, ast.Subscript):
            yield from self._value(node.slice)
        elif node.attr.startswith("_"):
            yield node.lineno, f"{node.attr!r} is not a part of a result"
