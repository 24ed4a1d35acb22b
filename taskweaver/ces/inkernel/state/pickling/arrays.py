"""Arrays of numpy that are mapped from files."""

from __future__ import annotations

import sys
from typing import Any

from taskweaver.ces.inkernel.state.pickling.reducers import local_path, reduce_object
from taskweaver.ces.inkernel.state.pickling.scope import Notes


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
