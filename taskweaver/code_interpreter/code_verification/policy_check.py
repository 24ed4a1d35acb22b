"""Check of a cell against a policy, before the run.

This is advice: it warns the model early and lets a person set a policy. It is no wall. Python
cannot be confined by reading it: plain library calls write files and open connections. Nothing
here may be relied on against code that means harm; docs/security.md names the real limits.

It reads the code as the kernel will run it: magics and shell lines as IPython rewrites them.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from taskweaver.ces.inkernel.namespace import USUAL_NAMES
from taskweaver.code_interpreter.code_verification.equivalents import ForbiddenDoors
from taskweaver.tables.names import KERNEL_FUNCTIONS
from taskweaver.utils.parsing import parse, parse_expression

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


class AllowedMagic(NamedTuple):
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
    """Return the code that a magic runs, or None if the magic is not allowed."""
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


# Ways from a value to the interpreter's insides. Ordinary code has no use for them.
_INSIDES = frozenset(
    "__globals__ __builtins__ __subclasses__ __bases__ __base__ __mro__ __code__ __closure__"
    " __getattribute__ __loader__ __spec__ __import__ __self__ __reduce__ __reduce_ex__"
    " f_globals f_locals f_builtins f_back f_code gi_frame gi_code cr_frame cr_code ag_frame"
    " tb_frame tb_next".split()
)
# Names with two underscores that ordinary code has a use for.
_ORDINARY_DUNDERS = frozenset("__name__ __qualname__ __doc__ __version__ __init__".split())
# Functions that reach any attribute or variable by a text; the original never lets them pass.
_BY_TEXT = ("getattr", "setattr", "delattr", "vars", "globals", "locals")
_WRITING_MODE = re.compile(r"(?=.*[wax+])[rwaxbt+]{1,4}")
# Modules that others import for themselves; reached through those they are no less themselves.
_SYSTEM_MODULES = frozenset(
    "os sys subprocess ctypes builtins importlib socket shutil posix pty runpy code marshal".split()
)
_FORMAT_INSIDES = re.compile(r"\{[^{}]*\.(?:__\w+__|modules\b|environ\b)[^{}]*\}")
_EVALUATORS = {"query", "eval"}
_MANGLED = re.compile(r"_[A-Za-z]\w*?__\w*[A-Za-z0-9]")
"""Names of attributes with two underscores, as a class stores them."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of code. Where a list of allowed names is given, nothing else is allowed.

    Attributes:
        allowed_modules: Modules that may be imported; None allows all but the blocked ones.
        blocked_modules: Modules that may not.
        allowed_functions: Functions that may be called; None allows all but the blocked ones.
        blocked_functions: Functions that may not be used: builtins by name (``eval``), others with
            their module (``os.system``), or as a method of anything (``.read_pickle``).
        allowed_variables: Variables that may be assigned; None allows all.
    """

    allowed_modules: Sequence[str] | None = None
    blocked_modules: Sequence[str] = ()
    allowed_functions: Sequence[str] | None = None
    blocked_functions: Sequence[str] = ()
    allowed_variables: Sequence[str] | None = None


def code_snippet_verification(  # noqa: PLR0913 - kept signature
    code_snippet: str,
    code_verification_on: bool = False,  # noqa: FBT001, FBT002 - kept signature
    *,
    allowed_modules: Sequence[str] | None = None,
    blocked_modules: Sequence[str] | None = None,
    allowed_functions: Sequence[str] | None = None,
    blocked_functions: Sequence[str] | None = None,
    allowed_variables: Sequence[str] | None = None,
) -> list[str] | None:
    """Check a cell against a policy. See `Policy` for the lists.

    ``getattr`` and its relatives (`_BY_TEXT`) are refused whatever the lists.

    Returns:
        The violations, a sentence each; empty without any. None when the check is off.
    """
    if not code_verification_on:
        return None
    policy = Policy(
        allowed_modules,
        blocked_modules or (),
        allowed_functions,
        (*(blocked_functions or ()), *_BY_TEXT),
        allowed_variables,
    )
    return verify(code_snippet, policy)


def verify(code: str, policy: Policy, earlier: Iterable[str] = ()) -> list[str]:
    """Return the violations of a policy in a cell, a sentence each, in the order of the lines.

    It never raises, whatever the text.

    The imports of the `earlier` cells, which ran before, still hold.
    """
    check = _Check(policy)
    for cell in earlier:
        check.note_imports(nodes_of(cell))
    try:
        found = set(check.findings(tree_of(code)))
    except Exception as error:  # noqa: BLE001 - a text that no parser takes is refused
        return [unreadable(error)]
    return [f"Line {line}: {problem}." for line, problem in sorted(found)]


def unreadable(error: Exception) -> str:
    """Say in a sentence why code could not be parsed."""
    if isinstance(error, SyntaxError):
        return f"Line {error.lineno}: this is not Python: {error.msg}."
    return f"The code cannot be read: {type(error).__name__}: {error}."


def tree_of(code: str) -> ast.Module:
    """Return the syntax tree of a cell, with magics and shell lines in IPython's form.

    Both parsers are foreign, and fail on odd texts with errors of any type: an ``IndexError``, for
    example. Callers take each error for a text that cannot be read.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    transformer: Any = TransformerManager
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of line ends that not all tools recognise
        return parse(str(transformer().transform_cell(code)))


