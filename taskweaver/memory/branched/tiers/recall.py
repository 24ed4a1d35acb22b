"""Recall memory: the latest events, and digests of the older ones.

Events are added, repeated, hidden; never changed. A digest sums up all events of a view up to a
row; a descendant goes on from the digest of its ancestor.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from typing import Any

from taskweaver.memory.branched import values
from taskweaver.memory.branched.errors import InvalidUpdate, RecordNotVisible
from taskweaver.memory.branched.storage.connections import SAID, Writer
from taskweaver.memory.branched.storage.schema import EVENTS
from taskweaver.memory.branched.tiers.archival import Archival
from taskweaver.memory.branched.tiers.branches import Branches, BranchView, newest_first
from taskweaver.memory.branched.tiers.indexing import last
from taskweaver.memory.branched.types import FOREVER, Branch, Digest, Event, Segment
from taskweaver.memory.branched.values import checked_data, checked_tags, checked_text, dump
from taskweaver.utils.retrieval import expression, query_terms, score_of, shares

Row = tuple[Any, ...]
"""A row of `events`: `NUMBERS`, or all of `COLUMNS`."""
NUMBERS = "seq, repeats"
COLUMNS = f"{NUMBERS}, branch_id, kind, text, tags, data, created_at"
_DIGEST_COLUMNS = "seq, branch_id, subject, up_to_seq, count, text, created_at"
_SUBJECT = "recall"
TEXTS = ("summary", "content", "text")
"""Fields of an event that mean its text; the first one with a value counts."""
_OWN = {"kind", "tags", "branch_id", *TEXTS}
_MARKS = ("run_id", "node_id", "phase")
_LOOK_BACK = 20
_STEPS = 2
"""Steps of the scores of events; within a step the newest goes first."""


@dataclass
class Recall:
    """The recall memory of all branches."""

    _branches: Branches
    _archival: Archival
    _has_index: bool

    def append(self, writer: Writer, branch_id: str, event: object) -> int:
        """Add an event and return the number.

        ``summary``, ``content`` and ``text`` mean the same. Other fields are kept as data. An
        event with the kind, text and tags of a recent one of the branch is counted as its
        repetition.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            InvalidUpdate: If the event is malformed.
        """
        if not isinstance(event, Mapping):
            raise InvalidUpdate("recall", "must be an object with `kind` and `content`")
        branch = self._branches.writable(writer, branch_id)
        kind = values.name("recall.kind", event.get("kind") or "event")
        text = checked_text("recall.content", text_in(event))
        rest = {key: value for key, value in event.items() if key not in _OWN}
        data = dump(checked_data("recall", rest)) if rest else "{}"
        marks = checked_tags("recall.tags", event.get("tags"))
        tags = dump(_tags(rest, kind, marks)) if rest or marks else _plain_tags(kind)
        origin = self._same(writer, branch, (kind, text, tags))
        self._branches.countdown.appended(branch, branch_id)
        return writer.insert(
            "events",
            branch_id=branch.number,
            kind=kind,
            text=text if origin is None else "",
            tags=tags if origin is None else "[]",
            data=data,
            repeats=origin,
            created_at=writer.now,
        )

    def _same(self, writer: Writer, branch: Branch, said: tuple[str, str, str]) -> int | None:
        """Find a recent event of the branch itself that says the same and is not hidden.

        The file is asked only if the hash of a recent event is that of `said`, which is added.
        """
        key = (SAID, branch.number)
        recent: deque[int] | None = writer.known.rows.get(key)
        if recent is None:
            rows = _recent(writer.connection, branch)
            recent = deque(hash(row[1:]) for row in reversed(rows))
            writer.known.rows[key] = recent
        is_likely = hash(said) in recent
        recent.append(hash(said))
        if len(recent) > _LOOK_BACK:
            recent.popleft()
        rows = _recent(writer.connection, branch) if is_likely else []
        found = next((row[0] for row in rows if row[1:] == said), None)
        if found is None or found in self._hidden(BranchView(writer.connection, branch)):
            return None
        return int(found)

    def beyond(self, view: BranchView, digest: Digest | None, *, inherited_only: bool) -> list[Row]:
        """Return the occurrences in view that a digest does not cover, newest first.

        The rows are without their tags and data, which no summary shows.
        """
        rows = self._rows(view, digest.up_to if digest else 0)
        if inherited_only:
            rows = (row for row in rows if row[0] <= view.branch.fork_seq)
        return [(*row[:5], "[]", "{}", row[7]) for row in rows]

    def visible(
        self, view: BranchView, limit: int | None = None, *, after: Digest | None = None
    ) -> list[Event]:
        """Return the newest events in view, newest first, events covered by a digest included.

        Args:
            view: The view.
            limit: Number of events; None for all.
            after: A digest; events that it covers are left out.
        """
        return grouped(view.connection, self._rows(view, after.up_to if after else 0), limit)

    def count(self, view: BranchView, *, most: int) -> int:
        """Return how many occurrences no digest covers, counting no further than `most`."""
        digest = self.digest(view)
        rows = self._rows(view, digest.up_to if digest else 0, NUMBERS)
        return sum(1 for _ in zip(range(most), rows, strict=False))

    def occurrences(self, view: BranchView, event_id: object) -> list[Event]:
        """Return each time an event happened that is in view, newest first, with its own data.

        Args:
            view: The view.
            event_id: Number of any of its occurrences.

        Raises:
            RecordNotVisible: If the event is not in view.
        """
        number = values.whole("event_id", event_id)
        origin = _origin(view.connection, number)
        rows = self._rows(view) if origin else ()
        found = [row for row in rows if (row[1] or row[0]) == origin[1]]
        if not found:
            raise _unseen(view.branch, number)
        return [only for row in found for only in grouped(view.connection, [row])]

    def search(self, view: BranchView, query: object, k: int) -> list[Event]:
        """Return at most `k` events in view that suit a query, best first, of equals the newest.

        An empty query returns the newest.

        Raises:
            InvalidUpdate: If the query is no text.
        """
        wanted = query_terms(checked_text("query", query or "", may_be_empty=True))
        if k <= 0 or not wanted.words:
            return self.visible(view, k) if k > 0 else []
        connection, end, scores = view.connection, 0, dict[int, float]()
        if self._has_index:
            end = last(connection, EVENTS)
            rows = connection.execute(
                f"SELECT rowid, {score_of(EVENTS)} FROM {EVENTS} WHERE {EVENTS} MATCH ?",
                (expression(wanted),),
            )
            scores = dict(rows.fetchall())
        found = []
        best = max(scores.values(), default=0.0) or 1.0
        for row, count in _gathered(connection, self._rows(view)):
            origin, score = row[1] or row[0], 1.0
            if origin <= end:
                score = scores.get(origin, 0.0) / best
            if score and shares(wanted, f"{row[3]} {row[4]} {row[5]}"):
                found.append((round(score * _STEPS), _event(row, count)))
        return [event for _, event in nlargest(k, found, key=lambda pair: pair[0])]

    def evict(
        self,
        writer: Writer,
        branch_id: str,
        *,
        ids: Sequence[object] = (),
        kind: str | None = None,
        oldest: int = 0,
    ) -> int:
        """Move events to archival memory, word for word, and hide the events from the branch.

        Args:
            writer: The transaction.
            branch_id: The branch; others see the events as before.
            ids: Numbers of events in view.
            kind: All events in view of this kind that no digest covers.
            oldest: This many of the oldest that no digest covers.

        Returns:
            How many were moved.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            RecordNotVisible: If the branch does not see one of `ids`.
        """
        branch = self._branches.writable(writer, branch_id)
        view = BranchView(writer.connection, branch)
        window = self.visible(view, after=self.digest(view))
        chosen = {event.seq: event for event in window if kind is not None and event.kind == kind}
        chosen |= {event.seq: event for event in window[len(window) - oldest :] if oldest > 0}
        if ids:
            seen = {event.seq: event for event in self.visible(view)}
            for id_ in ids:
                number = values.whole("recall_evict.ids", id_)
                if number not in seen:
                    raise _unseen(branch, number)
                chosen[number] = seen[number]
        for event in chosen.values():
            self._archive(writer, view, event)
        return len(chosen)

    def delete(self, writer: Writer, branch_id: str, event_id: object) -> int:
        """Hide an event, with the repetitions, from a branch and the future descendants.

        It is not moved to archival memory; ancestors and siblings see it as before.

        Returns:
            The number of the event.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            RecordNotVisible: If the branch does not see the event.
            InvalidUpdate: If the number is none.
        """
        branch = self._branches.writable(writer, branch_id)
        view = BranchView(writer.connection, branch)
        number = values.whole("recall_delete", event_id)
        ends = dict(self._branches.path(view, "events"))
        row = _origin(view.connection, number)
        is_seen = row is not None and number <= ends.get(row[0], -1)
        if not is_seen or number <= self._hidden(view).get(row[1], 0):
            raise _unseen(branch, number)
        writer.insert("exclusions", branch_id=branch.number, event_seq=row[1])
        return number

    def _archive(self, writer: Writer, view: BranchView, event: Event) -> None:
        """Move one event to archival memory."""
        times, meta = "", {"event": event.seq, "data": event.data}
        if event.count > 1:
            times = f" ({event.count} times)"
            _, *earlier = self.occurrences(view, event.seq)
            meta["earlier"] = [{"event": each.seq, "data": each.data} for each in earlier]
        self._archival.add(
            writer,
            view.branch.id,
            f"[Evicted Recall Event]\nKind: {event.kind}{times}\n\n{event.text}",
            tags=["EVICTED_RECALL", f"RECALL_{event.kind.upper()}", *event.tags],
            meta=meta,
        )
        origin = _origin(view.connection, event.seq)[1]
        writer.insert("exclusions", branch_id=view.branch.number, event_seq=origin)

    def _rows(self, view: BranchView, since: int = 0, columns: str = COLUMNS) -> Iterator[Row]:
        """Yield the occurrences of events in view that are newer than a row, newest first."""
        hidden = self._hidden(view, since)
        path = self._branches.path(view, "events")
        later = tuple(segment for segment in path if segment.up_to > since)

        def fetch(reading: sqlite3.Connection, segment: Segment) -> Iterator[Row]:
            return reading.execute(
                f"SELECT {columns} FROM events WHERE branch_id = ? AND seq <= ? AND seq > ?"
                " ORDER BY seq DESC",
                (*segment, since),
            )

        for row in newest_first(view.connection, later, fetch):
            if row[0] > hidden.get(row[1] or row[0], 0):
                yield row

    def _hidden(self, view: BranchView, since: int = 0) -> dict[int, int]:
        """Return hidden events. Occurrences newer than the number beside one are seen again."""
        hidden: dict[int, int] = {}
        for segment in self._branches.path(view, "exclusions"):
            if segment.up_to > since:
                for event, seq in view.connection.execute(
                    "SELECT event_seq, seq FROM exclusions"
                    " WHERE branch_id = ? AND seq <= ? AND seq > ?",
                    (*segment, since),
                ):
                    hidden[event] = max(seq, hidden.get(event, 0))
        return hidden

    def digest(self, view: BranchView) -> Digest | None:
        """Return the newest digest in view, if any."""
        for segment in self._branches.path(view, "digests"):
            row = view.connection.execute(
                f"SELECT {_DIGEST_COLUMNS} FROM digests WHERE branch_id = ? AND subject = ?"
                " AND seq <= ? ORDER BY seq DESC LIMIT 1",
                (segment.branch, _SUBJECT, segment.up_to),
            ).fetchone()
            if row is not None:
                return Digest(*row)
        return None

    def add_digest(
        self,
        writer: Writer,
        branch: Branch,
        before: Digest | None,
        up_to: int,
        kinds: dict[str, int],
        text: str,
    ) -> bool:
        """Add a digest that follows on another, and return False if another was faster."""
        newest = self.digest(BranchView(writer.connection, branch))
        if (newest and newest.seq) != (before and before.seq):
            return False
        writer.insert(
            "digests",
            branch_id=branch.number,
            subject=_SUBJECT,
            up_to_seq=up_to,
            count=sum(kinds.values()),
            kinds=dump(kinds),
            text=text,
            created_at=writer.now,
        )
        return True


def text_in(event: Mapping[str, Any]) -> Any:
    """Return the text of an event, under any of the names."""
    return next((event[name] for name in TEXTS if event.get(name) is not None), None)


def _tags(rest: Mapping[str, Any], kind: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags of an event: marks of the fields before the given ones."""
    marks = [f"{name}:{rest[name]}" for name in _MARKS if rest.get(name)]
    refs = rest.get("refs")
    if refs is not None and not isinstance(refs, list | tuple):
        raise InvalidUpdate("recall.refs", "must be a list")
    references = [f"ref:{checked_text('recall.refs', ref)}" for ref in refs or ()]
    tags = ["RECALL_EVENT", *marks, f"kind:{kind}", *references]
    return checked_tags("recall.tags", [*tags, *given])


