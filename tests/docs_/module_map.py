"""The page docs/map.md: every folder with its purpose and its modules.

``python tests/docs_/module_map.py > docs/map.md`` writes it anew.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "map.md"
PACKAGE = ROOT / "taskweaver"
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
STATIC = PACKAGE / "page" / "static"
_INTRO = """\
# Map of the package

Every folder of the package with its purpose and its modules, and the folders of the page's scripts.
The page is generated (`python tests/docs_/module_map.py > docs/map.md`), and a test compares it.
[architecture.md](architecture.md) describes how the folders stand on each other."""
_SCRIPTS = {
    "": "the page: screens, commands, what a phone and a reader without rights see",
    "branches": "comparison of two branches, merge of memory, map of branches",
    "core": "elements, requests, the event stream, routes, preferences, announcements",
    "inspector": "panels of a branch: variables, files, figures, memory, moments",
    "models": "the model that answers: chip and dialog",
    "project": "settings and the checks of the doctor",
    "searches": "a search: start, tree, curve, attempts",
    "session": "a session: outline, conversation, cells, composer, forks, export",
    "sessions": "list of sessions, sign-in",
    "start": "first screen: questions, files, drop zone",
    "styles": "colours, light and dark, in tokens; layout; a file for each part",
    "text": "Markdown, code with colours, tables, differences of texts",
}
"""Purposes of the folders of scripts and styles, below `STATIC`."""
_NOT_OURS = {"vendor"}


@dataclass(frozen=True, slots=True)
class Module:
    """Facts about a module.

    Attributes:
        classes: Names of its public classes.
        docstrings: Lines of what has a docstring, with the docstring; the module's own is at 0.
    """

    classes: tuple[str, ...]
    docstrings: tuple[tuple[int, str], ...]

    @property
    def purpose(self) -> str:
        """The first line of its docstring; empty for none."""
        return dict(self.docstrings).get(0, "").partition("\n")[0]


About = Callable[[Path], Module]


@cache
def module(file: Path) -> Module:
    """Return the facts about a module, read once; trees that are kept cost more than reading."""
    return facts_of(ast.parse(file.read_text("utf-8")))


def facts_of(tree: ast.Module) -> Module:
    """Return the facts about a module, given its tree."""
    names = [item.name for item in tree.body if isinstance(item, ast.ClassDef)]
    documented = [(0, tree), *((node.lineno, node) for node in definitions(tree.body))]
    docstrings = ((line, ast.get_docstring(node)) for line, node in documented)
    return Module(
        tuple(name for name in names if not name.startswith("_")),
        tuple((line, text) for line, text in docstrings if text),
    )


def definitions(statements: Iterable[ast.stmt]) -> Iterator[Definition]:
    """Yield the classes and functions among statements, and inside these."""
    for statement in statements:
        if isinstance(statement, Definition):
            yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from definitions(getattr(statement, name, ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from definitions(part.body)


def page(about: About = module) -> str:
    """Return the page, given a function that has the facts about a module."""
    return "\n".join([_INTRO, "", *_lines(about)]) + "\n"


def _lines(about: About) -> Iterator[str]:
    for folder in sorted({file.parent for file in PACKAGE.rglob("*.py")}):
        modules = sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")
        yield _item(folder, about(folder / "__init__.py").purpose, modules)
    known = {path.name for path in STATIC.iterdir() if path.is_dir()} - _NOT_OURS
    for name in sorted({"", *known, *_SCRIPTS}):  # a folder without a purpose is a KeyError
        own = (file.name for file in (STATIC / name).iterdir() if file.suffix in {".js", ".css"})
        yield _item(STATIC / name, _SCRIPTS[name], sorted(own))


def _item(folder: Path, purpose: str, modules: Sequence[str]) -> str:
    """Return the entry of a folder: its purpose and its modules."""
    text = f"- `{folder.relative_to(ROOT).as_posix()}/` — {purpose.rstrip('.')}"
    names = ", ".join(modules)
    options = {"break_long_words": False, "break_on_hyphens": False}
    whole = f"{text}: {names}." if names else f"{text}."
    return textwrap.fill(whole, 100, subsequent_indent="  ", **options)


if __name__ == "__main__":
    print(page(), end="")
