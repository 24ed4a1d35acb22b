"""Branches: forks, their views, and their ends.

A branch sees its own rows and, of each ancestor, the rows up to the fork: a path of segments.
Fork points never change, so a path never does, and is kept. A live ancestor's later rows are
seen too.

Events in view are counted rarely: a branch with c events needs no count before threshold + 1 - c
more. A fork has the view of its parent, so it goes on from the parent's number. A number that is
too small costs one count more than needed; another process's appends make one too large, and a
consolidation late by as many events.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from heapq import merge
from typing import Any, NamedTuple, cast, get_args

from taskweaver.memory.branched.errors import BranchSealed, InvalidUpdate, UnknownBranch
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.storage.schema import row_at, time_of
from taskweaver.memory.branched.types import (
    EMPTY,
    FOREVER,
    Branch,
    BranchState,
    Moment,
    Path,
    Segment,
    Tier,
)
from taskweaver.memory.branched.values import moment, shown, whole
from taskweaver.memory.branched.values import name as checked_name

_MOST_KEPT = 8192


class Countdown:
    """The numbers of the branches of one file, for one process."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._lock = threading.Lock()
        self._left: dict[int, int] = {}
        self._due: set[str] = set()

    def appended(self, branch: Branch, branch_id: str) -> None:
        """Note an event on a branch.

        Args:
            branch: The branch.
            branch_id: The name that the caller has for it, and asks `is_due` with.
        """
        with self._lock:
            left = self._left.get(branch.number, 0) - 1
            if branch.live:  # its descendants see the event too
                self._left.clear()
            self._left[branch.number] = left
            if left <= 0:
                self._due.add(branch_id)

    def forked(self, child: int, parent: int | None) -> None:
        """Note a new branch.

        Args:
            child: Its number.
            parent: Number of the branch whose present view it starts from; `EMPTY` for a root,
                None for a branch that starts from the past.
        """
        with self._lock:
            left = self._threshold + 1 if parent == EMPTY else self._left.get(parent or EMPTY)
            if left is None:
                self._left.pop(child, None)
            else:
                self._left[child] = left

    def is_due(self, branch_id: str) -> bool:
        """Return whether the events of a branch have to be counted now, and expect the count."""
        with self._lock:
            is_due = branch_id in self._due
            self._due.discard(branch_id)
            if len(self._left) > _MOST_KEPT or len(self._due) > _MOST_KEPT:
                self._left.clear()
                self._due.clear()
            return is_due

    def counted(self, branch: Branch, left: int) -> None:
        """Note how many more events a branch takes before the next count."""
        with self._lock:
            self._left[branch.number] = left

    def forget(self) -> None:
        """Forget every number, after rows were removed or undone: a digest may have gone.

        An undone branch leaves its number to another one.
        """
        with self._lock:
            self._left.clear()


_COLUMNS = "id, name, node_uid, parent_id, fork_seq, live, state, created_at"
_KEPT_PATHS = 4096
_ABSENT = "is no branch here; `branches()` and `taskweaver memory tree` list them"
_TIERS: tuple[Tier, ...] = get_args(Tier)
_LINE = f"""
WITH RECURSIVE line (id, parent_id, fork_seq, live, depth, up_to) AS (
    SELECT id, parent_id, fork_seq, live, 0, {FOREVER} FROM branches WHERE id = ?
    UNION ALL
    SELECT b.id, b.parent_id, b.fork_seq, b.live, depth + 1, min(up_to, line.fork_seq)
    FROM branches b JOIN line ON b.id = line.parent_id
)
"""
_PATH = f"{_LINE} SELECT id, up_to, live FROM line ORDER BY depth"
_PATHS = (
    f"{_LINE} SELECT id, up_to, live, "
    + ", ".join(
        f"EXISTS (SELECT 1 FROM {tier} WHERE branch_id = line.id AND seq <= up_to)"
        for tier in _TIERS
    )
    + " FROM line ORDER BY depth"
)
_NEAR = """
WITH RECURSIVE line (id, parent_id, fork_seq, depth) AS (
    SELECT id, parent_id, fork_seq, 0 FROM branches WHERE id = ?
    UNION ALL
    SELECT b.id, b.parent_id, b.fork_seq, depth + 1
    FROM branches b JOIN line ON b.id = line.parent_id LIMIT 17
)
SELECT id, fork_seq FROM line ORDER BY depth
"""
"""A branch and its nearest ancestors: events are counted in every few branches of a line only."""
_NEVER_LIVE = ("digests", "exclusions")
"""Tiers of which later rows of a live ancestor are not seen by its descendants."""


