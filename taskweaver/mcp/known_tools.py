"""Tools as they were when they were first offered: one that changed since is asked about again.

A server may describe a tool as harmless until it is allowed, and otherwise afterwards. The file
holds a fingerprint for each tool; it outlives the program.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from taskweaver.mcp.tools import RawTool
from taskweaver.utils.files import PRIVATE, read_json, write_text

_MOST_BYTES = 4 << 20


class KnownTools:
    """Fingerprints of tools: those that were allowed, and those that are offered now."""

    def __init__(self, path: Path | None) -> None:
        """Read the file; without one the fingerprints are kept as long as this object."""
        self._path = path
        self._lock = threading.Lock()
        self._allowed = _read(path)
        self._offered: dict[str, tuple[str, str]] = {}

    def offer(self, server: str, tools: Iterable[RawTool]) -> None:
        """Take the list of a server; a tool that was never listed counts as allowed."""
        with self._lock:
            for tool in tools:
                key = _key(server, tool.name)
                self._offered[key] = (_fingerprint(tool), tool.description)
                self._allowed.setdefault(key, self._offered[key][0])
            self._save()

    def change(self, server: str, tool: str) -> str | None:
        """Return the new description of a tool that changed since it was allowed; else None."""
        key = _key(server, tool)
        with self._lock:
            found = self._offered.get(key)
            if found is None or self._allowed.get(key) == found[0]:
                return None
            return found[1]

    def allow(self, server: str, tool: str) -> None:
        """Take a tool as it is offered now for allowed."""
        key = _key(server, tool)
        with self._lock:
            self._allowed[key] = self._offered[key][0]
            self._save()

    def _save(self) -> None:
        if self._path is not None:
            text = json.dumps(self._allowed, indent=1, sort_keys=True)
            write_text(self._path, text + "\n", mode=PRIVATE)


def _key(server: str, tool: str) -> str:
    return f"{server}: {tool}"


def _read(path: Path | None) -> dict[str, str]:
    if path is None or not path.is_file():
        return {}
    try:
        data = read_json(path, _MOST_BYTES)
    except (OSError, ValueError):
        data = None
    if not isinstance(data, dict):
        return {}
    return {str(name): str(value) for name, value in data.items()}


def _fingerprint(tool: RawTool) -> str:
    values = [getattr(tool, field.name) for field in fields(tool)]
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
