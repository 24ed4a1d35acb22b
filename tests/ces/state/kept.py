"""Saves and loads within the test's process, with chunks in a dictionary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.ces.inkernel.state.load import Problem, load_state
from taskweaver.ces.inkernel.state.save import Subject, save_state


class Kept:
    """Chunks in memory."""

    def __init__(self) -> None:
        self.chunks: dict[str, bytes] = {}
        self.written: list[str] = []
        self.progress: list[str] = []

    def missing(self, names: Sequence[str]) -> set[str]:
        return {name for name in names if name not in self.chunks}

    def write(self, name: str, data: memoryview) -> None:
        self.written.append(name)
        self.chunks[name] = bytes(data)

    def at(self, variable: str) -> None:
        self.progress.append(variable)

    def read(self, name: str, size: int, into: memoryview) -> None:
        if name not in self.chunks:
            raise FileNotFoundError(name)
        if len(self.chunks[name]) != size:
            raise ValueError(f"{len(self.chunks[name])} bytes instead of {size}")
        into[:] = self.chunks[name]

    def damaged(self, name: str) -> None:
        """Drop the report: nothing is stored again here."""


def namespace_of(cells: str, **values: Any) -> dict[str, Any]:
    """Return a namespace after running cells."""
    namespace: dict[str, Any] = {"__name__": "__main__", **values}
    exec(compile(cells, "cells", "exec", dont_inherit=True), namespace)
    return namespace


def save(
    namespace: dict[str, Any],
    sink: Kept,
    *,
    hidden: frozenset[str] = frozenset(),
    made_by: Mapping[str, str] | None = None,
    skip: Mapping[str, str] | None = None,
    max_variable_bytes: int = 0,
) -> dict[str, Any]:
    """Save a namespace; return the manifest as a host reads it."""
    subject = Subject(namespace, hidden, made_by or {}, skip or {}, max_variable_bytes)
    manifest: dict[str, Any] = json.loads(json.dumps(save_state(subject, sink)))
    return manifest


def load(manifest: Mapping[str, Any], source: Kept) -> tuple[dict[str, Any], list[Problem]]:
    """Load into an empty namespace."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    # The state of pytest's own process stays as it is.
    problems = load_state({**manifest, "process": {}}, namespace, source)
    return namespace, problems


def trip(namespace: dict[str, Any]) -> dict[str, Any]:
    """Save and load without problems."""
    kept = Kept()
    found, problems = load(save(namespace, kept), kept)
    assert problems == []
    return found
