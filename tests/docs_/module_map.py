"""The page docs/map.md: every module with the first line of its docstring and its classes.

``python tests/docs_/module_map.py > docs/map.md`` writes it anew.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "map.md"
PACKAGE = ROOT / "taskweaver"
_MOST_CLASSES = 5
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
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
    return "\n\n".join([_INTRO, *_sections(about)]) + "\n"


def _sections(about: About) -> Iterator[str]:
    folders = sorted({file.parent for file in PACKAGE.rglob("*.py")})
    for folder in folders:
        name = folder.relative_to(ROOT).as_posix()
        init = folder / "__init__.py"
        own = about(init).purpose if init.exists() else ""
        modules = sorted(file for file in folder.glob("*.py") if file.name != "__init__.py")
        lines = [_item(f"- `{file.stem}` — {_facts(about(file))}") for file in modules]
        yield "\n\n".join(filter(None, [f"## {name}/", own, "\n".join(lines)]))


def _item(text: str) -> str:
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, 100, subsequent_indent="  ", **options)


def _facts(found: Module) -> str:
    """Return what is said of a module: its purpose and its classes, of many the first ones."""
    public = [f"`{name}`" for name in found.classes]
    more = ["..."] if len(public) > _MOST_CLASSES else []
    classes = f" ({', '.join(public[:_MOST_CLASSES] + more)})" if public else ""
    return found.purpose + classes


if __name__ == "__main__":
    print(page(), end="")
