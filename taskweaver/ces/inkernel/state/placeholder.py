"""Stand-ins for objects that the stored state does not contain."""

from __future__ import annotations

from typing import Any, NoReturn

LOST_MARK = "is not in the restored state"
"""Part of the rendering of each placeholder."""


class LostObject:
    """Stand-in for an object that could not be stored or read back.

    Use of it raises an error that names the object and the reason: attributes, items,
    iteration, calls, `with`, arithmetic and ordering. Copying, printing, pickling and `==` work.
    """

    __slots__ = ("_lost_cell", "_lost_reason", "_lost_type")

    def __init__(self, type_name: str, reason: str, cell: str = "") -> None:
        """Describe the lost object.

        The type is named with its module; `cell` is the id of the cell that made it, if known.
        """
        self._lost_type = type_name
        self._lost_reason = reason
        self._lost_cell = cell

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(f"{describe(self)}; /rebuild runs its cell again")

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError(f"{describe(self)}; /rebuild runs its cell again")

    __getitem__ = __setitem__ = __delitem__ = __contains__ = _refuse
    __iter__ = __next__ = __call__ = __enter__ = __exit__ = _refuse
    __add__ = __sub__ = __mul__ = __matmul__ = __truediv__ = __floordiv__ = __mod__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rmatmul__ = __rtruediv__ = __rfloordiv__ = _refuse
    __pow__ = __rpow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{describe(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._lost_type, self._lost_reason, self._lost_cell)

    def __copy__(self) -> LostObject:
        return self

    def __deepcopy__(self, _memo: object) -> LostObject:
        return self


class ClosedFile:
    """Stand-in for a file object that was closed when the state was stored."""

    closed = True

    def __init__(self, name: Any, mode: str) -> None:
        self.name = name
        self.mode = mode

    def close(self) -> None:
        """Do nothing, as closing a closed file does."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"'ClosedFile' object has no attribute {name!r}")
        raise ValueError("I/O operation on closed file.")

    def __repr__(self) -> str:
        return f"<closed file {self.name!r} mode={self.mode!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return ClosedFile, (self.name, self.mode)


def describe(lost: LostObject) -> str:
    """Return one phrase about a lost object: type and reason."""
    type_name, reason, _ = lost.__reduce__()[1]
    return f"{type_name or 'A variable'} {LOST_MARK} ({reason})"
