"""Saving: from a namespace to islands, chunks and a manifest.

An island is the variables that share objects, and are therefore stored in one stream.
"""

from __future__ import annotations

import builtins
import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import platform
import re
import sys
import types
import uuid
import warnings
import zoneinfo
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from taskweaver.ces.inkernel.namespace import USUAL_NAMES, LazyModule
from taskweaver.ces.inkernel.state.chunks import (
    HostChunks,
    chunk_name,
    no_collection,
    spans,
    unpickle,
)
from taskweaver.ces.inkernel.state.pickling import frames
from taskweaver.ces.inkernel.state.pickling.pickler import Pickled, pickle_variables
from taskweaver.ces.inkernel.state.pickling.scope import (
    MAX_TEXT,
    CannotStore,
    GlobalsToken,
    Loss,
    SaveScope,
    clip,
    library_version,
    reason_of,
    standard_tokens,
    type_name,
)
from taskweaver.ces.inkernel.state.process_state import process_state, withheld_variables
from taskweaver.ces.inkernel.wire import STATE_FORMAT

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
MAX_VARIABLES = 10_000
MAX_LOSSES = 20
"""Losses listed for one variable; a list of a thousand connections is one sentence."""
_KERNEL_NAMES = frozenset(
    (
        "In Out get_ipython _ __ ___ _i _ii _iii _ih _oh _dh _sh __name__ __doc__"
        " __package__ __loader__ __spec__ __builtin__ __builtins__"
    ).split()
)
_proven: list[Any] = []
"""Objects read back: their finalizers may remove files, and must not run in this process."""


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
    """Return whether an equal object can replace an object, or a name restores the object."""
    kind = type(obj)
    if kind in _ATOMS:
        return True
    if kind in {tuple, frozenset}:
        return depth < _MAX_DEPTH and all(_is_value(item, depth + 1) for item in obj)
    # Not `isinstance`: a proxy says that it is of the class it stands for.
    if issubclass(kind, (*_BY_NAME, enum.Enum, GlobalsToken)):
        return True
    bases = (getattr(sys.modules.get(module), name, None) for module, name in _VALUES)
    return any(base is not None and issubclass(kind, base) for base in bases)


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


@dataclass(frozen=True, slots=True)
class Subject:
    """A namespace to save.

    Attributes:
        namespace: The kernel's namespace.
        hidden: Names of the kernel and of plugins: never stored.
        made_by: Id of the cell that last bound a name.
        skip: Names not to pickle, each with the reason to list.
        max_variable_bytes: A variable of more bytes than this is listed as lost; 0 for no limit.
    """

    namespace: dict[str, Any]
    hidden: frozenset[str]
    made_by: Mapping[str, str]
    skip: Mapping[str, str]
    max_variable_bytes: int


def save_state(subject: Subject, sink: HostChunks) -> Entry:
    """Write the chunks of a namespace, and return the manifest, which is plain JSON.

    Call it in a forked child that ends without clean-up: stored objects are read back to prove
    that they can be, which may reset attributes of classes and leaves copies behind.
    """
    parts = process_state()
    with warnings.catch_warnings(), no_collection():
        warnings.simplefilter("ignore")
        return _Save(subject, sink).run(parts)


