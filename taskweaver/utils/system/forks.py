"""Objects that live in one process: kernels, threads and locks of theirs are not in a forked child.

After a fork by other code (a server that forks its workers, `multiprocessing`) the child has copies
of them that would wait for ever for threads it lacks, and could end what is its parent's.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn
from weakref import WeakSet

from taskweaver.errors import TaskWeaverError

_ENDS = frozenset({"close", "stop", "clean_up"})
_bound: WeakSet[Any] = WeakSet()
_left: list[Any] = []


class MadeBeforeFork(TaskWeaverError):
    """An object was used in a process that was forked after the object was made."""

    def __str__(self) -> str:
        return (
            "This object was made before its process was forked, and works in the parent process"
            " alone. Make the object in the child process, after the fork."
        )


def bind_to_process(thing: object) -> None:
    """Let any use of an object raise `MadeBeforeFork` in children of this process.

    Its methods that end it do nothing there.
    """
    _bound.add(thing)


class _LeftInParent:
    """Class of bound objects in a forked child."""

    def __getattribute__(self, name: str) -> Any:
        if name in _ENDS:
            return lambda *_: None
        if name == "__class__":
            return _LeftInParent
        raise MadeBeforeFork

    def _refuse(self) -> NoReturn:
        raise MadeBeforeFork

    __enter__ = __aenter__ = __aiter__ = __anext__ = __repr__ = _refuse

    def __exit__(self, *exc: object) -> None:
        """Do nothing: the parent ends the object."""


def _leave() -> None:
    """Change the bound objects in a forked child, and keep each object from being finalized."""
    _left.extend(_bound)
    for thing in _left:
        thing.__class__ = _LeftInParent


os.register_at_fork(after_in_child=_leave)