class BranchView(NamedTuple):
    """A branch as a connection sees it, now or in the state at a row.

    Attributes:
        connection: Open on the file.
        branch: The branch.
        at: Newest row that is seen; None for the present.
        time: Time at which the ends of values are judged; None for that of the newest row.
    """

    connection: sqlite3.Connection
    branch: Branch
    at: int | None = None
    time: float | None = None


class Branches:
    """The tree of branches in a file.

    Attributes:
        countdown: When the events in view of a branch have to be counted again.
    """

    def __init__(self, database: Database, countdown: Countdown) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._paths: OrderedDict[tuple[int, Tier], Path] = OrderedDict()
        self.countdown = countdown

    def create(self, parent: str | None, name: str, **options: Any) -> Branch:
        """Make a branch in a transaction of its own (see `add`)."""
        return self._database.write(lambda writer: self.add(writer, parent, name, **options))

    def add(
        self,
        writer: Writer,
        parent: str | None,
        name: str = "",
        *,
        node_uid: str | None = None,
        at: Moment | None = None,
        live: bool = False,
    ) -> Branch:
        """Make a branch with the view of the parent, now or in the past.

        Args:
            writer: The transaction.
            parent: Id of the parent; None makes a root.
            name: Id of the branch; empty for a random one.
            node_uid: Another name.
            at: State of the parent that it sees; None for the present.
            live: Whether its later writes are seen by its descendants.

        Raises:
            UnknownBranch: If the parent does not exist.
            BranchSealed: If the parent was pruned.
            InvalidUpdate: If the id is taken, or `at` lies in the future.
        """
        name = name or secrets.token_hex(16)
        checked_name("branch_id", name)
        if node_uid is not None:
            checked_name("branch_id", node_uid)
        above = None if parent is None else self._found(writer, parent)
        if above is not None and above.state == "pruned":
            raise BranchSealed(f"Branch {above.id!r} was pruned; fork another one.")
        now = writer.seq
        if not isinstance(live, bool):
            raise InvalidUpdate("live", f"must be true or false, not {shown(live)}")
        number = None if above is None else above.number
        at = _row(writer.connection, at, number)
        if at is not None and at > now:
            raise InvalidUpdate("at", f"must lie between 0 and {now}, not {at}")
        values = (name, node_uid, number, now if at is None else at, live, "open", writer.now)
        try:
            cursor = writer.connection.execute(
                f"INSERT INTO branches ({_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values
            )
        except sqlite3.IntegrityError as error:
            raise InvalidUpdate("branch_id", f"{name!r} is taken") from error
        made = _branch((cursor.lastrowid, *values))
        writer.known.rows["branch", name] = made
        start = EMPTY if number is None else number if at is None else None
        self.countdown.forked(made.number, start)
        writer.known.forked(made.number, start)
        return made

    def find(self, connection: sqlite3.Connection, branch_id: object) -> Branch:
        """Return the branch with an id, or with a node uid.

        Raises:
            UnknownBranch: If there is none, or the uid is that of several.
        """
        if not isinstance(branch_id, str) or not branch_id.isprintable():
            raise UnknownBranch(f"{shown(branch_id)} {_ABSENT}.")
        row = connection.execute(
            f"SELECT {_COLUMNS} FROM branches WHERE name = ?", (branch_id,)
        ).fetchone()
        query = f"SELECT {_COLUMNS} FROM branches WHERE node_uid = ?"
        rows = [row] if row else connection.execute(query, (branch_id,)).fetchall()
        if len(rows) != 1:
            problem = f"is the node of {len(rows)} branches" if rows else _ABSENT
            raise UnknownBranch(f"{shown(branch_id)} {problem}.")
        return _branch(rows[0])

    def writable(self, writer: Writer, branch_id: str) -> Branch:
        """Return a branch that takes writes.

        Raises:
            UnknownBranch: If there is none.
            BranchSealed: If it takes none.
        """
        branch = self._found(writer, branch_id)
        if branch.state != "open":
            advice = "fork it to write on" if branch.state == "sealed" else "fork another one"
            raise BranchSealed(f"Branch {branch.id!r} is {branch.state}; {advice}.")
        return branch

    def insert(self, branch_id: str, table: str, **values: object) -> int:
        """Add a row to a branch in a transaction of its own, and return the number.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """

        def act(writer: Writer) -> int:
            branch = self.writable(writer, branch_id)
            return writer.insert(table, branch_id=branch.number, **values, created_at=writer.now)

        return self._database.write(act)

    def _found(self, writer: Writer, branch_id: str) -> Branch:
        """Return a branch as `find` does, from the file only when it may have changed."""
        is_name = isinstance(branch_id, str)
        known = writer.known.rows.get(("branch", branch_id)) if is_name else None
        if known is not None:
            return cast("Branch", known)
        branch = self.find(writer.connection, branch_id)
        writer.known.rows["branch", branch.id] = branch
        return branch

    def all(self, connection: sqlite3.Connection) -> list[Branch]:
        """Return every branch, parents before children."""
        rows = connection.execute(f"SELECT {_COLUMNS} FROM branches ORDER BY id")
        return [_branch(row) for row in rows]

    def names(self, connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, str]:
        """Return the ids of branches by number."""
        query = "SELECT id, name FROM branches WHERE id IN (SELECT value FROM json_each(?))"
        return dict(connection.execute(query, (json.dumps(sorted(set(numbers))),)).fetchall())

    def root(self, connection: sqlite3.Connection) -> Branch | None:
        """Return the oldest root, if any."""
        row = connection.execute(
            f"SELECT {_COLUMNS} FROM branches WHERE parent_id IS NULL ORDER BY id LIMIT 1"
        ).fetchone()
        return _branch(row) if row else None

    def set_state(self, writer: Writer, branch: Branch, state: BranchState) -> None:
        """Seal, prune or open a branch."""
        writer.known.forget()
        query = "UPDATE branches SET state = ? WHERE id = ?"
        writer.connection.execute(query, (state, branch.number))

    def set_node_uid(self, writer: Writer, branch: Branch, node_uid: str) -> None:
        """Set the second name of a branch."""
        checked_name("branch_id", node_uid)
        writer.known.forget()
        writer.connection.execute(
            "UPDATE branches SET node_uid = ? WHERE id = ?", (node_uid, branch.number)
        )

    @contextmanager
    def view(self, branch_id: object, at: Moment | None = None) -> Iterator[BranchView]:
        """Open a snapshot, and find a branch.

        Raises:
            UnknownBranch: If the branch does not exist.
        """
        with self._database.snapshot() as connection:
            time = moment("at", at) if isinstance(at, datetime) else None
            branch = self.find(connection, branch_id)
            yield BranchView(connection, branch, _row(connection, at, branch.number), time)

    def time(self, view: BranchView) -> float:
        """Return the time at which a view judges the ends of values."""
        if view.at is None:
            return self._database.clock()
        if view.time is not None:
            return view.time
        return time_of(view.connection, view.at)

    def path(self, view: BranchView, tier: Tier | None = None) -> Path:
        """Return the path of a branch, its own segment first.

        With a tier, segments without a row in it are left out.
        """
        connection, branch, at = view[:3]
        path = (
            _segments(connection.execute(_PATH, (branch.number,)), keep_live=True)
            if tier is None
            else self._tier_path(connection, branch, tier)
        )
        if at is None:
            return path
        return tuple(Segment(number, min(up_to, at)) for number, up_to in path)

    def keeps(self, number: int, tier: Tier, path: Path) -> bool:
        """Return whether this is the very path that is kept: the branch is committed, and there."""
        with self._lock:
            return self._paths.get((number, tier)) is path

    def common(self, connection: sqlite3.Connection, one: Branch, two: Branch) -> int:
        """Return the newest row both branches inherited when they parted. 0 for strangers."""
        lines = [
            _segments(connection.execute(_PATH, (branch.number,)), keep_live=False)
            for branch in (one, two)
        ]
        ends = dict(lines[0])
        return next((min(ends[number], up_to) for number, up_to in lines[1] if number in ends), 0)

    def _tier_path(self, connection: sqlite3.Connection, branch: Branch, tier: Tier) -> Path:
        key = (branch.number, tier)
        with self._lock:
            kept = self._paths.get(key)
        if kept is not None:
            return kept
        committed = self._database.reading
        query = "SELECT 1 FROM branches WHERE id = ? AND name = ?"
        if committed.execute(query, (branch.number, branch.id)).fetchone() is None:
            # Made in the transaction that is open, and may be undone with it.
            return _paths(connection, branch)[tier]
        found = self._derived(committed, branch, tier)
        with self._lock:
            for name, path in found.items():
                self._paths.setdefault((branch.number, name), path)
            path = self._paths[key]
            while len(self._paths) > _KEPT_PATHS:
                self._paths.popitem(last=False)
        return path

    def _derived(
        self, connection: sqlite3.Connection, branch: Branch, tier: Tier
    ) -> dict[Tier, Path]:
        """Derive a path from a near ancestor's kept path, or find the paths of all tiers."""
        line = list(connection.execute(_NEAR, (branch.number,))) if self._paths else []
        with self._lock:
            kept = [self._paths.get((number, tier)) for number, _ in line]
        place = next((place for place, path in enumerate(kept) if path is not None), None)
        path = None if place is None else kept[place]
        if path is None:
            return _paths(connection, branch)
        for number, fork in reversed(line[:place]):
            path = self._below(connection, number, fork, tier, path)
        return {tier: path}

    def _below(
        self, connection: sqlite3.Connection, child: int, fork: int, tier: Tier, above: Path
    ) -> Path:
        """Derive a path from the parent's path, of which the first segment ends at the fork."""
        own, *rest = above
        latest = next((end for _, end in rest if end != FOREVER), 0)  # of the nearest, see `_LINE`
        if fork < latest:  # forked from the past
            cut = [Segment(n, end if end == FOREVER else min(end, fork)) for n, end in rest]
            rest = [
                segment
                for segment, former in zip(cut, rest, strict=True)
                if segment == former or _has_rows(connection, tier, segment)
            ]
        query = "SELECT 1 FROM branches WHERE id = ? AND live"
        live = connection.execute(query, (own.branch,)).fetchone()
        is_live = live is not None and tier not in _NEVER_LIVE
        parent = Segment(own.branch, FOREVER if is_live else fork)
        if is_live or _has_rows(connection, tier, parent):
            rest.insert(0, parent)
        return (Segment(child, FOREVER), *rest)

    def forget(self) -> None:
        """Forget all that was kept, after rows or branches were removed."""
        with self._lock:
            self._paths.clear()
        self.countdown.forget()


