"""A state that a forked child is about to write."""

from __future__ import annotations

import signal
import socket
from contextlib import suppress

from taskweaver.ces.state.folder import StateFolder
from taskweaver.ces.state.transfer import Stored, receive_state
from taskweaver.ces.template.template import Handshake


class StateWriter:
    """A child of a kernel that holds the kernel's state and writes it when asked. Close it."""

    def __init__(self, arrival: Handshake) -> None:
        self._arrival = arrival

    def write(self, folder: StateFolder, branch: str, round_id: str) -> Stored:
        """Store the state as that of a round's end; returns when it is on disk."""
        return receive_state(self._arrival.connection, folder, branch, round_id)

    def cancel(self) -> None:
        """Break a `write` off, from another thread."""
        with suppress(OSError):  # the child has ended
            self._arrival.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the child, whether or not it has written."""
        self._arrival.connection.close()
        self._arrival.handle.send(signal.SIGKILL)
        self._arrival.handle.close()
