"""The manifest of a stored state, as far as the host reads it.

Code in the sandbox writes manifests, so each field is a claim: of the right type or refused,
bounded, and never used as a path. The kernel alone interprets the islands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from taskweaver.ces.claims import items, mapping, text
from taskweaver.ces.errors import KernelError
from taskweaver.ces.inkernel.wire import STATE_FORMAT

CHUNK_NAME = re.compile(r"[0-9a-f]{32}")
"""Name of a chunk: the XXH3-128 hash of its bytes."""
MOST_BYTES = 64 << 20
"""Longest manifest that is stored or read."""
_MOST_LOST = 1_000
_NAME_CHARS = 500


class StateDamaged(KernelError):
    """A stored state cannot be read."""


@dataclass(frozen=True, slots=True)
class LostVariable:
    """A variable, or a part of one, that a stored state does not hold.

    `cell` is the id of the post whose cell made it; empty when unknown.
    """

    name: str
    type: str
    reason: str
    cell: str


@dataclass(frozen=True, slots=True)
class StateManifest:
    """A stored state.

    Attributes:
        data: The manifest's JSON, for the kernel that restores it.
        types: Type of each variable, by name.
        lost: Variables that it does not hold.
        chunks: Names of the chunks it is made of.
        together: Variables of each island of several: they share objects.
        is_readable: Whether it has the format that this version reads.
        sizes: Size of each variable in bytes, as it is stored.
        contents: Names of the chunks of each variable: equal ones mean that it did not change.
    """

    data: bytes
    types: dict[str, str]
    lost: tuple[LostVariable, ...]
    chunks: frozenset[str]
    together: tuple[frozenset[str], ...]
    is_readable: bool
    sizes: dict[str, int] = field(default_factory=dict)
    contents: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_manifest(data: bytes) -> StateManifest:
    """Return the state that a manifest describes.

    Raises:
        StateDamaged: If it is no manifest.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StateDamaged("The stored variables cannot be read: no valid manifest.") from error
    if not isinstance(found, dict) or not isinstance(found.get("islands"), list):
        raise StateDamaged("The stored variables cannot be read: the manifest names no islands.")
    variables = {
        name: facts
        for name, facts in mapping(found.get("variables")).items()
        if isinstance(facts, dict) and len(name) <= _NAME_CHARS
    }
    sizes = {name: facts.get("bytes") for name, facts in variables.items()}
    return StateManifest(
        data,
        {name: text(facts.get("type"), _NAME_CHARS) for name, facts in variables.items()},
        _lost(found.get("lost")),
        frozenset(chunk_names([found["islands"], found.get("process")])),
        _together(found["islands"]),
        found.get("format") == STATE_FORMAT,
        {name: size for name, size in sizes.items() if type(size) is int and size >= 0},
        _contents(found["islands"]),
    )


def _contents(islands: list[Any]) -> dict[str, tuple[str, ...]]:
    found = {}
    for island in islands:
        names = island.get("names") if isinstance(island, dict) else None
        own = island.get("own") if isinstance(names, list) else None
        parts = own if isinstance(own, dict) else {}
        for name in _texts(names or []):
            found[name] = tuple(chunk_names([parts.get(name, island)]))
    return found


def _lost(rows: Any) -> tuple[LostVariable, ...]:
    fields = ("name", "type", "reason", "cell")
    return tuple(
        LostVariable(*(text(row.get(field), _NAME_CHARS) for field in fields))
        for row in items(rows)[:_MOST_LOST]
        if isinstance(row, dict)
    )


def _together(islands: list[Any]) -> tuple[frozenset[str], ...]:
    found = (island.get("names") for island in islands if isinstance(island, dict))
    groups = (frozenset(_texts(names)) for names in found if isinstance(names, list))
    return tuple(group for group in groups if len(group) > 1)


def chunk_names(data: Any) -> list[str]:
    """Return all names of chunks in plain data."""
    return [name for name in _texts(data) if CHUNK_NAME.fullmatch(name)]


def _texts(data: Any) -> Iterator[str]:
    """Yield all texts in plain data, however deep."""
    waiting = [data]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()
