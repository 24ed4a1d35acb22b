"""Functions that pickled streams call when they are read back."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.state.placeholder import LostObject

Namespace = dict[str, Any]


@dataclass(slots=True)
class _Target:
    """Namespace that streams are read into.

    Attributes:
        namespace: Globals of functions that cells defined.
        problems: Remarks of functions of this module, for the island being read.
    """

    namespace: Namespace = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


_target = _Target()


@contextmanager
def reading_into(namespace: Namespace, problems: list[str]) -> Iterator[None]:
    """Make a namespace the globals of functions that are read meanwhile."""
    before = _target.namespace, _target.problems
    _target.namespace, _target.problems = namespace, problems
    try:
        yield
    finally:
        _target.namespace, _target.problems = before


def live_namespace() -> Namespace:
    """Return the namespace that is being restored."""
    return _target.namespace


def module_globals(name: str) -> Namespace:
    """Return the namespace of a module."""
    return importlib.import_module(name).__dict__


def module(name: str, submodules: Sequence[str] = ()) -> types.ModuleType:
    """Import a module, and of its submodules those that were loaded before."""
    found = importlib.import_module(name)
    for submodule in submodules:
        if submodule not in sys.modules:
            try:
                importlib.import_module(submodule)
            except Exception as error:  # noqa: BLE001 - a module may raise anything; it is reported
                _target.problems.append(f"{submodule} cannot be imported: {error}")
    return found


def shell() -> Any:
    """Return the shell of this kernel."""
    from IPython.core.getipython import get_ipython

    return get_ipython()


def new_cell() -> types.CellType:
    """Return an empty closure cell."""
    return types.CellType()


def fill_cell(cell: types.CellType, state: tuple[Any]) -> None:
    """Set the contents of a closure cell."""
    cell.cell_contents = state[0]


def function(
    code: types.CodeType,
    namespace: Namespace,
    closure: tuple[types.CellType, ...] | None,
) -> types.FunctionType:
    """Return a function whose defaults and attributes are set later."""
    return types.FunctionType(code, namespace, None, None, closure)


_NAMES = frozenset({"__name__", "__qualname__"})


def fill_function(
    function: types.FunctionType, state: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> None:
    """Set defaults, names and attributes of a function."""
    attributes, slots = state
    # Interned, as the names of a compiled function are: the next save's streams are the same.
    function.__dict__.update({sys.intern(name): value for name, value in attributes.items()})
    for name, value in slots.items():
        setattr(function, name, sys.intern(value) if name in _NAMES else value)
    for names in (function.__annotations__, function.__kwdefaults__ or {}):
        items = [(sys.intern(name), value) for name, value in names.items()]
        names.clear()
        names.update(items)


def cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """Return a function with an empty `functools.lru_cache`."""
    return functools.lru_cache(**parameters)(function)


def instance(kind: type) -> Any:
    """Return an instance whose attributes are set later."""
    return object.__new__(kind)


def lock() -> Any:
    """Return an open lock."""
    return threading.Lock()


def recursive_lock() -> Any:
    """Return an open reentrant lock."""
    return threading.RLock()


def view(data: Any, begin: int, length: int, form: str, shape: tuple[int, ...]) -> memoryview:
    """Return a memory view of a part of a bytes-like object."""
    whole = memoryview(data).cast("B")[begin : begin + length]
    return whole if form == "B" and len(shape) == 1 else whole.cast(form, shape)  # type: ignore[call-overload]


def weak_mapping(kind: type, items: list[tuple[Any, Any]]) -> Any:
    """Return a mapping with weak keys or values."""
    return kind(items)


def reopened(
    path: str, options: Mapping[str, Any], position: int, type_name: str, cell: str
) -> Any:
    """Open a file for reading again, at the place where it was read."""
    try:
        file = Path(path).open(**options)  # noqa: SIM115 - the variable's owner closes it
        file.seek(position)
    except OSError as error:
        reason = f"the file {path} cannot be opened again: {error.strerror}"
        _target.problems.append(reason)
        return LostObject(type_name, reason, cell)
    return file
