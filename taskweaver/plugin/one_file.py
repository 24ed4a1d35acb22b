"""A plugin of one file, whose description is read from the code, which is not run.

The function's signature and docstring hold the description that other plugins have in a YAML
file. A class derived from `Plugin` is called like its file, and its ``__call__`` has the signature.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docstring_parser import Docstring, ParseError, parse

from taskweaver.plugin.errors import PluginError
from taskweaver.plugin.spec import ParameterKind, PluginEntry, PluginParameter, PluginSpec
from taskweaver.utils import parsing

_MARK = "register_plugin"
_KEYWORDS = {"configurations": dict, "examples": str, "enabled": bool}
_MOST_DEFAULT_CHARS = 60

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef


def read_one_file(path: Path, source: str) -> PluginEntry | None:
    """Read a plugin from a Python file that needs no YAML file.

    Returns:
        The plugin; None if nothing in the file is decorated with ``@register_plugin``.

    Raises:
        PluginError: If it is not Python, or the registered object cannot be a plugin; names the
            file and the line.
    """
    if _MARK not in source:
        return None
    tree = parsed(path, source)
    found = [node for node in ast.walk(tree) if isinstance(node, _Definition) and _marks(node)]
    return _Reader(path).entry(tree, found)


def parsed(path: Path, source: str) -> ast.Module:
    """Parse the code of a plugin, which is not run.

    Raises:
        PluginError: If it is not Python; names the file and the line.
    """
    try:
        return parsing.parse(source, str(path))
    except SyntaxError as error:
        where = f"{path}:{error.lineno}"
        raise PluginError(where, f"{path.name} is not Python: {error.msg}.") from error
    except (ValueError, RecursionError) as error:
        raise PluginError(str(path), f"{path.name} is not Python: {error}.") from error


def _marks(node: _Definition) -> list[ast.expr]:
    return [decorator for decorator in node.decorator_list if _is_mark(decorator)]


def _is_mark(decorator: ast.expr) -> bool:
    match decorator:
        case ast.Call(func=inner):
            return _is_mark(inner)
        case ast.Name(name) | ast.Attribute(attr=name):
            return name == _MARK
        case _:
            return False


class _Reader:
    """Reader of the definition that a file registers. Every error names the line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _fail(self, node: ast.AST, problem: str) -> PluginError:
        return PluginError(f"{self._path}:{getattr(node, 'lineno', 1)}", problem)

    def entry(self, tree: ast.Module, found: list[_Definition]) -> PluginEntry | None:
        if not found:
            self._check_import(tree)
            return None
        first, *more = found
        if more:
            problem = f"registers a second plugin after line {first.lineno}; a file has one."
            raise self._fail(more[0], problem)
        if first not in tree.body:
            raise self._fail(first, f"{first.name} must stand at the outermost level of the file.")
        if isinstance(first, ast.AsyncFunctionDef):
            raise self._fail(first, f"{first.name} must be a plain function, not an async one.")
        is_class = isinstance(first, ast.ClassDef)
        call, skipped = self._call(first)
        name = self._path.stem if is_class else first.name
        keywords = self._keywords(first)
        if keywords.get("configurations") and not is_class:
            problem = "has configurations, which only a class derived from Plugin can read."
            raise self._fail(first, f"{name} {problem}")
        return PluginEntry(
            name=name,
            impl=self._path.stem,
            spec=self._spec(name, first, call, skipped, keywords.get("examples", "")),
            config=keywords.get("configurations", {}),
            enabled=keywords.get("enabled", True),
            folder=self._path.parent,
            described_in=str(self._path),
        )

    def _check_import(self, tree: ast.Module) -> None:
        """Raise if the file imports ``register_plugin`` without a use."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and _MARK in {name.name for name in node.names}:
                raise self._fail(node, f"imports {_MARK}, and nothing has the line @{_MARK}.")

    def _call(self, node: _Definition) -> tuple[_Function, int]:
        """Return the called function, and the number of leading parameters a caller omits."""
        if not isinstance(node, ast.ClassDef):
            return node, 0
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == "__call__":
                return item, 1
        raise self._fail(node, f"{node.name} must define __call__.")

    def _keywords(self, node: _Definition) -> dict[str, Any]:
        found = {}
        for decorator in _marks(node):
            if not isinstance(decorator, ast.Call):
                continue
            for keyword in decorator.keywords:
                kind = _KEYWORDS.get(keyword.arg or "")
                if kind is None:
                    raise self._fail(keyword, f"register_plugin has no {keyword.arg!r}.")
                try:
                    value = parsing.literal_value(keyword.value)
                    json.dumps(value)  # the form it reaches the kernel in
                except (ValueError, TypeError, SyntaxError):
                    value = None
                if not isinstance(value, kind):
                    problem = f"{keyword.arg} must be plain data, written out as a {kind.__name__}."
                    raise self._fail(keyword, problem)
                found[str(keyword.arg)] = value
        return found

    def _spec(
        self, name: str, node: _Definition, call: _Function, skipped: int, examples: str
    ) -> PluginSpec:
        doc = self._docstring(name, node)
        own = doc if call is node else self._parsed(call, ast.get_docstring(call) or "")
        described = {
            param.arg_name.lstrip("*"): (param.type_name or "", param.description or "")
            for param in (*doc.params, *own.params)
        }
        args = tuple(
            _parameter(arg, kind, default, described)
            for arg, kind, default in [*_arguments(call.args)][skipped:]
        )
        shown = examples or "\n".join(
            "\n".join(filter(None, [item.snippet, item.description])) for item in doc.examples
        )
        returns = _returns(call.returns, own if own.many_returns else doc)
        return PluginSpec(name, (doc.description or "").strip(), args, returns, shown.strip())

    def _docstring(self, name: str, node: _Definition) -> Docstring:
        text = ast.get_docstring(node)
        if text is None and isinstance(node, ast.ClassDef):
            text = ast.get_docstring(self._call(node)[0])
        doc = self._parsed(node, text or "")
        if not (doc.description or "").strip():
            problem = (
                f"{name} has no docstring. Its first line tells the model what the plugin does; "
                "`Args:` and `Returns:` may follow."
            )
            raise self._fail(node, problem)
        return doc

    def _parsed(self, node: ast.AST, text: str) -> Docstring:
        try:
            return parse(text)
        except ParseError as error:
            raise self._fail(node, f"its docstring cannot be read: {error}.") from error


def _arguments(
    arguments: ast.arguments,
) -> Iterator[tuple[ast.arg, ParameterKind, ast.expr | None]]:
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    for number, (arg, default) in enumerate(zip(plain, defaults, strict=True)):
        yield arg, "position" if number < len(arguments.posonlyargs) else "", default
    if arguments.vararg is not None:
        yield arguments.vararg, "*", None
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield arg, "keyword", default
    if arguments.kwarg is not None:
        yield arguments.kwarg, "**", None


def _parameter(
    arg: ast.arg,
    kind: ParameterKind,
    default: ast.expr | None,
    described: dict[str, tuple[str, str]],
) -> PluginParameter:
    type_name, description = described.get(arg.arg, ("", ""))
    return PluginParameter(
        arg.arg,
        _hint(arg.annotation) or type_name or "Any",
        description,
        required=default is None and kind not in {"*", "**"},
        kind=kind,
        default=None if default is None else _shown_default(default),
    )


def _returns(annotation: ast.expr | None, doc: Docstring) -> tuple[PluginParameter, ...]:
    """Return the returned values: the parts of a tuple when the docstring names the parts."""
    hint = _hint(annotation)
    if hint == "None":
        return ()
    parts = doc.many_returns
    if len(parts) > 1 and all((part.return_name or "").isidentifier() for part in parts):
        types = _tuple_types(annotation) or [part.type_name or "Any" for part in parts]
        if len(types) == len(parts):
            return tuple(
                PluginParameter(part.return_name or "", type_, part.description or "")
                for part, type_ in zip(parts, types, strict=True)
            )
    first = parts[0] if parts else None
    name = (first.return_name if first else None) or "result"
    type_name = hint or (first.type_name if first else None) or "Any"
    text = (first.description if first else None) or ""
    return (PluginParameter(name, type_name, text),)


def _tuple_types(annotation: ast.expr | None) -> list[str]:
    match annotation:
        case ast.Subscript(value=ast.Name("tuple" | "Tuple"), slice=ast.Tuple(parts)):
            return [_hint(part) for part in parts]
        case _:
            return []


def _hint(annotation: ast.expr | None) -> str:
    match annotation:
        case None:
            return ""
        case ast.Constant(str() as text):
            return text
        case _:
            return ast.unparse(annotation)


def _shown_default(default: ast.expr) -> str:
    """Return a default for the stub, where an ellipsis stands for a computed or long default."""
    text = ast.unparse(default)
    try:
        parsing.literal_value(default)
    except (ValueError, TypeError, SyntaxError):
        return "..."
    return text if len(text) <= _MOST_DEFAULT_CHARS else "..."
