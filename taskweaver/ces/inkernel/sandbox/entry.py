"""Entry of a forked process into a sandbox.

bubblewrap makes the namespaces of a sandbox and starts a small program in them, the anchor. A
process that is forked off a warm one joins the namespaces of the anchor, and drops by itself the
rights that bubblewrap takes from a program. It does so before any code of a session runs in the
sandbox. With Landlock there is no anchor: the process drops its rights where it is. See decision
0018.
"""

from __future__ import annotations

import ctypes
import os
import socket
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.process import (
    ForkRequest,
    announce,
    close_memory,
    open_files,
    open_memory,
    replace_files,
    set_limits,
)
from taskweaver.ces.inkernel.sandbox.confine import Confinement, give_up_rights
from taskweaver.ces.inkernel.sandbox.probe import attempt_all

_SET_CHILD_SUBREAPER = 36
_MARK = "TASKWEAVER_KERNEL_ID"
_SETTINGS = "MPLCONFIGDIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(ForkRequest):
    """Request to fork a process that enters a sandbox.

    Attributes:
        namespaces: Flags of ``setns(2)`` for the namespaces of the anchor that it joins.
        environment: Its environment. The mark in it is as long as the one of the warm process.
        limits: Arguments of `process.set_limits`.
        confinement: Fields of the `Confinement` that it applies to itself.
        facts: Facts of the outside, for a trial of the sandbox; empty for none.
    """

    namespaces: int
    environment: dict[str, str]
    limits: list[int]
    confinement: dict[str, Any]
    facts: dict[str, Any]


def adopt_orphans() -> None:
    """Become the parent of the processes that enter sandboxes, so that their ends are noticed.

    The last process of a namespace for process ids cannot end before its parent takes notice.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def enter(entry: Entry, anchor: int | None) -> socket.socket:
    """Enter a sandbox, in a process that was forked for this purpose.

    `anchor` is its pidfd; None where there are no namespaces to join.

    Returns:
        In the process inside, the connection to its owner. Others end.
    """
    try:
        if anchor is not None:
            _join(anchor, entry.namespaces)
        os.setsid()
        replace_files(entry.log, open_files())  # an open folder outside would be an escape
        _move(entry)
        set_limits(*entry.limits)
        give_up_rights(Confinement(**entry.confinement))
        # As after the start of a program; the process has no more rights than others inside.
        open_memory()
        if entry.facts:
            attempt_all(entry.facts)
        close_memory()
        return announce(entry)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - its owner learns of it
        with suppress(OSError):  # the owner is gone
            announce(entry, f"it cannot enter the sandbox: {error}").close()
        os._exit(1)


def _join(anchor: int, namespaces: int) -> None:
    """Join namespaces. Only a child of this process is in the namespace of process ids."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(anchor, namespaces) < 0:
        raise OSError(ctypes.get_errno(), "setns")
    if os.fork():
        os._exit(0)


def _move(entry: Entry) -> None:
    """Set the working directory and the environment of the sandbox."""
    os.chdir(entry.cwd)
    _replace_mark(entry.environment[_MARK])
    settings = Path(os.environ[_SETTINGS])
    for name in os.environ.keys() - entry.environment.keys():
        del os.environ[name]
    os.environ.update(entry.environment)
    tempfile.tempdir = None  # it is looked up again
    inside = Path(entry.environment[_SETTINGS])
    inside.mkdir(parents=True, exist_ok=True)
    if entry.namespaces and not os.path.lexists(settings):
        settings.symlink_to(inside)  # matplotlib remembers where it was imported


def _replace_mark(mark: str) -> None:
    """Replace the mark in the environment that the system shows of this process."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    place, value = libc.getenv(_MARK.encode()), mark.encode()
    if len(ctypes.string_at(place)) != len(value):
        raise ValueError("the mark of the sandbox has another length")
    ctypes.memmove(place, value, len(value))
