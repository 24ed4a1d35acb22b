"""The pickler of variables: reducers by type, placeholders, tokens and out-of-band buffers."""

from __future__ import annotations

import functools
import io
import logging
import pickle
import socket
import subprocess
import sys
import threading
import types
import typing
import weakref
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from cloudpickle import cloudpickle

from taskweaver.ces.inkernel.state.pickling import arrays, frames, rebuild, reducers
from taskweaver.ces.inkernel.state.pickling.reducers import refuse
from taskweaver.ces.inkernel.state.pickling.scope import (
    Handler,
    Loss,
    Notes,
    SaveScope,
    reason_of,
    type_name,
)
from taskweaver.ces.inkernel.state.placeholder import LostObject

_EXACT: dict[type, Handler] = {
    types.FunctionType: reducers.reduce_any_function,
    types.CellType: reducers.reduce_cell,
    functools._lru_cache_wrapper: reducers.reduce_cached,  # noqa: SLF001 - the type has no other name
    type(threading.Lock()): lambda _notes, _lock: (rebuild.lock, ()),
    type(threading.RLock()): lambda _notes, _lock: (rebuild.recursive_lock, ()),
    typing.TypeVar: reducers.reduce_type_variable,
    memoryview: reducers.reduce_memoryview,
    weakref.WeakKeyDictionary: reducers.reduce_weak_mapping,
    weakref.WeakValueDictionary: reducers.reduce_weak_mapping,
    types.GeneratorType: refuse("a generator cannot be stored"),
    types.CoroutineType: refuse("a coroutine cannot be stored"),
    types.AsyncGeneratorType: refuse("a generator cannot be stored"),
    weakref.ReferenceType: refuse("a weak reference cannot be stored"),
}
_BASES: tuple[tuple[type, Handler], ...] = (
    (type, reducers.reduce_class),
    (LostObject, refuse("")),
    (types.ModuleType, reducers.reduce_module),
    (logging.Logger, reducers.reduce_neutral),
    (threading.Thread, refuse("a thread cannot be stored")),
    (socket.socket, refuse("a network connection cannot be stored")),
    (subprocess.Popen, refuse("a process cannot be stored")),
    (io.TextIOWrapper, reducers.reduce_file),
    (io.FileIO, reducers.reduce_file),
    (io.BufferedReader, reducers.reduce_file),
    (io.BufferedWriter, reducers.reduce_file),
    (io.BufferedRandom, reducers.reduce_file),
)
_CONTAINERS = (
    types.FunctionType,
    types.MethodType,
    types.CellType,
    types.SimpleNamespace,
    types.ModuleType,
    BaseException,
    type,
)
IN_BAND_BYTES = 1 << 15
"""Buffers below this stay in the stream: a file each would cost more than it saves."""


def _library_handler(kind: type) -> Handler | None:
    """Return the reducer of a library's type, or nothing."""
    if kind.__module__.partition(".")[0] == "tqdm":
        return refuse("a progress bar cannot be stored")
    for module, name, handler in _LIBRARY_KINDS:
        base = getattr(sys.modules.get(module), name, None)
        if base is not None and issubclass(kind, base):
            return handler
    return None


def _reduce_shell(notes: Notes, shell: Any) -> Any:
    notes.neutral.add(id(shell))
    return rebuild.shell, ()


_LIBRARY_KINDS: tuple[tuple[str, str, Handler], ...] = (
    ("numpy", "memmap", arrays.reduce_memmap),
    ("pandas._libs.internals", "Block", frames.reduce_block),
    ("pandas.core.arrays.arrow", "ArrowExtensionArray", frames.reduce_arrow_array),
    ("polars", "DataFrame", frames.reduce_polars_frame),
    ("polars", "Series", frames.reduce_polars_series),
    ("polars", "LazyFrame", refuse("a query that was not run cannot be stored; collect() it")),
    ("IPython.core.interactiveshell", "InteractiveShell", _reduce_shell),
)


def handler_of(kind: type) -> Handler:
    """Return the reducer of a type."""
    if kind in _EXACT:
        return _EXACT[kind]
    for base, handler in _BASES:
        if issubclass(kind, base):
            return handler
    return _library_handler(kind) or reducers.reduce_object


def is_library(kind: type) -> bool:
    """Return whether objects of a type are lost as a whole when they hold a lost object.

    Objects of classes that cells defined survive, and so do containers.
    """
    if issubclass(kind, _CONTAINERS):
        return False
    try:
        is_builtin = kind in cloudpickle._BUILTIN_TYPE_NAMES  # noqa: SLF001
        return is_builtin or bool(cloudpickle._should_pickle_by_reference(kind))  # noqa: SLF001
    except Exception:  # noqa: BLE001 - a metaclass is the user's code and may raise anything
        return False


@dataclass(slots=True)
class Pickled:
    """Outcome of one pickling.

    Attributes:
        stream: The pickle.
        buffers: Its out-of-band buffers, views of live memory.
        notes: Losses and identities.
        memo: Number in the stream and object, by id, if asked for.
    """

    stream: bytes
    buffers: list[memoryview]
    notes: Notes
    memo: dict[int, tuple[int, Any]]

    @property
    def size(self) -> int:
        """Bytes of stream and buffers."""
        return len(self.stream) + sum(buffer.nbytes for buffer in self.buffers)


