"""Three stores of branches at the same durability: ours, bare SQLite, LangGraph's SQLite saver.

Each appends an event, forks a branch, writes a node (a fork and 17 writes) and reads a branch;
each write is on disk when its call returns. All use a write-ahead log.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

from taskweaver.memory.branched import BranchedMemory, BranchHandle, MemoryConfig

Durability = Literal["FULL", "NORMAL"]
KEYS, EVENTS, RECORDS = 5, 7, 5
"""The writes of a node."""
WRITES = KEYS + EVENTS + RECORDS
_BUSY_TIMEOUT_S = 30
_TABLES = """
CREATE TABLE IF NOT EXISTS branches (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, parent INTEGER, fork INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, branch TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    tags TEXT NOT NULL, data TEXT NOT NULL, repeats INTEGER, created_at REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS events_branch ON events (branch, seq);
"""


class Store(Protocol):
    """What is measured of a store."""

    def start(self) -> None:
        """Make the root, `root`."""

    def append(self, branch: str, text: str) -> None:
        """Append an event."""

    def fork(self, parent: str, name: str) -> None:
        """Fork a branch."""

    def node(self, parent: str, name: str) -> None:
        """Fork a branch, and write to it 17 times."""

    def node_at_once(self, parent: str, name: str) -> None:
        """Fork a branch, and make 17 writes to it in one transaction."""

    def read(self, branch: str) -> object:
        """Read what a prompt would show of a branch."""

    def close(self) -> None:
        """Close the file."""


class _Ours:
    """The branched memory, its operation logs off: the others keep none."""

    def __init__(self, path: Path, durability: Durability) -> None:
        config = MemoryConfig(memory_log_enabled=False, synchronous=durability)
        self._memory = BranchedMemory(path, config)
        self._handles: dict[str, BranchHandle] = {}

    def start(self) -> None:
        self._memory.create("root")

    def _handle(self, branch: str) -> BranchHandle:
        if branch not in self._handles:
            self._handles[branch] = self._memory[branch]
        return self._handles[branch]

    def append(self, branch: str, text: str) -> None:
        self._handle(branch).append({"kind": "step", "content": text})

    def fork(self, parent: str, name: str) -> None:
        self._handles[name] = self._handle(parent).fork(name)

    def node(self, parent: str, name: str) -> None:
        self.fork(parent, name)
        branch = self._handle(name)
        for n in range(KEYS):
            branch.core[f"key{n}"] = f"value {n} of {name}"
        for n in range(EVENTS):
            self.append(name, f"event {n} of {name}")
        for n in range(RECORDS):
            branch.remember(f"record {n} of {name}", tags=["PERFORMANCE"])

    def node_at_once(self, parent: str, name: str) -> None:
        self.fork(parent, name)
        self._handle(name).write(
            core={f"key{n}": f"value {n} of {name}" for n in range(KEYS)},
            event={"kind": "step", "content": f"the event of {name}"},
            records=[
                {"text": f"record {n} of {name}", "tags": ["PERFORMANCE"]}
                for n in range(WRITES - KEYS - 1)
            ],
        )

    def read(self, branch: str) -> object:
        handle = self._memory[branch]
        return dict(handle.core), handle.events(limit=20), handle.search("", k=10)

    def close(self) -> None:
        self._memory.close()


class _Bare:
    """The same rows in `sqlite3` alone: a transaction for each write, and nothing else."""

    def __init__(self, path: Path, durability: Durability) -> None:
        self._connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {durability}")
        self._connection.execute("PRAGMA wal_autocheckpoint = 2000")

    def start(self) -> None:
        self._connection.executescript(_TABLES)
        self.fork("", "root")

    def append(self, branch: str, text: str) -> None:
        row = (branch, "step", text, '["RECALL_EVENT","kind:step"]', "{}", None, time.time())
        self._insert("events (branch, kind, text, tags, data, repeats, created_at)", row)

    def _insert(self, table: str, row: tuple[object, ...]) -> None:
        marks = ", ".join("?" * len(row))
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        self._connection.execute("COMMIT")

    def fork(self, parent: str, name: str) -> None:
        self._insert("branches (name, parent, fork)", (name, len(parent), 1))

    def node(self, parent: str, name: str) -> None:
        self.fork(parent, name)
        for n in range(WRITES):
            self.append(name, f"event {n} of {name}")

    def node_at_once(self, parent: str, name: str) -> None:
        self.fork(parent, name)
        row = (name, "step", f"event of {name}", "[]", "{}", None, time.time())
        columns = "(branch, kind, text, tags, data, repeats, created_at)"
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            f"INSERT INTO events {columns} VALUES (?, ?, ?, ?, ?, ?, ?)", [row] * WRITES
        )
        self._connection.execute("COMMIT")

    def read(self, branch: str) -> object:
        return self._connection.execute(
            "SELECT * FROM events WHERE branch = ?", (branch,)
        ).fetchall()

    def close(self) -> None:
        self._connection.close()


class _LangGraph:
    """LangGraph's saver: a thread for each branch; an event is a write of its checkpoint."""

    def __init__(self, path: Path, durability: Durability) -> None:
        from langgraph.checkpoint.sqlite import SqliteSaver

        self._connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
        self.saver = SqliteSaver(self._connection)
        self.saver.setup()
        self._connection.execute(f"PRAGMA synchronous = {durability}")
        self._configs: dict[str, Any] = {}

    def start(self) -> None:
        events = [{"kind": "step", "content": f"event {n} of the root"} for n in range(20)]
        self._put({"configurable": {"thread_id": "root", "checkpoint_ns": ""}}, {"events": events})

    def _put(self, config: Any, values: dict[str, Any]) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        checkpoint = empty_checkpoint() | {"channel_values": values}
        metadata = {"source": "update", "step": 1, "parents": {}}
        put = self.saver.put(config, checkpoint, metadata, {})
        self._configs[config["configurable"]["thread_id"]] = put

    def _config(self, branch: str) -> Any:
        if branch not in self._configs:
            found = self.saver.get_tuple(
                {"configurable": {"thread_id": branch, "checkpoint_ns": ""}}
            )
            assert found is not None
            self._configs[branch] = found.config
        return self._configs[branch]

    def append(self, branch: str, text: str) -> None:
        self._write(branch, "events", {"kind": "step", "content": text})

    def _write(self, branch: str, channel: str, value: object) -> None:
        self.saver.put_writes(self._config(branch), [(channel, value)], uuid.uuid4().hex)

    def fork(self, parent: str, name: str) -> None:
        found = self.saver.get_tuple(self._config(parent))
        assert found is not None
        config = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        self._put(config, found.checkpoint["channel_values"])

    def node(self, parent: str, name: str) -> None:
        self.fork(parent, name)
        for n in range(KEYS):
            self._write(name, "core", {f"key{n}": f"value {n} of {name}"})
        for n in range(EVENTS):
            self.append(name, f"event {n} of {name}")
        for n in range(RECORDS):
            record = {"text": f"record {n} of {name}", "tags": ["PERFORMANCE"]}
            self._write(name, "archival", record)

    def node_at_once(self, parent: str, name: str) -> None:
        self.fork(parent, name)
        records = [
            ("archival", {"text": f"record {n} of {name}", "tags": ["PERFORMANCE"]})
            for n in range(WRITES)
        ]
        self.saver.put_writes(self._config(name), records, uuid.uuid4().hex)

    def read(self, branch: str) -> object:
        return self.saver.get_tuple({"configurable": {"thread_id": branch, "checkpoint_ns": ""}})

    def close(self) -> None:
        self._connection.close()


def stores() -> dict[str, Callable[[Path, Durability], Store]]:
    """Return what can be measured here; LangGraph's saver only where it is installed."""
    found: dict[str, Callable[[Path, Durability], Store]] = {"ours": _Ours, "bare": _Bare}
    if find_spec("langgraph") is not None and find_spec("langgraph.checkpoint.sqlite") is not None:
        found["langgraph"] = _LangGraph
    return found
