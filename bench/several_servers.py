"""A message to servers that share a PostgreSQL database, beside one with SQLite files.

A server with files and two with a database are asked in turn, by a client in the same process; the
model answers at once. The database is that of `TASKWEAVER_BENCH_DATABASE`, which is filled with
tables; without it only the server with files is measured. Run with
``TASKWEAVER_BENCH_DATABASE=postgresql://... python -m bench several_servers``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import httpx2

from bench.agent_api import answer_at_once
from bench.common import served, sized
from bench.load.asking import API, ask_over_api
from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.agent_api.door import AgentApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.accounts import Accounts
from taskweaver.server.agents.index import AgentIndex, AgentIndexes, FileIndexes
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.operations import Door

DATABASE = "TASKWEAVER_BENCH_DATABASE"
MESSAGES = sized(200, 3)
CHANGES = sized(500, 3)


def _address() -> PostgresAddress | None:
    url = os.environ.get(DATABASE, "")
    return PostgresAddress(url) if url else None


def _indexes(address: PostgresAddress | None) -> AgentIndexes:
    if address is None:
        return FileIndexes()
    from taskweaver.server.agents.index import SharedIndexes

    return SharedIndexes(address, TelemetryLogger())


def _accounts(address: PostgresAddress, _file: Path) -> Accounts:
    from taskweaver.server.databases.postgresql import PostgresDatabase

    return Accounts(PostgresDatabase(address))


@contextmanager
def _server(folder: Path, address: PostgresAddress | None) -> Iterator[tuple[str, str]]:
    """Give address and token of a server with an application of its own."""
    folder.mkdir()
    config = {"execution.sandbox": "none", "workspace.workspace_path": str(folder / "work")}
    with TaskWeaverApp(folder, config, model=answer_at_once, trust=True) as app:

        def doors(accounts: Accounts) -> list[Door]:
            sessions = AgentSessions(app, accounts, folder / "agents", _indexes(address))
            return [AgentApi(sessions)]

        opened = partial(_accounts, address) if address else Accounts.at
        with served(folder, doors, opened) as found:
            yield found


def _ask_in_turn(folder: Path, address: PostgresAddress | None) -> dict[str, float]:
    """Return medians of wall and CPU seconds of a message at each kind of server."""
    kinds = ["sqlite", *(["postgresql"] * 2 if address else [])]
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        asked = []
        for number, kind in enumerate(kinds):
            place = address if kind == "postgresql" else None
            url, token = stack.enter_context(_server(folder / str(number), place))
            client = httpx2.Client(base_url=url, headers={"X-API-Key": token}, timeout=100)
            http = stack.enter_context(client)
            session = f"{API}/{http.post(API, json={}).json()['session_id']}"
            asked.append((kind, http, session))
        for number in range(-3, MESSAGES):
            for kind, http, session in asked:
                wall, cpu = perf_counter(), process_time()
                ask_over_api(http, session)
                if number >= 0:
                    times.setdefault(f"{kind}_message", []).append(perf_counter() - wall)
                    times.setdefault(f"{kind}_message_cpu", []).append(process_time() - cpu)
    return {name: statistics.median(values) for name, values in times.items()}


def _change(index: AgentIndex) -> float:
    """Return the median of seconds of a change of an index."""
    found = []
    for number in range(CHANGES):
        begin = perf_counter()
        index.rename_session("s", str(number))
        found.append(perf_counter() - begin)
    return statistics.median(found)


def run() -> dict[str, float]:
    """Return medians of seconds of a message, and of a change of the index."""
    address = _address()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = _ask_in_turn(folder, address)
        for kind, place in {"sqlite": None, "postgresql": address}.items():
            if kind == "sqlite" or place is not None:
                (folder / "user").mkdir(exist_ok=True)
                with closing(_indexes(place)) as indexes:
                    figures[f"{kind}_change"] = _change(indexes.of("bench", folder / "user"))
    return figures


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    for kind in ("sqlite", "postgresql"):
        if f"{kind}_message" not in figures:
            print(f"{kind:<12}not measured: set {DATABASE}")
            continue
        wall, cpu = figures[f"{kind}_message"] * 1e3, figures[f"{kind}_message_cpu"] * 1e3
        print(
            f"{kind:<12}{wall:>8.2f} ms{cpu:>8.2f} ms of CPU a message,"
            f" {figures[f'{kind}_change'] * 1e3:.2f} ms a change of the index"
        )


if __name__ == "__main__":
    show(run())