class StatePickler(cloudpickle.Pickler):
    """A pickler that replaces objects it cannot pickle by placeholders."""

    def __init__(self, file: io.BytesIO, notes: Notes, *, is_recording: bool) -> None:
        """Prepare one pickling.

        `is_recording` keeps which library object holds which objects directly.
        """
        self.buffers: list[memoryview] = []
        self.holders: list[tuple[Any, set[int]]] = []
        self.notes = notes
        self._is_recording = is_recording
        super().__init__(file, protocol=5, buffer_callback=self._take_buffer)

    def _take_buffer(self, buffer: pickle.PickleBuffer) -> bool:
        """Keep a buffer out of the stream, unless the result is true."""
        raw = buffer.raw()
        if raw.nbytes < IN_BAND_BYTES:
            return True
        self.buffers.append(raw)
        return False

    def reducer_override(self, obj: Any) -> Any:
        """Reduce everything but exact builtins."""
        scope = self.notes.scope
        id_ = id(obj)
        if id_ in scope.tokens:
            self.notes.neutral.add(id_)
            return scope.tokens[id_]
        if id_ in scope.condemned:
            return self._lose(obj, scope.condemned[id_])
        kind = type(obj)
        handler = scope.handlers.get(kind)
        try:
            if handler is None:
                handler = scope.handlers[kind] = handler_of(kind)
            reduction = handler(self.notes, obj)
            if reduction is None:
                reduction = super()._dynamic_function_reduce(obj)
        except (RecursionError, MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - reducers are the user's code and may raise anything
            return self._lose(obj, reason_of(error))
        if isinstance(reduction, str):
            self.notes.neutral.add(id_)
        elif self._is_recording and isinstance(reduction, tuple) and is_library(kind):
            self.holders.append((obj, _children(reduction)))
        return reduction

    def _dynamic_function_reduce(self, func: FunctionType) -> Any:
        """Reduce a function without globals, of which cloudpickle would make a private copy."""
        return reducers.reduce_function(self.notes, func) or super()._dynamic_function_reduce(func)

    def dump(self, obj: Any) -> None:
        """Pickle an object, and pass on a `RecursionError`, which cloudpickle would hide."""
        pickle.Pickler.dump(self, obj)

    def _lose(self, obj: Any, reason: str) -> Any:
        notes = self.notes
        if issubclass(type(obj), LostObject):
            loss = Loss(*obj.__reduce__()[1])
        else:
            cell = notes.scope.cells.setdefault(id(obj), notes.cell)
            loss = Loss(type_name(type(obj)), reason, cell)
        notes.neutral.add(id(obj))
        notes.lost[id(obj)] = loss
        return LostObject, (loss.type, loss.reason, loss.cell)


def _children(reduction: tuple[Any, ...]) -> set[int]:
    """Return the ids of the objects that a reduced object holds directly."""
    children = list(reduction[1])
    for part in reduction[2:3]:
        states = part if isinstance(part, tuple) else (part,)
        for state in states:
            children += state.values() if isinstance(state, dict) else [state]
    return {id(child) for child in children}


def pickle_variables(
    scope: SaveScope, variables: dict[str, Any], cell: str = "", *, needs_memo: bool = False
) -> Pickled:
    """Pickle variables together.

    A library's object that directly holds a placeholder is replaced as a whole: half of a thread
    pool is none.

    With `needs_memo` the objects in the stream come too; a million of them take a second.

    Raises:
        Exception: Whatever pickling raises beyond the reducers.
    """
    pickler, stream = _dump(scope, variables, cell, is_recording=False)
    while pickler.notes.lost:
        pickler, stream = _dump(scope, variables, cell, is_recording=True)
        if not _condemn(scope, pickler.notes.lost, pickler.holders):
            break
    memo = pickler.memo.copy() if needs_memo else {}
    return Pickled(stream, pickler.buffers, pickler.notes, memo)


def _dump(
    scope: SaveScope, variables: dict[str, Any], cell: str, *, is_recording: bool
) -> tuple[StatePickler, bytes]:
    file = io.BytesIO()
    pickler = StatePickler(file, Notes(scope, cell), is_recording=is_recording)
    # Even of a pickling that fails the reductions must live on.
    scope.kept.append(pickler)
    pickler.dump(variables)
    return pickler, file.getvalue()


def _condemn(scope: SaveScope, lost: dict[int, Loss], holders: list[tuple[Any, set[int]]]) -> bool:
    """Mark library objects that hold a lost object, at any depth, and return whether any exist."""
    reasons = {id_: loss.type for id_, loss in lost.items()}
    is_growing, has_grown = True, False
    while is_growing:
        is_growing = False
        for holder, children in holders:
            held = children & reasons.keys()
            if held and id(holder) not in reasons:
                inner = reasons[min(held)]
                reasons[id(holder)] = inner
                scope.condemned[id(holder)] = f"it holds a {inner}"
                is_growing = has_grown = True
    return has_grown
