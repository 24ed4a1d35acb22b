"""A real server for tests, in a thread, on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil
from patience import PATIENCE_S

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.accounts import AccessToken, Accounts, new_token
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import PostgresDatabase
from taskweaver.server.gate import Gate
from taskweaver.server.operations import Door
from taskweaver.server.serving import Server, address_of, listen, make_application


@dataclass
class Served:
    """A server that runs, with the token of the person who started it."""

    url: str
    token: AccessToken
    accounts: Accounts
    server: Server
    log: Path
    _clients: list[httpx2.Client] = field(default_factory=list)

    def client(self, token: str | None = None, **headers: str) -> httpx2.Client:
        """Return a client with a token; an empty one sends none."""
        chosen = self.token.text if token is None else token
        sent = {"Authorization": f"Bearer {chosen}"} if chosen else {}
        client = httpx2.Client(
            base_url=self.url, headers=sent | headers, timeout=PATIENCE_S, verify=False
        )
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def served(
    made: Sequence[Door] | Callable[[Accounts], Sequence[Door]],
    folder: Path,
    hosts: Sequence[str] = (),
    port: int = 0,
    *,
    is_behind_proxy: bool = False,
    database: PostgresAddress | None = None,
) -> Iterator[Served]:
    """Serve some doors, or those made for the accounts; they are closed at the end.

    Port 0 takes a free one. The accounts are in a file, or in a database that servers share.
    """
    is_up = threading.Event()
    log = folder / "server.log"
    file = folder / "server" / "accounts.sqlite"
    with (
        Accounts(PostgresDatabase(database)) if database else Accounts.at(file) as accounts,
        TelemetryLogger(log) as logger,
        listen("127.0.0.1", port) as listener,
    ):
        doors = made(accounts) if callable(made) else made
        token = new_token()
        app = make_application(doors, Gate(accounts, token, logger), hosts, logger)
        server = Server(app, doors, is_up.set, is_behind_proxy=is_behind_proxy)
        thread = threading.Thread(target=server.run, args=([listener],), name="server")
        thread.start()
        running = Served(address_of(listener), token, accounts, server, log)
        try:
            assert is_up.wait(PATIENCE_S)
            yield running
        finally:
            running.close()
            server.should_exit = True
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def problem(response: httpx2.Response, status: int, kind: str) -> dict[str, Any]:
    """Check that a response is a problem document of some kind; return it."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    content: dict[str, Any] = json.loads(response.text)
    assert (response.status_code, content["type"]) == (status, f"urn:taskweaver:problem:{kind}")
    assert content["status"] == status
    assert content["request_id"] == response.headers["x-request-id"]
    assert content["detail"]
    assert content["title"]
    return content


@contextmanager
def serving(
    project: Path,
    *arguments: str,
    command: str = "serve",
    program: Sequence[str] = (),
    **environment: str,
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Give the process of a server, and the line that it announces itself with.

    A program in place of `python -m taskweaver` is told to stop at the end, and may then end what
    it has started; the other one is killed. `listening` finds the server's own process.
    """
    own = (sys.executable, "-m", "taskweaver")
    whole = [*(program or own), "-p", str(project), command, "--port", "0", *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LLM_AUTO_DETECT": "false"}
    env |= environment
    with subprocess.Popen(
        whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            try:
                if program:
                    process.terminate()
                    process.wait(PATIENCE_S)
            finally:
                process.kill()


def listening(line: str) -> psutil.Process:
    """Return the process that listens at the address in a server's line."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
    assert found, line
    (pid,) = (
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == int(found[1])
    )
    assert pid is not None
    return psutil.Process(pid)