@lru_cache
def _plain_tags(kind: str) -> str:
    """Return the stored tags of an event without further tags."""
    return dump(("RECALL_EVENT", f"kind:{kind}"))


def _recent(connection: sqlite3.Connection, branch: Branch) -> list[Row]:
    """Return number, kind, text and tags of the newest events a branch wrote, newest first."""
    query = (
        "SELECT o.seq, o.kind, o.text, o.tags FROM events e"
        " JOIN events o ON o.seq = coalesce(e.repeats, e.seq)"
        " WHERE e.branch_id = ? ORDER BY e.seq DESC LIMIT ?"
    )
    return connection.execute(query, (branch.number, _LOOK_BACK)).fetchall()


def _origin(connection: sqlite3.Connection, number: int) -> Any:
    """Return branch and first occurrence of the event with a number, if any."""
    query = "SELECT branch_id, coalesce(repeats, seq) FROM events WHERE seq = ?"
    return connection.execute(query, (min(number, FOREVER),)).fetchone()


def _unseen(branch: Branch, number: int) -> RecordNotVisible:
    return RecordNotVisible(f"Branch {branch.id!r} sees no event {number}.")


def grouped(
    connection: sqlite3.Connection, rows: Iterable[Row], limit: int | None = None
) -> list[Event]:
    """Gather the occurrences of each event, until one more event than `limit` shows up."""
    return [_event(row, count) for row, count in _gathered(connection, rows, limit)]


def _gathered(
    connection: sqlite3.Connection, rows: Iterable[Row], limit: int | None = None
) -> Iterator[tuple[Row, int]]:
    """Yield the newest occurrence of each event, with the text, and the number of all."""
    newest: dict[int, Row] = {}
    counts: dict[int, int] = {}
    for row in rows:
        origin = row[1] or row[0]
        if limit is not None and origin not in newest and len(newest) >= limit:
            break
        newest.setdefault(origin, row)
        counts[origin] = counts.get(origin, 0) + 1
    for origin, row in newest.items():
        if row[1] is not None:  # a repetition does not hold text and tags
            query = "SELECT text, tags FROM events WHERE seq = ?"
            row = (*row[:4], *connection.execute(query, (row[1],)).fetchone(), *row[6:])
        yield row, counts[origin]


def _event(row: Row, count: int) -> Event:
    """Return a row of `COLUMNS` as an event that happened a number of times."""
    seq, _, branch, kind, text, tags, data, created = row
    marks = () if tags == "[]" else tuple(json.loads(tags))
    fields = {} if data == "{}" else dict(json.loads(data))
    return Event(seq, branch, kind, text, marks, fields, count, created)