def split(path: Path) -> tuple[list[Segment], list[Segment]]:
    """Return the segments of live ancestors, and the others, which follow each other in time."""
    # The own segment reaches as far as the look does; so does a live ancestor's, and no other's
    # rows can come after it.
    live = [segment for segment in path[1:] if segment.up_to == path[0].up_to]
    return live, [segment for segment in path if segment not in live]


def newest_first(
    connection: sqlite3.Connection,
    path: Path,
    fetch: Callable[[sqlite3.Connection, Segment], Iterator[tuple[Any, ...]]],
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a path, newest first, reading no further than is asked for.

    Segments follow each other in time, so they are walked one after another; only a live
    ancestor's rows can lie between others', and are merged in.

    Args:
        connection: Open on the file.
        path: The segments.
        fetch: Yields the rows of one segment, newest first, the sequence number in front.
    """
    live, rest = split(path)

    def walk() -> Iterator[tuple[Any, ...]]:
        for segment in rest:
            for row in fetch(connection, segment):  # noqa: UP028 - it would close the cursor, late
                yield row

    if not live:
        yield from walk()
        return
    streams = [walk(), *(fetch(connection, segment) for segment in live)]
    yield from merge(*streams, key=lambda row: -row[0])


def _row(connection: sqlite3.Connection, at: Moment | None, branch: int | None) -> int | None:
    """Return the newest row of a state of a branch; None for the present."""
    if not isinstance(at, datetime):
        return None if at is None else whole("at", at)
    return row_at(connection, moment("at", at) or 0.0, branch)


def _segments(rows: Iterable[tuple[int, int, int]], *, keep_live: bool) -> Path:
    return tuple(
        Segment(number, FOREVER if live and keep_live else up_to) for number, up_to, live in rows
    )


def _paths(connection: sqlite3.Connection, branch: Branch) -> dict[Tier, Path]:
    """Return the path of each tier, in one query.

    Ancestors without a row are left out; none can appear in a stretch of the past.
    """
    rows = connection.execute(_PATHS, (branch.number,)).fetchall()
    found: dict[Tier, Path] = {}
    for column, tier in enumerate(_TIERS, start=3):
        keep_live = tier not in _NEVER_LIVE
        above = [row[:3] for row in rows[1:] if row[column] or (row[2] and keep_live)]
        found[tier] = _segments([*(row[:3] for row in rows[:1]), *above], keep_live=keep_live)
    return found


def _has_rows(connection: sqlite3.Connection, tier: Tier, segment: Segment) -> bool:
    query = f"SELECT 1 FROM {tier} WHERE branch_id = ? AND seq <= ? LIMIT 1"
    return connection.execute(query, segment).fetchone() is not None


def _branch(row: tuple[Any, ...]) -> Branch:
    number, name, uid, parent, fork_seq, live, state, created = row
    return Branch(number, name, uid, parent, fork_seq, bool(live), state, created)
