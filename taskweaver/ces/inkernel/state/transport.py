"""The kernel's end of a state transfer. `ces.state_transfer` describes the messages."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any

from taskweaver.ces.inkernel.process import ForkRequest, fork
from taskweaver.ces.inkernel.state.chunks import HostChunks
from taskweaver.ces.inkernel.state.load import Problem, load_state, mark_missing
from taskweaver.ces.inkernel.state.pickling.reducers import note_classes
from taskweaver.ces.inkernel.state.save import Subject, save_state
from taskweaver.ces.inkernel.wire import Wire, WireError

_LONGEST_S = 3600
_NICENESS = 10


def fork_writer(request: ForkRequest, subject: Subject) -> int:
    """Fork a child that writes the present namespace, and return the child's process id.

    Raises:
        OSError: If the system has no room for another process.
    """
    note_classes(subject.namespace)
    parent = os.getpid()
    try:
        pid, connection = fork(request)
        if connection is None:
            return pid
        _write(connection, subject)
    except BaseException:
        if os.getpid() == parent:
            raise
        os._exit(1)
    os._exit(0)


def _write(connection: socket.socket, subject: Subject) -> None:
    """Write the state in the child when the host is ready."""
    gc.disable()  # looking for garbage would copy the memory that is shared with the kernel
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(_LONGEST_S)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    wire = Wire(connection)
    wire.receive()  # the writer of an earlier round may still be at work
    os.nice(_NICENESS)
    try:
        manifest = json.dumps(save_state(subject, HostChunks(wire)), separators=(",", ":")).encode()
        wire.send({"manifest": True, "size": len(manifest)}, manifest)
    except WireError:
        raise
    except Exception as error:  # noqa: BLE001 - saving runs the code of the user's objects
        wire.send({"error": f"{type(error).__name__}: {error}"[:500]})
    with contextlib.suppress(OSError):
        wire.receive()  # ends when the host has read everything


def restore(path: str, namespace: dict[str, Any], missing: Mapping[str, str]) -> list[Problem]:
    """Put the variables of a stored state into the namespace.

    Each of `missing` gets a placeholder with its reason instead.

    Returns:
        Variables that could not be restored.

    Raises:
        OSError: If the host does not serve it.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        wire = Wire(connection)
        manifest = json.loads(wire.receive_bytes(wire.receive()["size"]))
        problems = load_state(manifest, namespace, HostChunks(wire))
        wire.send({"done": True})
    mark_missing(namespace, missing)
    return problems
