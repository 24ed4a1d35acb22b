"""The state of a kernel at one moment: kernels start from it, or it is stored."""

from __future__ import annotations

import signal
import socket
from contextlib import suppress
from dataclasses import dataclass

from taskweaver.ces.common import PluginCode
from taskweaver.ces.process.footprint import Footprint, footprint
from taskweaver.ces.state.folder import StateFolder
from taskweaver.ces.state.transfer import Stored, receive_state
from taskweaver.ces.template.template import Handshake, Template


@dataclass(frozen=True, slots=True)
class KernelSnapshot:
    """The state of a kernel at one moment, from which others start. Close it."""

    template: Template
    plugins: dict[str, PluginCode]
    session_vars: dict[str, str]

    @property
    def footprint(self) -> Footprint:
        """The memory it takes up."""
        return footprint(self.template.pid)

    def close(self) -> None:
        """Discard it; kernels that started from it live on."""
        self.template.close()


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