def nodes_of(cell: str) -> Iterator[ast.AST]:
    """Return the nodes of a cell that ran before. A text that is no Python has no nodes."""
    try:
        return ast.walk(tree_of(cell))
    except Exception:  # noqa: BLE001 - it ran: a line such as `pip list`
        return iter(())


Finding = tuple[int, str]


class _Check:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._places = dict(USUAL_NAMES)  # dotted places that names were imported from
        self._doors = ForbiddenDoors(
            policy.blocked_functions,
            policy.blocked_modules,
            policy.allowed_modules,
            policy.allowed_functions,
        )

    def findings(self, tree: ast.AST) -> Iterator[Finding]:
        """Yield the violations with their lines."""
        nodes = list(ast.walk(tree))
        self.note_imports(nodes)
        magics = list(allowed_magics(nodes))
        passed = {node for magic in magics for node in (magic.name, *magic.texts)}
        for node in nodes:
            line = getattr(node, "lineno", 0)
            if node not in passed:
                for problem in chain(self._problems(node), self._annotation_problems(node)):
                    yield line, problem
        for magic in magics:
            line = getattr(magic.name, "lineno", 0)
            for _, problem in self.findings(tree_of(magic.code)):
                yield line, problem

    def note_imports(self, nodes: Iterable[ast.AST]) -> None:
        """Record the names of imports."""
        for node in nodes:
            if isinstance(node, ast.Import):
                for item in node.names:
                    place = item.name if item.asname else item.name.partition(".")[0]
                    self._places[item.asname or place] = place
            elif isinstance(node, ast.ImportFrom):
                for item in node.names:
                    self._places[item.asname or item.name] = f"{node.module}.{item.name}"

    def _problems(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Import(names):
                for item in names:
                    yield from self._module_problems(item.name)
            case ast.ImportFrom(module, names, level):
                yield from self._import_from_problems(module or "", names, level)
            case ast.Name("get_ipython"):
                yield (
                    "magics and shell commands are not allowed, except to install packages and to"
                    " measure time"
                )
            case ast.Name(name, ctx):
                yield from self._name_problems(name, ctx)
            case ast.Attribute(attr=attr):
                yield from self._attribute_problems(node, attr)
            case ast.MatchClass() | ast.Subscript() | ast.Constant():
                yield from _inside_problems(node)
            case ast.Call():
                yield from self._call_problems(node)

    def _annotation_problems(self, node: ast.AST) -> Iterator[str]:
        """Check an annotation that is a text, which libraries evaluate."""
        annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            yield from self._expression_problems(annotation.value)

    def _module_problems(self, name: str) -> Iterator[str]:
        top = name.partition(".")[0]
        allowed, blocked = self.policy.allowed_modules, self.policy.blocked_modules
        if allowed is not None and top not in allowed:
            yield f"importing {top!r} is not allowed; allowed are {', '.join(allowed) or 'none'}"
        elif top in blocked or name in blocked:
            yield f"importing {name!r} is not allowed"

    def _import_from_problems(
        self, module: str, names: Iterable[ast.alias], level: int
    ) -> Iterator[str]:
        if level:
            yield "relative imports are not allowed"
            return
        yield from self._module_problems(module)
        top = module.partition(".")[0]
        for item in names:
            if item.name in _SYSTEM_MODULES and top not in _SYSTEM_MODULES:
                yield f"importing {item.name!r} out of {module!r} is not allowed"
            elif item.name == "*" and any(
                name.startswith(f"{module}.") for name in self.policy.blocked_functions
            ):
                yield f"importing everything from {module!r} is not allowed"
            else:
                yield from self._import_problems(f"{module}.{item.name}")

    def _name_problems(self, name: str, ctx: ast.expr_context) -> Iterator[str]:
        variables = self.policy.allowed_variables
        if isinstance(ctx, ast.Store):
            if variables is not None and name not in variables:
                yield f"assigning {name!r} is not allowed"
        elif name in _INSIDES:
            yield _inside(name)
        elif name not in self._places:
            yield from self._function_problems(name)
            if name in KERNEL_FUNCTIONS:
                yield from self._doors.problems(name)

    def _attribute_problems(self, node: ast.Attribute, attr: str) -> Iterator[str]:
        if _is_inside(attr):
            yield _inside(attr)
            return
        root, parts = self._place(node)
        # However it is reached, `os.system` is itself.
        places = {".".join(parts[-2:])} if len(parts) > 1 else set()
        places |= {".".join([root, *parts])} if root else set()
        for place in places:
            yield from self._function_problems(place)
        if attr in _SYSTEM_MODULES and root is not None:
            yield f"reaching the module {attr!r} through another one is not allowed"
        if f".{attr}" in self.policy.blocked_functions:
            yield f"{attr!r} is not allowed"
        elif not any(place in self.policy.blocked_functions for place in places):
            yield from self._doors.problems(".".join([root, *parts] if root else parts))

    def _import_problems(self, place: str) -> Iterator[str]:
        if place in self.policy.blocked_functions:
            yield f"{place!r} is not allowed"
        else:
            yield from self._doors.problems(place)

    def _function_problems(self, place: str) -> Iterator[str]:
        name = place.removeprefix("builtins.")
        if name in self.policy.blocked_functions:
            yield f"{name!r} is not allowed"

    def _call_problems(self, node: ast.Call) -> Iterator[str]:
        allowed = self.policy.allowed_functions
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        if allowed is not None and name not in allowed:
            yield f"calling {name or 'this'!r} is not allowed; allowed are {', '.join(allowed)}"
        if isinstance(node.func, ast.Subscript):
            yield "calling what a subscript returns is not allowed"
        if name == "open" and "open" in self.policy.blocked_functions and _is_for_writing(node):
            yield "opening a file for writing is not allowed"
        for keyword in node.keywords:
            is_true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg == "allow_pickle" and is_true:
                yield "'allow_pickle=True' runs what a file says, and is not allowed"
        texts = [item.value for item in node.args[:1] if isinstance(item, ast.Constant)]
        keywords = [keyword.arg for keyword in node.keywords]
        yield from self._doors.call_problems(
            name, texts[0] if texts else None, keywords, has_args=bool(node.args)
        )
        if name in _EVALUATORS and texts and isinstance(texts[0], str):
            yield from self._expression_problems(texts[0])

    def _expression_problems(self, text: str) -> Iterator[str]:
        """Check the text of ``DataFrame.query`` and ``eval``, where ``@`` marks Python's names."""
        try:
            tree = parse_expression(text.replace("@", ""))
        except SyntaxError:
            return  # a form of pandas' own
        yield from (f"in the expression: {problem}" for _, problem in self.findings(tree))

    def _place(self, node: ast.Attribute) -> tuple[str | None, list[str]]:
        """Return the import behind the first name of ``a.b.c``, if any, and the parts."""
        parts = [node.attr]
        value: ast.expr = node.value
        while isinstance(value, ast.Attribute):
            parts.insert(0, value.attr)
            value = value.value
        if not isinstance(value, ast.Name):
            return None, parts
        root = self._places.get(value.id)
        return root, [*([] if root else [value.id]), *parts]


def _inside_problems(node: ast.AST) -> Iterator[str]:
    """Check the names that a pattern, a subscript or a text reaches for."""
    match node:
        case ast.MatchClass(kwd_attrs=attrs):
            yield from (_inside(attr) for attr in attrs if _is_inside(attr))
        case ast.Subscript(slice=ast.Constant(name)) if str(name).startswith("__"):
            yield _inside(str(name))
        case ast.Constant(str(text)) if text in _INSIDES:
            yield _inside(text)
        case ast.Constant(str(text)) if _FORMAT_INSIDES.search(text):
            yield "a format text that reaches into objects is not allowed"


def _is_inside(name: str) -> bool:
    is_dunder = name.startswith("__") and name.endswith("__")
    is_mangled = _MANGLED.fullmatch(name) is not None
    return name in _INSIDES or is_mangled or (is_dunder and name not in _ORDINARY_DUNDERS)


def _is_for_writing(call: ast.Call) -> bool:
    """Return whether the mode writes: the second argument, or the only one, or ``mode``."""
    given = [*call.args[:2][-1:], *(item.value for item in call.keywords if item.arg == "mode")]
    texts = [str(item.value) for item in given if isinstance(item, ast.Constant)]
    return any(_WRITING_MODE.fullmatch(text) for text in texts)


def _inside(name: str) -> str:
    return f"{name!r} reaches into the interpreter, and is not allowed"


def kinds_of(code: str, plugins: Iterable[str]) -> frozenset[str]:
    """Return the kinds of a cell, for the person who confirms."""
    kinds = {"code"}
    try:
        nodes = list(ast.walk(tree_of(code)))
    except Exception:  # noqa: BLE001
        return frozenset({"code", "shell"})  # unreadable code may be anything
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if "get_ipython" in names:
        kinds.add("shell")
    return frozenset(kinds | {f"plugin {name}" for name in plugins if name in names})


def policy_text(policy: Policy) -> str:
    """Return a policy in words, one rule a line."""
    rules: Mapping[str, Sequence[str] | None] = {
        "Import only": policy.allowed_modules,
        "Do not import": policy.blocked_modules,
        "Call only": policy.allowed_functions,
        "Do not use": policy.blocked_functions,
    }
    lines = [f"- {rule} {', '.join(names)}." for rule, names in rules.items() if names]
    shell = "- No magics and no shell commands, except `%pip install NAME`, `%time` and `%timeit`."
    return "\n".join([*lines, shell])
