"""Stand-ins for objects that the stored state does not contain."""

from __future__ import annotations

from typing import Any, NoReturn


class LostObject:
    """Stand-in, at its place, for an object that could not be stored or read back.

    Attribute access raises an error that names the object and the reason. Copying,
    printing and pickling work.
    """

    __slots__ = ("_lost_cell", "_lost_reason", "_lost_type")

    def __init__(self, type_name: str, reason: str, cell: str = "") -> None:
        """Describe the lost object.

        Args:
            type_name: Its type, with module.
            reason: Why it was not stored.
            cell: Id of the cell that made it, if known.
        """
        self._lost_type = type_name
        self._lost_reason = reason
        self._lost_cell = cell

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(f"{describe(self)}; /rebuild runs its cell again")

    def __repr__(self) -> str:
        return f"<{describe(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._lost_type, self._lost_reason, self._lost_cell)

    def __copy__(self) -> LostObject:
        return self

    def __deepcopy__(self, _memo: object) -> LostObject:
        return self


class ClosedFile:
    """Stand-in for a file object that was closed when the state was stored.

    Attributes:
        name: Path the file was opened with.
        mode: Mode it was opened in.
        closed: Always true.
    """

    closed = True

    def __init__(self, name: Any, mode: str) -> None:
        """Keep the public facts of a closed file.

        Args:
            name: Path the file was opened with.
            mode: Mode it was opened in.
        """
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
    return f"{type_name} is not in the restored state ({reason})"
