"""Islands: variables that share objects, stored in one stream; and their manifest entries."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import re
import sys
import types
import uuid
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.ces.inkernel.state.chunks import chunk_name, spans
from taskweaver.ces.inkernel.state.pickling.pickler import Pickled
from taskweaver.ces.inkernel.state.pickling.scope import GlobalsToken

_ATOMS = frozenset(
    {
        *(str, bytes, int, float, complex, bool, range, type(None), type(...)),
        *(types.CodeType, re.Pattern, uuid.UUID, decimal.Decimal, fractions.Fraction),
        *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone),
        *(zoneinfo.ZoneInfo, pathlib.PosixPath, pathlib.PurePosixPath),
    }
)
_MAX_DEPTH = 20
_BY_NAME = (type, types.FunctionType, types.BuiltinFunctionType, functools._lru_cache_wrapper)  # noqa: SLF001
_VALUES = (("numpy", "dtype"), ("numpy", "generic"), ("pandas.api.extensions", "ExtensionDtype"))
Entry = dict[str, Any]


@dataclass(slots=True)
class Island:
    """Variables in one stream.

    Attributes:
        own: Each variable pickled alone, by name.
        joint: All pickled together; none if there is one, or if that fails.
    """

    own: dict[str, Pickled]
    joint: Pickled | None = None

    @property
    def names(self) -> list[str]:
        """Names of the variables."""
        return list(self.own)

    @property
    def pickled(self) -> Pickled | None:
        """The pickling of all variables."""
        return next(iter(self.own.values())) if len(self.own) == 1 else self.joint


def find_islands(pickled: Mapping[str, Pickled]) -> list[Island]:
    """Group variables that share an object whose identity matters, in their order."""
    names = list(pickled)
    leader = list(range(len(names)))
    holders: dict[int, int] = {}

    def lead(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    # The largest comes last, and need not be remembered.
    by_size = sorted(range(len(names)), key=lambda number: len(pickled[names[number]].memo))
    for number in by_size:
        found = pickled[names[number]]
        # Sets of ids are compared in C; only objects that are shared are looked at in Python.
        for id_ in found.memo.keys() & holders.keys():
            if lead(holders[id_]) != lead(number) and _joins(found, id_):
                first, second = sorted((lead(holders[id_]), lead(number)))
                leader[second] = first
        if number != by_size[-1]:
            holders.update(dict.fromkeys(found.memo, number))
    groups: dict[int, dict[str, Pickled]] = {}
    for number, name in enumerate(names):
        groups.setdefault(lead(number), {})[name] = pickled[name]
    return [Island(own) for own in groups.values()]


def _joins(pickled: Pickled, id_: int) -> bool:
    """Return whether two variables that share an object must be restored together."""
    if id_ in pickled.notes.by_value:
        return True
    neutral = id_ in pickled.notes.neutral or id_ in pickled.notes.scope.constants
    return not neutral and not _is_value(pickled.memo[id_][1])


def _is_value(obj: Any, depth: int = 0) -> bool:
    """Return whether an equal object can replace this one, or it is restored by its name."""
    kind = type(obj)
    if kind in _ATOMS:
        return True
    if kind in {tuple, frozenset}:
        return depth < _MAX_DEPTH and all(_is_value(item, depth + 1) for item in obj)
    # Not `isinstance`: a proxy says that it is of the class it stands for.
    if issubclass(kind, (*_BY_NAME, enum.Enum, GlobalsToken)):
        return True
    for module, name in _VALUES:
        base = getattr(sys.modules.get(module), name, None)
        if base is not None and issubclass(kind, base):
            return True
    return False


class ChunkTable:
    """Chunks of a save.

    Attributes:
        data: Memory that each chunk is written from, by name.
    """

    def __init__(self) -> None:
        self.data: dict[str, memoryview] = {}

    def pickled(self, pickled: Pickled | None) -> Entry:
        """Return the entry of a pickling, without a stream if there is none.

        A stream has its length and chunks. A buffer has its length, the offset of the cuts, chunks,
        and whether it is read only.
        """
        if pickled is None:
            return {"stream": None, "buffers": []}
        return {
            "stream": [len(pickled.stream), self._cut(memoryview(pickled.stream))],
            "buffers": [[one.nbytes, 0, self._cut(one), one.readonly] for one in pickled.buffers],
        }

    def island(self, island: Island) -> Entry:
        """Return the entry of an island."""
        entry = {"names": island.names, **self.pickled(island.pickled)}
        if len(island.own) > 1:
            entry["own"] = {name: self.pickled(own) for name, own in island.own.items()}
        return entry

    def _cut(self, data: memoryview) -> list[str]:
        names = []
        for begin, end in spans(data.nbytes):
            name = chunk_name(data[begin:end])
            self.data.setdefault(name, data[begin:end])
            names.append(name)
        return names


def chunks_of(entry: Entry) -> list[str]:
    """Return the names of all chunks of an entry, each once, in order."""
    found = dict[str, None]()
    for part in (entry, *entry.get("own", {}).values()):
        streams = [] if part["stream"] is None else [part["stream"][1]]
        for names in (*streams, *(buffer[2] for buffer in part["buffers"])):
            found |= dict.fromkeys(names)
    return list(found)
