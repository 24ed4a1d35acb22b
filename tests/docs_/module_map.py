"""The page docs/map.md: every module with the first line of its docstring and its classes.

``python tests/docs_/module_map.py > docs/map.md`` writes it anew.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "map.md"
_MOST_CLASSES = 5
_PACKAGE = ROOT / "taskweaver"
_INTRO = """\
# Map of the modules

Every folder of the package with its modules: the first line of their docstrings, and in brackets
the classes that others use. The page is generated (`python tests/docs_/module_map.py >
docs/map.md`), and a test compares it. [architecture.md](architecture.md) describes how the folders
stand on each other."""


@cache
def page() -> str:
    """Return the page."""
    return "\n\n".join([_INTRO, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    folders = sorted({file.parent for file in _PACKAGE.rglob("*.py")})
    for folder in folders:
        name = folder.relative_to(ROOT).as_posix()
        own = _summary(folder / "__init__.py")
        modules = sorted(file for file in folder.glob("*.py") if file.name != "__init__.py")
        lines = [_item(f"- `{file.stem}` — {_facts(file)}") for file in modules]
        yield "\n\n".join(filter(None, [f"## {name}/", own, "\n".join(lines)]))


def _item(text: str) -> str:
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, 100, subsequent_indent="  ", **options)


def _facts(file: Path) -> str:
    """Return what is said of a module: its purpose and its classes."""
    tree = ast.parse(file.read_text("utf-8"))
    return _purpose(tree) + _classes(tree)


def _summary(file: Path) -> str:
    """Return the purpose of a module; empty where there is no file."""
    return _purpose(ast.parse(file.read_text("utf-8"))) if file.exists() else ""


def _purpose(tree: ast.Module) -> str:
    """Return the first line of a module's docstring; empty for none."""
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def _classes(tree: ast.Module) -> str:
    """Return the public classes of a module, in brackets; of many the first ones."""
    names = [item.name for item in tree.body if isinstance(item, ast.ClassDef)]
    public = [f"`{name}`" for name in names if not name.startswith("_")]
    more = ["..."] if len(public) > _MOST_CLASSES else []
    return f" ({', '.join(public[:_MOST_CLASSES] + more)})" if public else ""


if __name__ == "__main__":
    print(page(), end="")
