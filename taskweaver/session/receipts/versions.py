"""Versions of the programs that computed an answer."""

from __future__ import annotations

import ast
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distribution,
    distributions,
    version,
)
from pathlib import Path

from taskweaver import __version__
from taskweaver.ces.inkernel.namespace import USUAL_NAMES
from taskweaver.utils.parsing import parse

_ALWAYS = ("pandas", "numpy")


def versions_for(codes: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, TaskWeaver and the libraries some cells import."""
    modules = set(_ALWAYS)
    for code in codes:
        modules |= _imported(code)
    found = {"python": platform.python_version(), "taskweaver": __version__}
    for module in sorted(modules - sys.stdlib_module_names - {""}):
        if name := _package(module):
            with suppress(PackageNotFoundError, FileNotFoundError):  # removed while this runs
                found[name] = version(name)
    return found


def _package(module: str) -> str | None:
    """Return the name of a module's package; most are called like it."""
    with suppress(PackageNotFoundError):
        package = distribution(module)
        if f"\n{module}/" in f"\n{package.read_text('RECORD')}" and (name := _name(package)):
            return name
    return _packages(_places()).get(module)


def _name(package: Distribution) -> str | None:
    """Return the name of a package; a folder that an installer left behind has none."""
    try:
        name: str | None = package.metadata["Name"]
    except FileNotFoundError:  # from importlib_metadata, which replaces the standard library's
        return None
    return name


def _places() -> tuple[tuple[str, int], ...]:
    """Return the folders of packages, each with the time when one came or went."""
    found = []
    for entry in sys.path:
        with suppress(OSError):  # not there, or closed to this user
            found.append((entry, Path(entry).stat().st_mtime_ns))
    return tuple(found)


# It reads the metadata of every package.
@lru_cache(maxsize=1)
def _packages(_places: tuple[tuple[str, int], ...]) -> Mapping[str, str]:
    """Return the package of each module; of several, which share a namespace, the first."""
    found: dict[str, str] = {}
    for package in distributions():
        if name := _name(package):
            for module in _modules(package):
                found.setdefault(module, name)
    return found


def _modules(package: Distribution) -> set[str]:
    """Return the top-level names of a package's files, its modules among them."""
    declared = package.read_text("top_level.txt")
    if declared:
        return set(declared.split())
    paths = [line.partition(",")[0] for line in (package.read_text("RECORD") or "").splitlines()]
    return {path.partition("/" if "/" in path else ".")[0] for path in paths}


def _imported(code: str) -> set[str]:
    """Return the top-level modules a cell imports, or uses by their usual short names."""
    usual = {
        module.partition(".")[0]
        for alias, module in USUAL_NAMES.items()
        if re.search(rf"\b{alias}\.", code)
    }
    try:
        nodes = list(ast.walk(parse(code)))
    except (SyntaxError, ValueError, RecursionError):  # a cell of the shell, or magics
        return usual
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return usual | {name.partition(".")[0] for name in names}


def changes(recorded: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return the programs that have another version now, a phrase each."""
    return [
        f"{name} {old} then, {now[name]} now"
        for name, old in recorded.items()
        if now.get(name, old) != old
    ]
