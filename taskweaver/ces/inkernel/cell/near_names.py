"""Names that a failed cell may have meant: those that exist and are spelt alike."""

from __future__ import annotations

import builtins
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import Any

_MOST_NAMES, _MOST_SHOWN = 5_000, 5
_NAME_CHARS = 60
_LIKENESS = 0.7
_PART_CHARS = 4


def near_names(error: BaseException, namespace: Mapping[str, Any], folder: Path) -> str:
    """Return a line with the names that an error may be about; empty for none.

    Args:
        error: The error of a cell.
        namespace: The variables.
        folder: The working directory.
    """
    wanted, candidates = _question(error, namespace, folder)
    if not wanted:
        return ""
    places: dict[str, str] = {}
    for name, place in islice(candidates, _MOST_NAMES):
        places.setdefault(name, place)
    found = [name for name in places if name.lower() == wanted.lower() and name != wanted]
    if len(wanted) >= _PART_CHARS:
        found += [name for name in places if wanted.lower() in name.lower()]
    found += get_close_matches(wanted, places, _MOST_SHOWN, _LIKENESS)
    shown = [f"{name!r}{places[name]}" for name in dict.fromkeys(found) if name != wanted]
    return f"names like it: {', '.join(shown[:_MOST_SHOWN])}" if shown else ""


def with_hint(trace: list[str], hint: str) -> list[str]:
    """Return the pieces of a traceback whose last line, that of the error, ends with a hint."""
    if not (hint and trace):
        return trace
    return [*trace[:-1], f"{trace[-1].rstrip()} ({hint})\n"]


def _question(
    error: BaseException, namespace: Mapping[str, Any], folder: Path
) -> tuple[str, Iterator[tuple[str, str]]]:
    """Return the name that was not found, and the names there are, each with its place."""
    if isinstance(error, ModuleNotFoundError):
        name = error.name or ""
        return name.rpartition(".")[2], _plain(_modules(name))
    if isinstance(error, FileNotFoundError):
        return Path(str(error.filename or "")).name, _plain(_files(folder))
    if isinstance(error, NameError):
        visible = [name for name in namespace if not name.startswith("_")]
        name = error.name or str(error).partition("'")[2].partition("'")[0]
        return name, chain(_plain([*visible, *dir(builtins)]), _keys(namespace))
    if isinstance(error, AttributeError) and error.name:
        columns = getattr(error.obj, "columns", ())
        return error.name, _plain([*map(str, columns), *dir(error.obj)])
    if isinstance(error, KeyError) and error.args:
        key = error.args[0]
        return (key if isinstance(key, str) else "")[:_NAME_CHARS], _keys(namespace)
    return "", iter(())


def _keys(namespace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the columns of tables and the keys of dictionaries among the variables."""
    for name, value in list(namespace.items()):
        if name.startswith("_"):
            continue
        columns = getattr(value, "columns", None) if "DataFrame" in type(value).__name__ else None
        keys = value if type(value) is dict else columns
        for key in islice(keys if keys is not None else (), _MOST_NAMES):
            if isinstance(key, str):
                yield key, f" in {name}"


def _modules(name: str) -> Iterable[str]:
    package, _, _ = name.rpartition(".")
    if not package:
        return [*sys.stdlib_module_names, *(found.name for found in pkgutil.iter_modules())]
    paths = getattr(sys.modules.get(package), "__path__", [])
    return [found.name for found in pkgutil.iter_modules(paths)]


def _files(folder: Path) -> Iterator[str]:
    return (path.name for path in islice(folder.iterdir(), _MOST_NAMES) if path.is_file())


def _plain(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((name, "") for name in names)
