"""Reduction of functions, classes, modules, files and objects of the standard library.

cloudpickle gives a class of a cell a random id the first time it is pickled. In a forked child that
id would differ in each round, and the class would be written again each round. Here the id comes
from the process and the address of the class, which all children share.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import types
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cloudpickle import cloudpickle

from taskweaver.ces.inkernel.namespace import LazyModule
from taskweaver.ces.inkernel.state.pickling import rebuild
from taskweaver.ces.inkernel.state.pickling.scope import CannotStore, Handler, Notes, type_name
from taskweaver.ces.inkernel.state.placeholder import ClosedFile

_SINGLETONS = {type(None), type(Ellipsis), type(NotImplemented)}
_origin: list[str] = []
_SLOTS = (
    "__name__ __qualname__ __annotations__ __kwdefaults__ __defaults__ __module__ __doc__"
).split()


def note_classes(namespace: Mapping[str, Any]) -> None:
    """Give the classes of a namespace ids that all forked children share.

    Call it in the kernel before the fork; classes found later get their ids from their addresses.
    """
    if not _origin:
        _origin.append(uuid.uuid4().hex)
    for value in list(namespace.values()):
        found = value if issubclass(type(value), type) else type(value)
        with suppress(Exception):  # a metaclass may raise anything; the save lists its class
            if found.__module__ == "__main__":
                track(found)


def track(found: Any) -> None:
    """Give a class or type variable its id, unless it has one."""
    if not _origin:
        _origin.append(uuid.uuid4().hex)
    with cloudpickle._DYNAMIC_CLASS_TRACKER_LOCK:  # noqa: SLF001 - guarded by a test
        by_class = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS  # noqa: SLF001
        if found not in by_class:
            id_ = uuid.uuid5(uuid.UUID(_origin[0]), f"{found.__name__} {id(found):x}").hex
            by_class[found] = id_
            cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID[id_] = found  # noqa: SLF001


def reduce_file(notes: Notes, file: Any) -> Any:
    """Reduce a file: closed ones stay closed, those open for reading are opened again.

    Raises:
        CannotStore: If the file is open for writing, or is no file with a path.
    """
    if file.closed:
        return ClosedFile, (_name(file), str(getattr(file, "mode", "")))
    mode = str(getattr(file, "mode", ""))
    if file.writable():
        raise CannotStore("the file is open for writing")
    path = _name(file)
    if not isinstance(path, str) or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise CannotStore("it is no file with a path")
    try:
        position = file.tell()
    except OSError as error:
        raise CannotStore(f"its position is unknown: {error}") from None
    options: dict[str, Any] = {"mode": mode}
    if isinstance(file, io.TextIOWrapper):
        options |= {"encoding": file.encoding, "errors": file.errors}
    elif isinstance(file, io.FileIO):
        options["buffering"] = 0
    facts = (type_name(type(file)), notes.cell)
    return rebuild.reopened, (local_path(path), options, position, *facts)


def local_path(path: str) -> str:
    """Return a path relative to the working directory if it lies there.

    A branch of a session has a copy of the directory, and must not open its parent's files.
    """
    with suppress(ValueError, OSError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def _name(file: Any) -> Any:
    """Return the path of a file, or its number."""
    name = getattr(file, "name", "")
    return os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else name


def refuse(reason: str) -> Handler:
    """Return a reducer that replaces objects by placeholders."""

    def reduce(_notes: Notes, _obj: Any) -> Any:
        raise CannotStore(reason)

    return reduce


def reduce_object(_notes: Notes, obj: Any) -> Any:
    """Reduce any object as `pickle` does.

    Raises:
        CannotStore: If its reduction is none.
    """
    known = cloudpickle.Pickler.dispatch_table.get(type(obj))
    reduction = obj.__reduce_ex__(5) if known is None else known(obj)
    if isinstance(reduction, str):
        return _global_name(obj, reduction)
    if not isinstance(reduction, tuple) or not 2 <= len(reduction) <= 6:
        raise CannotStore("its __reduce__ returns no reduction")
    if not callable(reduction[0]) or not isinstance(reduction[1], tuple):
        raise CannotStore("its __reduce__ returns no reduction")
    return reduction


def _global_name(obj: Any, name: str) -> Any:
    """Check that a reduction to a name leads back to the object."""
    if cloudpickle._lookup_module_and_qualname(obj, name) is not None:  # noqa: SLF001
        return name
    if getattr(obj, "__module__", None) != "__main__":
        raise CannotStore(f"it is not found under the name {name!r}")
    # A variable that names itself: its value is stored, not the name.
    return rebuild.instance, (type(obj),), getattr(obj, "__dict__", None) or None


def reduce_neutral(notes: Notes, obj: Any) -> Any:
    """Reduce an object that exists once in each process, so that sharing joins nothing."""
    notes.neutral.add(id(obj))
    return reduce_object(notes, obj)


def reduce_class(notes: Notes, found: Any) -> Any:
    """Reduce a class by name, or a class of a cell with its contents."""
    if found in cloudpickle._BUILTIN_TYPE_NAMES or found in _SINGLETONS:  # noqa: SLF001
        return cloudpickle._class_reduce(found)  # noqa: SLF001
    if cloudpickle._should_pickle_by_reference(found):  # noqa: SLF001
        return NotImplemented
    track(found)
    notes.by_value.add(id(found))
    return cloudpickle._class_reduce(found)  # noqa: SLF001


def reduce_type_variable(notes: Notes, variable: Any) -> Any:
    """Reduce a type variable by name, or with an id that is the same in each round."""
    track(variable)
    return reduce_object(notes, variable)


def reduce_any_function(notes: Notes, function: Any) -> Any:
    """Reduce a function by name, or a function of a cell with its code.

    Returns:
        The reduction; nothing for `cloudpickle` to make it, with a copy of the globals it uses.
    """
    if cloudpickle._should_pickle_by_reference(function):  # noqa: SLF001
        return NotImplemented
    notes.by_value.add(id(function))
    return reduce_function(notes, function)


def reduce_function(notes: Notes, function: types.FunctionType) -> Any:
    """Reduce a function to code and a token for the globals.

    Returns:
        The reduction; nothing if the globals are the function's own.
    """
    namespace = function.__globals__
    module = str(namespace.get("__name__"))
    if namespace is notes.scope.namespace:
        token = notes.scope.globals_token()
    elif getattr(sys.modules.get(module), "__dict__", None) is namespace:
        token = notes.scope.globals_token(module)
    else:
        return None
    slots = {name: getattr(function, name) for name in _SLOTS}
    # Copies: whether two equal texts are one object differs between processes.
    slots |= {name: "".join(slots[name]) for name in ("__name__", "__qualname__")}
    if hasattr(function, "__type_params__"):
        slots["__type_params__"] = function.__type_params__
    state = (dict(function.__dict__), slots)
    arguments = (function.__code__, token, function.__closure__)
    return rebuild.function, arguments, state, None, None, rebuild.fill_function


def reduce_cell(_notes: Notes, cell: types.CellType) -> Any:
    """Reduce a closure cell as an object, still shared by functions."""
    try:
        contents = cell.cell_contents
    except ValueError:
        return rebuild.new_cell, ()
    return rebuild.new_cell, (), (contents,), None, None, rebuild.fill_cell


def reduce_cached(notes: Notes, function: Any) -> Any:
    """Reduce a function with a cache to function and parameters."""
    name = getattr(function, "__qualname__", "")
    if cloudpickle._lookup_module_and_qualname(function, name) is not None:  # noqa: SLF001
        return str(name)
    notes.by_value.add(id(function))
    return rebuild.cached, (function.__wrapped__, function.cache_parameters())


def reduce_module(notes: Notes, module: types.ModuleType) -> Any:
    """Reduce a module to the name and the loaded submodules."""
    name = module.__name__
    if isinstance(module, LazyModule):
        notes.neutral.add(id(module))
        return rebuild.module, (name,)
    if sys.modules.get(name) is None:
        raise CannotStore("the module was made by code, and cannot be imported")
    notes.neutral.add(id(module))
    prefix = f"{name}."
    submodules = sorted(
        other for other in list(sys.modules) if other.startswith(prefix) and "._" not in other
    )
    return rebuild.module, (name, submodules)


def reduce_memoryview(_notes: Notes, view: memoryview) -> Any:
    """Reduce a memory view to a view of copied bytes."""
    shape = tuple(view.shape or ())
    if not view.c_contiguous:
        raise CannotStore("a memory view with gaps cannot be stored")
    data = view.tobytes() if view.readonly else bytearray(view)
    return rebuild.view, (data, 0, view.nbytes, view.format, shape)


def reduce_weak_mapping(_notes: Notes, mapping: Any) -> Any:
    """Reduce a mapping with weak keys or values, as `singledispatch` has, to living items."""
    return rebuild.weak_mapping, (type(mapping), list(mapping.items()))
