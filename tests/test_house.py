"""Rules of the house that no linter checks, such as the form of docstrings.

A file of the package is parsed once for all of them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docs_.module_map import PAGE, Definition, Module, definitions, facts_of, page

PACKAGE = Path(__file__).parents[1] / "taskweaver"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE, MAX_FUNCTION = 500, 60


@dataclass(frozen=True)
class Facts:
    """What is asked about a file.

    Attributes:
        lines: How many it has.
        defines: Functions and classes at its top.
        long: Functions that are too long, with their lines.
        odd_calls: Those that take a text for a template, or let a file build any object.
        module: Definitions and docstrings, for the map and the rules of docstrings.
    """

    lines: int
    defines: list[str]
    long: list[str]
    odd_calls: list[str]
    module: Module


@cache
def facts(file: Path) -> Facts:
    """Read a file once for all tests; its tree is not kept, for it is large."""
    source = file.read_text(encoding="utf8")
    tree = ast.parse(source)
    long = [
        f"{node.name} ({node.end_lineno - node.lineno + 1})"
        for node in definitions(tree.body)
        if not isinstance(node, ast.ClassDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION
    ]
    defines = [node.name for node in tree.body if isinstance(node, Definition)]
    return Facts(source.count("\n"), defines, long, _odd_calls(tree), facts_of(tree))


def by_file(found: Callable[[Facts], list[str]], files: list[Path] = FILES) -> dict[str, list[str]]:
    """Return what was found in each file where there was something."""
    places = {file.relative_to(PACKAGE).as_posix(): found(facts(file)) for file in files}
    return {place: items for place, items in places.items() if items}


def test_files_and_their_functions_are_short() -> None:
    long_files = by_file(lambda found: [f"{found.lines} lines"] if found.lines > MAX_FILE else [])
    assert long_files == {}, f"over {MAX_FILE} lines: split by purpose"
    assert by_file(lambda found: found.long) == {}, f"functions over {MAX_FUNCTION} lines"


def test_an_init_defines_nothing() -> None:
    inits = [file for file in FILES if file.name == "__init__.py"]
    assert by_file(lambda found: found.defines, inits) == {}


def _odd_calls(tree: ast.AST) -> list[str]:
    """Return calls that take a text for a template, or let a file build any object."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            is_text = isinstance(node.func.value, ast.Constant) or owner in {"formatter", "super()"}
            is_template = node.func.attr in {"format", "format_map", "vformat"} and not is_text
            if is_template or any(word.arg == "allow_pickle" for word in node.keywords):
                found.append(f"{ast.unparse(node.func)} (line {node.lineno})")
    return found


def test_data_is_never_a_template_nor_any_object() -> None:
    elsewhere = [file for file in FILES if not file.is_relative_to(PACKAGE / "ces" / "inkernel")]
    assert by_file(lambda found: found.odd_calls, elsewhere) == {}


_BY_PATH = {
    "chmod", "hardlink_to", "mkdir", "open", "rename", "rmdir", "symlink_to", "touch", "unlink",
    "write_bytes", "write_text",
}  # fmt: skip


def _hostile_modules() -> list[str]:
    with (PACKAGE.parent / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    found = next(rule for rule in contracts if "file_system.safe_fs" in rule["name"])
    return list(found["source_modules"])


def test_no_file_is_written_by_path_where_sandboxed_code_writes() -> None:
    written = {}
    for module in _hostile_modules():
        file = PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
        tree = ast.walk(ast.parse(file.read_text()))
        called = [node.func for node in tree if isinstance(node, ast.Call)]
        names = {func.attr for func in called if isinstance(func, ast.Attribute)}
        names |= {func.id for func in called if isinstance(func, ast.Name)}
        written[module] = names & _BY_PATH
    assert {module: names for module, names in written.items() if names} == {}


OPENINGS = re.compile(r"(What|Who|Where|How|Why)\b")


def modules() -> Iterator[tuple[str, Module]]:
    """Yield the path and the facts of each module of the package."""
    for path in FILES:
        yield path.relative_to(PACKAGE).as_posix(), facts(path).module


def docstrings() -> list[tuple[str, str]]:
    """Return the place and the text of each docstring of the package."""
    return [
        (f"{path}:{line}", text) for path, found in modules() for line, text in found.docstrings
    ]


def test_a_docstring_begins_with_a_noun_phrase_or_an_imperative() -> None:
    assert not [place for place, text in docstrings() if OPENINGS.match(text)]


def test_names_of_public_classes_are_unique() -> None:
    places = defaultdict[str, set[str]](set)
    for path, found in modules():
        for name in found.classes:
            places[name].add(path)
    assert {name: sorted(in_) for name, in_ in places.items() if len(in_) > 1} == {}


def test_the_map_is_that_of_the_package() -> None:
    written = page(lambda path: facts(path).module)
    assert PAGE.read_text("utf-8") == written, "write it anew: see docs/map.md"


def test_each_module_states_its_purpose() -> None:
    missing = re.findall(r"^- `(\w+)` — $", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [name for name in missing if name != "__main__"] == []