class _Save:
    def __init__(self, subject: Subject, sink: HostChunks) -> None:
        self._subject = subject
        self._sink = sink
        self._scope = SaveScope(subject.namespace, subject.made_by, standard_tokens())
        self._scope.constants = frames.constants() | {id(vars(builtins))}
        self._table = ChunkTable()
        self._lost: dict[str, list[Loss]] = {}

    def run(self, parts: Entry) -> Entry:
        """Pickle, prove and write everything."""
        found = list(self._variables())
        variables = dict(found[-MAX_VARIABLES:])
        if len(variables) < len(found):
            reason = f"{len(found) - len(variables)} older variables are not stored"
            self._lost["..."] = [Loss("...", reason, "")]
        each = {name: self._pickle_one(name, value) for name, value in variables.items()}
        islands = find_islands({name: one for name, one in each.items() if one is not None})
        for island in islands:
            self._join(island, variables)
        islands, entries = self._store(islands, variables)
        kept = {name: own for island in islands for name, own in island.own.items()}
        process = self._process(parts)
        return {
            "format": STATE_FORMAT,
            "python": platform.python_version(),
            "versions": _library_versions(self._scope.handlers),
            "order": [name for name in variables if len(name) <= MAX_TEXT],
            "islands": entries,
            "variables": {
                name: {"type": type_name(type(variables[name])), "bytes": kept[name].size}
                for name in variables
                if name in kept
            },
            "lost": self._losses(variables),
            "process": process,
        }

    def _store(
        self, islands: list[Island], variables: Mapping[str, Any]
    ) -> tuple[list[Island], list[Entry]]:
        """Prove the islands that are new or changed, and write their chunks.

        Returns:
            The islands that can be read, and their entries in the manifest.
        """
        entries = [self._table.island(island) for island in islands]
        absent = self._sink.missing(list({name for e in entries for name in chunks_of(e)}))
        kept, stored = [], []
        for island, entry in zip(islands, entries, strict=True):
            is_new = not absent.isdisjoint(chunks_of(entry))
            proven = self._prove(island, entry, variables) if is_new else entry
            if proven is not None:
                if is_new:
                    self._write(proven)
                kept.append(island)
                stored.append(proven)
        return kept, stored

    def _variables(self) -> Iterable[tuple[str, Any]]:
        for name, value in list(self._subject.namespace.items()):
            is_own = name in _KERNEL_NAMES or name in self._subject.hidden
            is_unused = issubclass(type(value), LazyModule) and name in USUAL_NAMES
            if not is_own and not is_unused:
                yield str(name), value

    def _pickle_one(self, name: str, value: Any) -> Pickled | None:
        """Pickle one variable. On failure list the variable, and return None."""
        try:
            pickled = self._pickled(name, value)
        except RecursionError:
            self._lose(name, value, "it is nested too deeply")
            return None
        except BaseException as error:  # noqa: BLE001 - iterators of reductions are the user's code
            self._lose(name, value, reason_of(error))
            return None
        if id(value) in pickled.notes.lost:
            self._lost[name] = [pickled.notes.lost[id(value)]]
            return None
        if pickled.notes.lost:
            self._lost[name] = list(pickled.notes.lost.values())
        return pickled

    def _pickled(self, name: str, value: Any) -> Pickled:
        """Pickle one variable, within the limits.

        Raises:
            CannotStore: If it must not be stored.
        """
        subject = self._subject
        if name in subject.skip:
            raise CannotStore(subject.skip[name])
        if len(name) > MAX_TEXT:
            raise CannotStore("its name is too long")
        if value is subject.namespace:
            raise CannotStore("it is the kernel's namespace; globals() gives it")
        self._sink.at(name)
        cell = subject.made_by.get(name, "")
        pickled = pickle_variables(self._scope, {name: value}, cell, needs_memo=True)
        if id(subject.namespace) in pickled.memo:
            raise CannotStore("it holds the kernel's namespace")
        if 0 < subject.max_variable_bytes < pickled.size:
            raise CannotStore(f"too large ({pickled.size / 1e6:.1f} MB)")
        return pickled

    def _lose(self, name: str, value: Any, reason: str) -> None:
        cell = self._subject.made_by.get(name, "")
        self._lost[name] = [Loss(type_name(type(value)), clip(reason), cell)]

    def _join(self, island: Island, variables: Mapping[str, Any]) -> None:
        """Pickle the variables of an island together. On failure the island has no stream."""
        island.joint = None
        if len(island.own) < 2:
            return
        self._sink.at(island.names[0])
        values = {name: variables[name] for name in island.names}
        try:
            joint = pickle_variables(self._scope, values)
        except BaseException:  # noqa: BLE001 - each variable has its own stream, and the load says so
            return
        if _loses_no_more(joint, list(island.own.values())):
            island.joint = joint

    def _prove(self, island: Island, entry: Entry, variables: Mapping[str, Any]) -> Entry | None:
        """Read an island back, and list variables that cannot be read.

        Returns:
            The island's entry in the manifest; nothing if none of it can be read.
        """
        self._sink.at(island.names[0])
        pickled = island.pickled
        if pickled is not None and self._failure(pickled) is None:
            return entry
        failures = {name: self._failure(own) for name, own in island.own.items()}
        for name, reason in failures.items():
            if reason is not None:
                self._lose(name, variables[name], f"it cannot be read back: {reason}")
                del island.own[name]
        if not island.own:
            return None
        if len(island.own) < len(failures):
            self._join(island, variables)
            pickled = island.joint
        if pickled is not None and self._failure(pickled) is not None:
            island.joint = None
        return self._table.island(island)

    def _failure(self, pickled: Pickled) -> str | None:
        """Return why a pickling cannot be read, or nothing."""
        buffers = [buffer.toreadonly() for buffer in pickled.buffers]
        try:
            _proven.append(unpickle(pickled.stream, buffers, self._subject.namespace, []))
        except BaseException as error:  # noqa: BLE001 - objects read back are the user's code
            return reason_of(error)
        return None

    def _write(self, entry: Entry) -> None:
        names = chunks_of(entry)
        missing = self._sink.missing(names)
        for name in names:
            if name in missing:
                self._sink.write(name, self._table.data[name])

    def _losses(self, variables: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return the list of losses, in the order of the variables."""
        entries = []
        for name in (*variables, *(name for name in self._lost if name not in variables)):
            losses = self._lost.get(name, [])
            shown = losses if len(losses) <= MAX_LOSSES else losses[:MAX_LOSSES]
            entries += [_loss_entry(name, loss) for loss in shown]
            if len(shown) < len(losses):
                more = Loss("...", f"{len(losses) - len(shown)} more", "")
                entries.append(_loss_entry(name, more))
        return entries

    def _process(self, parts: Entry) -> Entry:
        """Write the state of the process beside the namespace, and map parts to entries."""
        reason = "secrets of the environment are not stored: set it again"
        for name in withheld_variables():
            self._lost[f"os.environ[{name!r}]"] = [Loss("str", reason, "")]
        entries = {}
        for name, part in parts.items():
            try:
                pickled = pickle_variables(self._scope, {name: part})
            except Exception as error:  # noqa: BLE001 - one part takes no others with it
                loss = Loss(type_name(type(part)), reason_of(error), "")
                self._lost[f"process: {name}"] = [loss]
                continue
            entries[name] = self._table.pickled(pickled)
            self._write(entries[name])
        return entries


def _library_versions(kinds: Iterable[type]) -> dict[str, str]:
    """Return the versions of the libraries that define some types, by name of the library."""
    tops = {str(getattr(kind, "__module__", "")).partition(".")[0] for kind in kinds}
    return {top: version for top in sorted(tops) if (version := library_version(top))}


def _loses_no_more(joint: Pickled, apart: list[Pickled]) -> bool:
    """Return whether variables pickled together have the same placeholders as pickled alone."""
    known = {(loss.type, loss.reason) for own in apart for loss in own.notes.lost.values()}
    return all(
        (loss.type, loss.reason) in known
        and all(id_ in own.notes.lost for own in apart if id_ in own.memo)
        for id_, loss in joint.notes.lost.items()
    )


def _loss_entry(name: str, loss: Loss) -> dict[str, str]:
    return {field: clip(text) for field, text in {"name": name, **asdict(loss)}.items()}
