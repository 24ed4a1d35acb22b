"""Table of the reducers by type."""

from __future__ import annotations

import enum
import functools
import io
import logging
import socket
import subprocess
import threading
import types
import typing
import weakref

from cloudpickle import cloudpickle

from taskweaver.ces.inkernel.state.pickling import libraries, reducers
from taskweaver.ces.inkernel.state.pickling.files import reduce_file
from taskweaver.ces.inkernel.state.pickling.scope import Handler
from taskweaver.ces.inkernel.state.placeholder import LostObject

_EXACT: dict[type, Handler] = {
    types.FunctionType: reducers.reduce_any_function,
    types.CellType: reducers.reduce_cell,
    functools._lru_cache_wrapper: reducers.reduce_cached,  # noqa: SLF001 - the type has no other name
    type(threading.Lock()): reducers.reduce_lock,
    type(threading.RLock()): reducers.reduce_recursive_lock,
    typing.TypeVar: reducers.reduce_type_variable,
    memoryview: reducers.reduce_memoryview,
    weakref.WeakKeyDictionary: reducers.reduce_weak_mapping,
    weakref.WeakValueDictionary: reducers.reduce_weak_mapping,
    types.GeneratorType: reducers.refuse("a generator cannot be stored"),
    types.CoroutineType: reducers.refuse("a coroutine cannot be stored"),
    types.AsyncGeneratorType: reducers.refuse("a generator cannot be stored"),
    weakref.ReferenceType: reducers.refuse("a weak reference cannot be stored"),
}
_BASES: tuple[tuple[type, Handler], ...] = (
    (type, reducers.reduce_class),
    (LostObject, reducers.refuse("")),
    (types.ModuleType, reducers.reduce_module),
    (enum.Enum, reducers.reduce_neutral),
    (logging.Logger, reducers.reduce_neutral),
    (threading.Thread, reducers.refuse("a thread cannot be stored")),
    (socket.socket, reducers.refuse("a network connection cannot be stored")),
    (subprocess.Popen, reducers.refuse("a process cannot be stored")),
    (io.TextIOWrapper, reduce_file),
    (io.FileIO, reduce_file),
    (io.BufferedReader, reduce_file),
    (io.BufferedWriter, reduce_file),
    (io.BufferedRandom, reduce_file),
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


def handler_of(kind: type) -> Handler:
    """Return the reducer of a type."""
    if kind in _EXACT:
        return _EXACT[kind]
    for base, handler in _BASES:
        if issubclass(kind, base):
            return handler
    return libraries.handler_of(kind) or reducers.reduce_object


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
