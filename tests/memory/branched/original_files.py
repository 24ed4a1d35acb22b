"""Databases in the schema of the original, and what the original showed of them."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA = """
CREATE TABLE branches (id TEXT PRIMARY KEY, parent_id TEXT, node_uid TEXT, created_at REAL);
CREATE TABLE core_kv (branch_id TEXT, key TEXT, value TEXT, updated_at REAL,
    PRIMARY KEY (branch_id, key));
CREATE TABLE core_meta (branch_id TEXT, key TEXT, importance INTEGER, ttl TEXT, updated_at REAL,
    PRIMARY KEY (branch_id, key));
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, branch_id TEXT, kind TEXT, text TEXT,
    tags TEXT, created_at REAL, task_hint TEXT, memory_size INTEGER);
CREATE INDEX idx_events_branch ON events (branch_id);
CREATE TABLE archival (id INTEGER PRIMARY KEY AUTOINCREMENT, branch_id TEXT, text TEXT,
    tags TEXT, created_at REAL);
CREATE INDEX idx_archival_branch ON archival (branch_id);
CREATE VIRTUAL TABLE archival_fts USING fts5 (text, tags, branch_id);
CREATE TABLE inherited_exclusions (branch_id TEXT, excluded_event_id INTEGER, excluded_at REAL,
    PRIMARY KEY (branch_id, excluded_event_id));
CREATE INDEX idx_inherited_exclusions_branch ON inherited_exclusions (branch_id);
CREATE TABLE inherited_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, branch_id TEXT,
    summary_text TEXT, summarized_event_ids TEXT, kind TEXT, created_at REAL);
CREATE INDEX idx_inherited_summaries_branch ON inherited_summaries (branch_id);
"""
WINDOW = 5
_KINDS = ("step", "run_failed", "node_result")
_Event = tuple[int, str, str, str]
"""Id, branch, kind, text."""


def make_file(path: Path, *statements: str) -> None:
    """Make an empty database of the original, and run statements in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA)
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@dataclass
class OriginalTree:
    """A database of the original that is written as the original writes, with all its rows."""

    path: Path
    seed: int
    parents: dict[str, str | None] = field(default_factory=dict)
    core: dict[tuple[str, str], str] = field(default_factory=dict)
    events: list[_Event] = field(default_factory=list)
    archival: dict[int, tuple[str, str]] = field(default_factory=dict)
    excluded: dict[str, set[int]] = field(default_factory=dict)
    summaries: dict[str, list[str]] = field(default_factory=dict)

    def fill(self, levels: int, width: int, rows: int) -> None:
        """Grow a tree: every branch writes, inherits and consolidates, in an order by chance."""
        chance = random.Random(self.seed)
        make_file(self.path)
        with closing(sqlite3.connect(self.path)) as connection:
            self._connection, self._time = connection, 0.0
            self._branch("root", None)
            level = ["root"]
            for depth in range(1, levels):
                level = [
                    self._branch(f"n{depth}-{place}-{self.seed}", chance.choice(level))
                    for place in range(width)
                ]
            for _ in range(rows):
                self._write(chance, chance.choice([*self.parents]))
            connection.commit()

    def _tick(self) -> float:
        self._time += 0.25
        return self._time

    def _run(self, statement: str, *row: object) -> int:
        marks = ", ".join("?" * len(row))
        cursor = self._connection.execute(f"{statement} VALUES ({marks})", row)
        return int(cursor.lastrowid or 0)

    def _branch(self, name: str, parent: str | None) -> str:
        self._run("INSERT INTO branches", name, parent, f"uid-{name}", self._tick())
        self.parents[name] = parent
        return name

    def _write(self, chance: random.Random, branch: str) -> None:
        number = len(self.events) + len(self.archival)
        match chance.randrange(5):
            case 0:
                key = f"key{chance.randrange(3)}"
                self.core[branch, key] = f"value {number} of {branch}"
                row = (branch, key, self.core[branch, key], self._tick())
                self._run("INSERT OR REPLACE INTO core_kv", *row)
                meta = (chance.randint(1, 5), chance.choice([None, "2h"]), self._tick())
                self._run("INSERT OR REPLACE INTO core_meta", branch, key, *meta)
            case 1:
                text = f"record {number} of {branch}"
                columns = "INSERT INTO archival (branch_id, text, tags, created_at)"
                id_ = self._run(columns, branch, text, '["T"]', self._tick())
                self.archival[id_] = branch, text
            case 4 if self.parents[branch] is not None:
                self._consolidate(branch)
            case _:
                kind, text = chance.choice(_KINDS), f"event {number} of {branch}"
                columns = "INSERT INTO events (branch_id, kind, text, tags, created_at)"
                id_ = self._run(columns, branch, kind, text, '["RECALL_EVENT"]', self._tick())
                self.events.append((id_, branch, kind, text))

    def _consolidate(self, branch: str) -> None:
        """Sum up inherited events but the newest, a summary for each kind, as the original did."""
        hidden = self.excluded.setdefault(branch, set())
        line = self.chain(branch)[1:]
        seen = [event for event in self.events if event[1] in line and event[0] not in hidden]
        for kind in _KINDS:
            ids = [event[0] for event in seen[:-WINDOW] if event[2] == kind]
            if not ids:
                continue
            text = f"[Inherited Summary - {kind}] of {branch} at {self._time}\nfirst {ids[0]}"
            self._run(
                "INSERT INTO inherited_summaries"
                " (branch_id, summary_text, summarized_event_ids, kind, created_at)",
                *(branch, text, json.dumps(ids), kind, self._tick()),
            )
            self.summaries.setdefault(branch, []).insert(0, text)
            for id_ in ids:
                self._run("INSERT INTO inherited_exclusions", branch, id_, self._tick())
                hidden.add(id_)

    def chain(self, branch: str) -> list[str]:
        """Return a branch and its ancestors."""
        found: list[str] = []
        place: str | None = branch
        while place is not None:
            found.append(place)
            place = self.parents[place]
        return found

    def shown_events(self, branch: str) -> list[str]:
        """Return the events of a prompt of the original, newest first."""
        line, hidden = self.chain(branch), self.excluded.get(branch, set())
        seen = [event for event in self.events if event[1] in line and event[0] not in hidden]
        return [f"[{kind}] {text}" for _, _, kind, text in reversed(seen[-WINDOW:])]
