"""Scopes of code interpreters: any Python, only plugins, or only the shell.

A `Scope` is the whole difference between the three roles: the plugins they see, the language and
prompt of their model, the checks of a cell, and the kinds of code that a person confirms.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from taskweaver.ces.inkernel.namespace import USUAL_NAMES
from taskweaver.code_interpreter.code_verification.policy_check import (
    Policy,
    kinds_of,
    nodes_of,
    policy_text,
    tree_of,
    unreadable,
    verify,
)
from taskweaver.plugin.spec import PluginEntry

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
    """Checks one cell, statement by statement. Assigned names are known to the next."""

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


_HERE = Path(__file__).parent
_MAGIC = re.compile(r"\A\s*%%(?:bash|sh)[^\n]*\n")
_BANG = re.compile(r"\A\s*!(?=\S)(?=[^\n]*\s*\Z)")
SCRIPT = "%%bash\n"


class Scope:
    """The code that a code interpreter may run. A subclass overrides the parts that differ.

    Attributes:
        language: Language of its model's cells.
        prompt_files: Prompt files whose texts go before those of the packaged one, the last before
            all.
        rules: Limits of code in the prompt of every task; empty for none.
        is_checked: True if code is read before it runs.
    """

    language: Literal["python", "bash"] = "python"
    prompt_files: Sequence[Path] = ()
    rules = ""
    is_checked = False

    def plugins(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        """Return the plugins that the code may call."""
        return list(entries)

    def cell(self, code: str) -> str:
        """Return the cell that runs code of the model."""
        return code

    def problems(self, code: str, plugins: Collection[str], earlier: Sequence[str]) -> list[str]:  # noqa: ARG002 - for subclasses
        """Return the violations in a cell, a sentence each."""
        return []

    def kinds(self, code: str, plugins: Collection[str]) -> frozenset[str]:
        """Return the kinds of a cell, for the person who confirms. See `ConfirmationRequest`.

        They are ``code``, ``shell`` with commands in it, and ``plugin NAME``.
        """
        return kinds_of(code, plugins)


class AnyCode(Scope):
    """Any Python that a policy allows, with any plugin."""

    def __init__(self, policy: Policy | None) -> None:
        self._policy = policy
        self.is_checked = policy is not None
        self.rules = policy_text(policy) if policy else ""

    def problems(self, code: str, plugins: Collection[str], earlier: Sequence[str]) -> list[str]:  # noqa: ARG002 - plugins are functions like others
        """Return the violations of the policy."""
        return verify(code, self._policy, earlier) if self._policy else []


class PromptedScope(Scope):
    """A scope with a packaged prompt file, whose texts go behind the user's own file."""

    packaged_prompt: str

    def __init__(self, prompt_file: Path | None) -> None:
        self.prompt_files = [*filter(None, (_HERE / self.packaged_prompt, prompt_file))]


class PluginCalls(PromptedScope):
    """Calls of plugins, with plain values or earlier results, and nothing else."""

    is_checked = True
    packaged_prompt = "plugin_only_prompt.yaml"

    def plugins(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        """Return the plugins marked ``plugin_only``, or all where no plugin has the mark."""
        return [entry for entry in entries if entry.plugin_only] or list(entries)

    def problems(self, code: str, plugins: Collection[str], earlier: Sequence[str]) -> list[str]:
        """Return the statements that are no calls of plugins."""
        return plugin_call_problems(code, plugins, earlier)

    def kinds(self, code: str, plugins: Collection[str]) -> frozenset[str]:
        """Return ``plugin NAME`` for each called plugin."""
        return kinds_of(code, plugins) - {"code"} or frozenset({"code"})


class ShellScripts(PromptedScope):
    """One shell command or script at a time, with no plugins and no check."""

    language = "bash"
    packaged_prompt = "cli_only_prompt.yaml"

    def plugins(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:  # noqa: ARG002 - a shell calls none
        """Return nothing."""
        return []

    def cell(self, code: str) -> str:
        """Return the script as a cell. A mark that the model wrote is replaced."""
        return SCRIPT + _BANG.sub("", _MAGIC.sub("", code))

    def kinds(self, code: str, plugins: Collection[str]) -> frozenset[str]:  # noqa: ARG002 - it is what it is
        """Return ``shell``."""
        return frozenset({"shell"})
