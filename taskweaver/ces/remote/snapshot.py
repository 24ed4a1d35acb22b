"""States of remote kernels, kept by their server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from taskweaver.ces.common import PluginCode
from taskweaver.ces.process.footprint import Footprint
from taskweaver.ces.remote.connection import KernelServer, ServerRefused, ServerUnreachable


@dataclass(frozen=True, slots=True)
class RemoteSnapshot:
    """The state of a remote kernel at one moment. Close it.

    Attributes:
        server: The server that keeps it.
        session_path: Path of the session that it is of.
        id: Its id there.
        footprint: The memory it takes up.
        plugins: The plugins in it, by name.
        variables: Its session variables.
    """

    server: KernelServer
    session_path: str
    id: str
    footprint: Footprint
    plugins: Mapping[str, PluginCode]
    variables: Mapping[str, str]

    def close(self) -> None:
        """Discard it; one that the server has lost is discarded already."""
        with suppress(ServerRefused, ServerUnreachable):
            self.server.ask("DELETE", f"{self.session_path}/snapshots/{self.id}")
