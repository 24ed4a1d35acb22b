"""The host's end of a state transfer.

The child of a kernel that writes a state, and the kernel that restores one, see no file of the
host's: bytes go over a connection, and the host reads and writes. See decision 0012.

A writing child sends ``{"missing": [names]}``, answered by those not stored; ``{"chunk", "size"}``
and the bytes; ``{"at": variable}``; at the end ``{"manifest", "size"}`` and the manifest. It
begins when it receives ``{"begin"}``. A restoring kernel receives ``{"size"}`` and the manifest,
and sends ``{"read": name}``, answered by ``{"size"}`` and the bytes or ``{"error"}``;
``{"damaged": name}``; at the end ``{"done"}``.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from taskweaver.ces.claims import rows, text
from taskweaver.ces.inkernel.wire import CHUNK_BYTES, Wire, WireError
from taskweaver.ces.process.handles import ProcessHandle, peer_of
from taskweaver.ces.process.homes import Homes
from taskweaver.ces.state_folder import (
    MOST_BYTES,
    StateDamaged,
    StateFolder,
    StateManifest,
    chunk_names,
)
from taskweaver.utils.system.platform import SYSTEM

STALL_S = 60.0
"""Longest time without progress of a writer."""
RESTORE_S = 600.0
"""Longest time to restore a state: a kernel that reads a large variable asks for nothing."""
_SOCKET_FILE = "state"


@dataclass(frozen=True, slots=True)
class Stored:
    """Outcome of writing a state.

    Attributes:
        problem: Why it is not stored; empty when it is.
        stuck_at: The variable that the writer was at when it made no progress; empty otherwise.
    """

    problem: str = ""
    stuck_at: str = ""


def receive_state(
    connection: socket.socket, folder: StateFolder, branch: str, round_id: str
) -> Stored:
    """Store the state that a waiting child writes."""
    connection.settimeout(STALL_S)
    wire, at = Wire(connection), ""
    try:
        wire.send({"begin": True})
        while True:
            message = wire.receive()
            if "at" in message:
                at = text(message["at"], 500)
            elif "missing" in message:
                wire.send({"missing": folder.missing(chunk_names(message["missing"]))})
            elif "chunk" in message:
                size = _size(message, CHUNK_BYTES)
                folder.add_chunk(text(message["chunk"]), wire.receive_bytes(size))
            elif "manifest" in message:
                data = bytes(wire.receive_bytes(_size(message, MOST_BYTES)))
                folder.store(branch, round_id, data)
                return Stored()
            else:
                raise WireError(text(message.get("error")) or "a message of no known kind")
    except TimeoutError:
        where = f" at `{at}`" if at else ""
        return Stored(f"no progress within {STALL_S:g} s{where}", at)
    except (OSError, StateDamaged) as error:
        return Stored(text(getattr(error, "strerror", None) or str(error), 500))


@dataclass(frozen=True, slots=True)
class StateWriter:
    """A child of a kernel that holds the kernel's state and writes on request. Close the writer."""

    connection: socket.socket
    handle: ProcessHandle

    def write(self, folder: StateFolder, branch: str, round_id: str) -> Stored:
        """Store the state of a round's end, and return once on disk."""
        return receive_state(self.connection, folder, branch, round_id)

    def cancel(self) -> None:
        """Break a `write` off, from another thread."""
        with suppress(OSError):  # the child has ended
            self.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the child, whether or not the state was written."""
        self.connection.close()
        self.handle.send(signal.SIGKILL)
        self.handle.close()


def send_state(connection: socket.socket, folder: StateFolder, state: StateManifest) -> None:
    """Serve a kernel that restores a state, until done or gone."""
    connection.settimeout(RESTORE_S)
    wire = Wire(connection)
    try:
        wire.send({"size": len(state.data)}, state.data)
        while "done" not in (message := wire.receive()):
            name = text(message.get("read") or message.get("damaged"))
            if name not in state.chunks:
                raise WireError("a chunk that is not part of the state")
            if "damaged" in message:
                folder.remove_if_damaged(name)
            else:
                _send_chunk(connection, wire, folder, name)
    except OSError:
        return  # the kernel reports what it could not restore, or has ended


def _send_chunk(connection: socket.socket, wire: Wire, folder: StateFolder, name: str) -> None:
    try:
        file = folder.open_chunk(name)
    except OSError as error:
        wire.send({"error": error.strerror or "it cannot be read"})
        return
    with file:
        size = os.fstat(file.fileno()).st_size
        wire.send({"size": size})
        if size:  # `sendfile` refuses a count of 0
            connection.sendfile(file, 0, size)


def _size(message: Mapping[str, Any], most: int) -> int:
    size = message.get("size")
    if not isinstance(size, int) or not 0 <= size <= most:
        raise WireError("a message of a wrong size")
    return size


@dataclass(frozen=True, slots=True)
class Restorable:
    """A stored state that a kernel can start from.

    Attributes:
        folder: Files it is made of.
        manifest: The state.
        round_number: Number of the round at whose end it was stored, from 1.
        missing: Variables whose stored value is out of date, each with the reason.
    """

    folder: StateFolder
    manifest: StateManifest
    round_number: int
    missing: Mapping[str, str] = field(default_factory=dict)

    def restore(
        self, pid: int, homes: Homes, ask: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> list[str]:
        """Fill a fresh kernel.

        Returns:
            Variables that are not there, or not as they were, a line for each.

        Raises:
            OSError: If the socket to serve it cannot be made.
        """
        with homes.new() as home, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(home.draft / _SOCKET_FILE))
            listener.listen(1)
            home.publish()
            listener.settimeout(STALL_S)
            thread = threading.Thread(target=self._serve, args=(listener, pid), name="restore")
            thread.start()
            try:
                path = str(home.path / _SOCKET_FILE)
                report = ask({"op": "restore", "socket": path, "missing": dict(self.missing)})
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                thread.join()
        problems = [*rows(report.get("problems"), 2), *map(list, self.missing.items())]
        return [f"`{name}`: {reason}" if name else reason for name, reason in problems]

    def _serve(self, listener: socket.socket, pid: int) -> None:
        """Serve one process, and no stranger that may find the address."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the kernel did not come
            with connection:
                if SYSTEM != "linux" or peer_of(connection) == pid:
                    send_state(connection, self.folder, self.manifest)
                    return


Origin = Callable[[], Restorable | None]
"""Return the newest stored state of a kernel; None when there is none."""
