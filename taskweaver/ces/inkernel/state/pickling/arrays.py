"""Arrays of numpy: views that share memory, and arrays mapped from files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from taskweaver.ces.inkernel.state.pickling.files import local_path
from taskweaver.ces.inkernel.state.pickling.reducers import reduce_object
from taskweaver.ces.inkernel.state.pickling.scope import Notes

_NESTED = (list, tuple, dict)


def plan_views(values: Iterable[Any]) -> dict[int, Any]:
    """Find plain arrays that share memory.

    Only arrays count that variables, lists, tuples and dicts hold directly: inside pandas a kept
    view would escape the tracking of copy-on-write.

    Returns:
        By id of a view, the array that owns its memory.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return {}
    by_owner: dict[int, list[Any]] = {}
    for array in _plain_arrays(values, numpy.ndarray):
        if not array.dtype.hasobject:
            by_owner.setdefault(id(_owner(array)), []).append(array)
    views: dict[int, Any] = {}
    for arrays in by_owner.values():
        owner = _owner(arrays[0])
        is_one_piece = owner.flags.c_contiguous or owner.flags.f_contiguous
        # Where none can be written, copies and views are the same to any code.
        if len(arrays) > 1 and is_one_piece and any(array.flags.writeable for array in arrays):
            views |= {id(array): owner for array in arrays if array is not owner}
    return views


def _plain_arrays(values: Iterable[Any], kind: type) -> list[Any]:
    # Types by id: a metaclass may have made them unhashable.
    wanted = set(map(id, (*_NESTED, kind)))
    arrays: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [value for value in values if id(type(value)) in wanted]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) is kind:
            arrays[id(value)] = value
            continue
        items = list(value.values()) if isinstance(value, dict) else value
        # Most lists hold no arrays, and their items need no look in Python.
        if not wanted.isdisjoint(map(id, map(type, items))):
            waiting += [item for item in items if id(type(item)) in wanted]
    return list(arrays.values())


def _owner(array: Any) -> Any:
    kind = sys.modules["numpy"].ndarray
    while isinstance(array.base, kind):
        array = array.base
    return array


def reduce_array(notes: Notes, array: Any) -> Any:
    """Reduce an array, as a view where it shares memory with another plain array."""
    owner = notes.scope.views.get(id(array))
    if owner is None or owner is array:
        is_plain = type(array) is sys.modules["numpy"].ndarray
        return NotImplemented if is_plain else reduce_object(notes, array)
    begin = _address(array) - _address(owner)
    place = (begin, array.shape, array.strides, array.dtype, array.flags.writeable)
    return restore_view, (owner, *place)


def reduce_memmap(notes: Notes, array: Any) -> Any:
    """Reduce an array mapped from a file to the file's path and the place there."""
    if array._mmap is None or array.filename is None:  # noqa: SLF001 - numpy's documents name it
        return reduce_object(notes, array)
    whole = array
    while isinstance(whole.base, type(array)):
        whole = whole.base
    if whole is not array:
        begin = _address(array) - _address(whole)
        writeable = array.flags.writeable
        return restore_view, (whole, begin, array.shape, array.strides, array.dtype, writeable)
    mode = "r+" if array.mode == "w+" else array.mode
    order = "C" if array.flags.c_contiguous else "F"
    path = local_path(str(array.filename))
    return restore_memmap, (path, array.dtype, mode, array.offset, array.shape, order)


def restore_view(
    owner: Any, begin: int, shape: Any, strides: Any, dtype: Any, is_writeable: Any
) -> Any:
    """Return an array that shares the memory of another.

    `begin` counts the bytes from the owner's first element to the view's.
    """
    numpy = sys.modules["numpy"]
    flat = owner.ravel(order="K")
    found = numpy.ndarray.__new__(type(owner), shape, dtype, flat, begin, strides)
    if not is_writeable:
        found.flags.writeable = False
    return found


def restore_memmap(path: str, dtype: Any, mode: str, offset: int, shape: Any, order: str) -> Any:
    """Map an array from a file again."""
    import numpy as np

    return np.memmap(path, dtype, mode, offset, shape, order)  # type: ignore[call-overload]


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
