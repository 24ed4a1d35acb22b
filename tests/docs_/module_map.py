"""The page docs/map.md: every module with the first line of its docstring and its classes.

``python tests/docs_/module_map.py > docs/map.md`` writes it anew.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "map.md"
PACKAGE = ROOT / "taskweaver"
_MOST_CLASSES = 5
_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_INTRO = """\
# Map of the modules

Every folder of the package with its modules: the first line of their docstrings, and in brackets
the classes that others use. The page is generated (`python tests/docs_/module_map.py >
docs/map.md`), and a test compares it. [architecture.md](architecture.md) describes how the folders
stand on each other."""


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


@cache
def module(file: Path) -> Module:
    """Return the facts about a module, read once; trees that are kept cost more than reading."""
    tree = ast.parse(file.read_text("utf-8"))
    names = [item.name for item in tree.body if isinstance(item, ast.ClassDef)]
    documented = [(0, tree), *((node.lineno, node) for node in _definitions(tree.body))]
    docstrings = ((line, ast.get_docstring(node)) for line, node in documented)
    return Module(
        tuple(name for name in names if not name.startswith("_")),
        tuple((line, text) for line, text in docstrings if text),
    )


def _definitions(statements: Iterable[ast.stmt]) -> Iterator[_Definition]:
    """Yield the classes and functions among statements, and inside these."""
    for statement in statements:
        if isinstance(statement, _Definition):
            yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _definitions(getattr(statement, name, ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _definitions(part.body)


@cache
def page() -> str:
    """Return the page."""
    return "\n\n".join([_INTRO, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    folders = sorted({file.parent for file in PACKAGE.rglob("*.py")})
    for folder in folders:
        name = folder.relative_to(ROOT).as_posix()
        own = _purpose(folder / "__init__.py")
        modules = sorted(file for file in folder.glob("*.py") if file.name != "__init__.py")
        lines = [_item(f"- `{file.stem}` — {_facts(file)}") for file in modules]
        yield "\n\n".join(filter(None, [f"## {name}/", own, "\n".join(lines)]))


def _item(text: str) -> str:
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, 100, subsequent_indent="  ", **options)


def _facts(file: Path) -> str:
    """Return what is said of a module: its purpose and its classes, of many the first ones."""
    public = [f"`{name}`" for name in module(file).classes]
    more = ["..."] if len(public) > _MOST_CLASSES else []
    classes = f" ({', '.join(public[:_MOST_CLASSES] + more)})" if public else ""
    return module(file).purpose + classes


def _purpose(file: Path) -> str:
    """Return the purpose of a module; empty where there is no file."""
    return module(file).purpose if file.exists() else ""


if __name__ == "__main__":
    print(page(), end="")
