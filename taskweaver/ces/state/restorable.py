"""A stored state that a kernel can start from."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from taskweaver.ces.claims import rows
from taskweaver.ces.process.homes import Homes
from taskweaver.ces.process.peers import peer_of
from taskweaver.ces.state.folder import StateFolder
from taskweaver.ces.state.manifest import StateManifest
from taskweaver.ces.state.transfer import STALL_S, send_state
from taskweaver.utils.system.platform import SYSTEM

_SOCKET_FILE = "state"


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
        """Serve it to a process, and not to others, which may find the address."""
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
