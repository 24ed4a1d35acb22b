"""Owner of the kernels that an application has on another machine."""

from __future__ import annotations

import threading
from pathlib import Path

from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.cell_tables import CellTables
from taskweaver.ces.common import Snapshot
from taskweaver.ces.errors import ForkRefused, KernelStartFailed
from taskweaver.ces.remote.client import NO_FORK, RemoteKernel
from taskweaver.ces.remote.connection import KernelServer
from taskweaver.utils.system.forks import bind_to_process


class RemoteManager:
    """Owner of remote kernels, as a `Manager`.

    Attributes:
        tables: Empty: tables that cells end with stay at the server.
        start_problem: Empty: the server starts the kernels.
        bounds: None: the server sets them.
    """

    start_problem = ""
    bounds: tuple[ResourceBound, ...] = ()

    def __init__(self, url: str, token: str, env_dir: Path) -> None:
        """Prepare to use the server at an address.

        Args:
            url: The address.
            token: Token for it.
            env_dir: Where sessions without a folder of their own keep their files.

        Raises:
            KernelStartFailed: If the address is none.
        """
        self.tables = CellTables()
        self._server = KernelServer(url, token)
        self._env_dir = env_dir
        self._lock = threading.Lock()
        self._clients: dict[str, RemoteKernel] = {}
        bind_to_process(self)

    def initialize(self) -> None:
        """Do nothing: a connection is made when it is needed."""

    def clean_up(self) -> None:
        """Stop every kernel, and end the connections."""
        with self._lock:
            clients = list(self._clients.values())
        for client in clients:
            client.stop()
        self._server.close()

    def get_session_client(
        self,
        session_id: str,
        env_id: str | None = None,
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
        *,
        devices: tuple[Path, ...] = (),
    ) -> RemoteKernel:
        """Return the client of a session, made on first call; see `Manager`.

        Raises:
            KernelStartFailed: If there can be no working directory here.
        """
        del env_id, devices
        kept = self._clients.get(session_id)
        if kept is not None and kept.state != "stopped":
            return kept
        folder = Path(session_dir or self._env_dir / "sessions" / session_id)
        where = Path(cwd) if cwd else folder / "cwd"
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise KernelStartFailed(f"{where} cannot be used: {error.strerror}.") from error
        client = RemoteKernel(self._server, session_id, where.resolve(), self._release)
        with self._lock:
            self._clients[session_id] = client
        return client

    def fork_session_client(
        self,
        snapshot: Snapshot,
        session_id: str,
        env_id: str | None = None,
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
    ) -> RemoteKernel:
        """Refuse: remote kernels are not forked."""
        del snapshot, session_id, env_id, session_dir, cwd
        raise ForkRefused(NO_FORK)

    def _release(self, client: RemoteKernel) -> None:
        """Forget a kernel that was stopped."""
        with self._lock:
            if self._clients.get(client.session_id) is client:
                del self._clients[client.session_id]

    def get_kernel_mode(self) -> str:
        """Return how kernels run."""
        return "remote"
