"""The page's modules as one script: each a function, in the order in which they need each other."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping

_IMPORT = re.compile(r"^import (\{[^}]*\}|\* as \w+) from '(\.[^']+)';\n", re.MULTILINE)
_EXPORTED = re.compile(r"^export ((?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)
_LISTED = re.compile(r"export\{([^}]*)\};\s*$")


def bundle(sources: Mapping[str, str], entry: str) -> str:
    """Return a script that does what a module does, with all that it imports.

    Args:
        sources: Texts of the modules by path. They import from relative paths, and no two
            modules need each other.
        entry: Path of the module.

    Raises:
        KeyError: If a module imports one that is not there.
    """
    parts = [
        f"M[{json.dumps(path)}]=(()=>{{\n{_as_function(path, sources[path])}\n}})();"
        for path in needed(sources, entry)
    ]
    return "(()=>{'use strict';const M={};\n" + "\n".join(parts) + "\n})();"


def needed(sources: Mapping[str, str], entry: str) -> list[str]:
    """Return the paths of a module and of all that it imports, those that others need first.

    Modules that are fetched later (`import()`) are not among them.

    Raises:
        KeyError: If a module imports one that is not there.
    """
    order: list[str] = []
    _collect(sources, entry, order)
    return order


def _collect(sources: Mapping[str, str], path: str, order: list[str]) -> None:
    if path in order:
        return
    for match in _IMPORT.finditer(sources[path]):
        _collect(sources, _resolved(path, match[2]), order)
    order.append(path)


def _resolved(path: str, wanted: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), wanted))


def _as_function(path: str, source: str) -> str:
    def bound(match: re.Match[str]) -> str:
        names = match[1].removeprefix("* as ").replace(" as ", ": ")
        return f"const {names} = M[{json.dumps(_resolved(path, match[2]))}];\n"

    names = {name: name for _, name in _EXPORTED.findall(source)}
    if listed := _LISTED.search(source):
        pairs = (part.partition(" as ") for part in listed[1].split(","))
        names |= {(outer or inner).strip(): inner.strip() for inner, _, outer in pairs}
        source = source[: listed.start()]
    body = _EXPORTED.sub(r"\1", _IMPORT.sub(bound, source))
    returned = ",".join(f"{outer}:{inner}" for outer, inner in names.items())
    return f"{body}\nreturn {{{returned}}};"
