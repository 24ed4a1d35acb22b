"""Reading of recall memory: the rows of events in view, and the events they are occurrences of."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from taskweaver.memory.branched.tiers.branches import Branches, newest_first
from taskweaver.memory.branched.types import Branch, Event, Segment

Row = tuple[Any, ...]
"""A row of `events`: `NUMBERS`, or all of `COLUMNS`."""
NUMBERS = "seq, repeats"
COLUMNS = f"{NUMBERS}, branch_id, kind, text, tags, data, created_at"


class EventRows:
    """The rows of events that branches see."""

    def __init__(self, branches: Branches) -> None:
        self._branches = branches

    def rows(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        *,
        since: int = 0,
        at: int | None = None,
        columns: str = COLUMNS,
    ) -> Iterator[Row]:
        """Yield the occurrences of events in view, newest first.

        Args:
            connection: Open on the file.
            branch: The branch.
            since: Only rows newer than this one.
            at: See the state at this sequence number; None for the present.
            columns: `COLUMNS`, or `NUMBERS` alone.
        """
        hidden = self.hidden(connection, branch, since=since, at=at)
        path = self._branches.path(connection, branch, "events", at)
        later = tuple(segment for segment in path if segment.up_to > since)

        def fetch(reading: sqlite3.Connection, segment: Segment) -> Iterator[Row]:
            return reading.execute(
                f"SELECT {columns} FROM events WHERE branch_id = ? AND seq <= ? AND seq > ?"
                " ORDER BY seq DESC",
                (*segment, since),
            )

        for row in newest_first(connection, later, fetch):
            if row[0] > hidden.get(row[1] or row[0], 0):
                yield row

    def hidden(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        *,
        since: int = 0,
        at: int | None = None,
    ) -> dict[int, int]:
        """Return hidden events; occurrences newer than the number beside one are seen again."""
        hidden: dict[int, int] = {}
        for segment in self._branches.path(connection, branch, "exclusions", at):
            if segment.up_to > since:
                for event, seq in connection.execute(
                    "SELECT event_seq, seq FROM exclusions"
                    " WHERE branch_id = ? AND seq <= ? AND seq > ?",
                    (*segment, since),
                ):
                    hidden[event] = max(seq, hidden.get(event, 0))
        return hidden

    def with_words(
        self, connection: sqlite3.Connection, branch: Branch, words: Sequence[str]
    ) -> Iterator[Event]:
        """Yield the events in view with any of some lower-case words in kind, text or tags."""
        for row, count in _gathered(connection, self.rows(connection, branch)):
            _, _, _, kind, text, tags, *_ = row
            content = f"{kind} {text} {tags}".lower()
            if any(word in content for word in words):
                yield event(row, count)


def grouped(
    connection: sqlite3.Connection, rows: Iterable[Row], limit: int | None = None
) -> list[Event]:
    """Gather the occurrences of each event, until one more event than `limit` shows up."""
    return [event(row, count) for row, count in _gathered(connection, rows, limit)]


def _gathered(
    connection: sqlite3.Connection, rows: Iterable[Row], limit: int | None = None
) -> Iterator[tuple[Row, int]]:
    """Yield the newest occurrence of each event, with its text, and the number of all."""
    newest: dict[int, Row] = {}
    counts: dict[int, int] = {}
    for row in rows:
        origin = row[1] or row[0]
        if limit is not None and origin not in newest and len(newest) >= limit:
            break
        newest.setdefault(origin, row)
        counts[origin] = counts.get(origin, 0) + 1
    for origin, row in newest.items():
        yield _whole(connection, row), counts[origin]


def event(row: Row, count: int = 1) -> Event:
    """Return a row of `COLUMNS` as an event that happened a number of times."""
    seq, _, branch, kind, text, tags, data, created = row
    marks = () if tags == "[]" else tuple(json.loads(tags))
    fields = {} if data == "{}" else dict(json.loads(data))
    return Event(seq, branch, kind, text, marks, fields, count, created)


def _whole(connection: sqlite3.Connection, row: Row) -> Row:
    """Return a row with the text and tags of its event, which a repetition does not hold."""
    if row[1] is None:
        return row
    found = connection.execute("SELECT text, tags FROM events WHERE seq = ?", (row[1],))
    return (*row[:4], *found.fetchone(), *row[6:])
