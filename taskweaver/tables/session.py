"""Tables of a kernel: frames of the last profile, and the plans of a cell's reads."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taskweaver.tables.errors import TableError
from taskweaver.tables.plans.plan import MOST_READS, TableRead
from taskweaver.tables.reading import DOUBT, Stamp, Table, existing, load, parts_of, stamp

MOST_KEPT_BYTES = 512 << 20
"""Bytes of frames that a profile keeps for the read after it."""
_MOST_CELLS = 3
FilePath = str | os.PathLike[str]
_TableKey = tuple[str, str | int | None]
_Reported = dict[_TableKey, Stamp]


@dataclass(slots=True)
class Reads:
    """Reads of tables in a kernel.

    Attributes:
        done: Reads of the current cell, as plain data.
    """

    done: list[dict[str, Any]] = field(default_factory=list)
    _kept: OrderedDict[_TableKey, tuple[Stamp, Table]] = field(default_factory=OrderedDict)
    _age: int = 0
    _reported: _Reported = field(default_factory=dict)
    _profiled: dict[str, Stamp] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin a cell; tables that were kept three cells ago are forgotten."""
        self.done = []
        self._age += 1
        if self._age > _MOST_CELLS:
            self.forget()

    def take(self, path: FilePath, sheet: str | int | None) -> Table:
        """Return a table: the one that was just profiled, which is handed over, or a new one."""
        found = self._kept.pop(_key(path, sheet), None)
        if found is not None and found[0] == stamp(path):
            plan = replace(found[1].plan, path=os.fspath(path))
            return replace(found[1], plan=plan)
        return load(path, sheet)

    def keep(self, path: FilePath, sheet: str | int | None, table: Table) -> None:
        """Keep a table for the next read of it, while there is room."""
        frames = [*(known.frame for _, known in self._kept.values()), table.frame]
        sizes_bytes = [int(frame.memory_usage(deep=False).sum()) for frame in frames]
        if sum(sizes_bytes) <= MOST_KEPT_BYTES:
            self._kept[_key(path, sheet)] = (stamp(path), table)
            self._age = 0

    def forget(self) -> None:
        """Forget all kept tables."""
        self._kept.clear()

    def is_new(self, path: FilePath, sheet: str | int | None) -> bool:
        """Return, once for each state of a table's file, that its decisions are not printed yet."""
        key, now = (_place(path), sheet or None), stamp(path)
        is_new = self._reported.get(key) != now
        self._reported[key] = now
        return is_new

    def has_changed(self, path: FilePath) -> bool:
        """Return whether a file is another one than at its last profile in this kernel."""
        now = stamp(path)
        return self._profiled.setdefault(_place(path), now) != now

    def profiled(self, path: FilePath) -> None:
        """Note that a file is profiled as it is."""
        self._profiled[_place(path)] = stamp(path)

    def known(self) -> tuple[_Reported, dict[str, Stamp]] | None:
        """Return the files that were reported, for a later kernel; None for none."""
        return (self._reported, self._profiled) if self._reported or self._profiled else None

    def restore(self, known: tuple[_Reported, dict[str, Stamp]]) -> None:
        """Take over the files that an earlier kernel reported; see `known`."""
        self._reported, self._profiled = known

    def note(self, path: FilePath, sheet: str | int | None, table: Table) -> None:
        """Note a read of the current cell, unless it is there already."""
        read = TableRead(os.fspath(path), sheet, table.plan).to_dict()
        if len(self.done) < MOST_READS and read not in self.done:
            self.done.append(read)


READS = Reads()


def _key(path: FilePath, sheet: str | int | None) -> _TableKey:
    return str(Path(path).resolve()), sheet or None


def _place(path: FilePath) -> str:
    """Return a path from the working folder: a resumed or forked session may lie elsewhere."""
    return os.path.relpath(Path(path).resolve())


def read(path: FilePath, sheet: str | int | None) -> Any:
    """Return the frame of a table; print the decisions, once for each state of the file."""
    existing(path)
    table = READS.take(path, sheet)
    READS.note(path, sheet, table)
    if READS.is_new(path, sheet):
        print("\n".join(table.report))  # noqa: T201 - it runs in the kernel, for the reader of the cell
    return table.frame


def profiles(path: FilePath, find: str, *, matches_only: bool = False) -> Any:
    """Return the profiles of a file's tables; their frames are kept for the next read.

    A table that cannot be read, for example a view of a missing one, is left out, and the reason
    is printed.
    """
    from taskweaver.tables.profiles.profiling import FileProfile, profiled

    place = existing(path)
    matches_only = not READS.has_changed(place) and matches_only
    READS.profiled(place)
    tables: list[tuple[str, Table]] = []
    problems = []
    for part in parts_of(place):
        try:
            tables.append((part, READS.take(path, part)))
        except TableError as error:
            problems.append(error)
    if problems and not tables:
        raise problems[0]
    lines = [] if matches_only else [line for _, table in tables for line in table.report]
    for text in [*problems, *(line for line in lines if line.startswith(DOUBT))]:
        print(text)  # noqa: T201 - as the decisions
    READS.forget()
    found = tuple(profiled(table.frame, os.fspath(path), part, find) for part, table in tables)
    for part, table in tables:
        READS.keep(path, part, table)
    return FileProfile(found, find, matches_only)
