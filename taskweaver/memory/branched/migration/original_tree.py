"""Branches of a database of the original, parents before children.

The original checks no parent and no branch of a row. A row of a branch that does not exist was
shown where that name was asked for, and below branches that named it as their parent; so the
branch is made, below no other, and sealed.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from taskweaver.memory.branched import values
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.migration.migration_report import MigrationReport
from taskweaver.utils.sqlite_files import insert_row

NameOf = Mapping[str | None, int]
"""Numbers of the new branches by id in the original; None stands for rows without a branch."""
_NAMELESS = "rows-without-a-branch"
_MOST_CHARS = 180


@dataclass(slots=True)
class _Found:
    """A branch of the original, or one that its rows name."""

    id: str | None
    parent: str | None
    uid: str | None
    created_at: float
    is_stored: bool = True

    @property
    def rank(self) -> tuple[bool, float]:
        """Place among branches whose parents are already there."""
        return not self.is_stored, self.created_at


def text_of(value: object) -> str:
    """Return a value of the original as text; NULL is empty."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def id_of(value: object) -> str | None:
    """Return the id of a branch as the original compares it."""
    return None if value is None else text_of(value)


def copy_branches(
    connection: sqlite3.Connection,
    table: str,
    named: set[str | None],
    report: MigrationReport,
    now: float,
) -> dict[str | None, int]:
    """Copy the branches, and make those only rows name; return their numbers by former id.

    `now` is the time for branches that have none.
    """
    found = _read(connection, table, report, now)
    for id_ in sorted(named - found.keys(), key=str):
        found[id_] = _Found(id_, None, None, now, is_stored=False)
    _check_parents(found, report)
    inner = {branch.parent for branch in found.values()}
    numbers: dict[str | None, int] = {}
    names: set[str] = set()
    for branch in _in_order(found, report):
        name = _name(branch, names, report)
        names.add(name)
        row = {
            "name": name,
            "node_uid": branch.uid,
            "parent_id": None if branch.parent is None else numbers[branch.parent],
            "fork_seq": 0,
            "live": int(branch.id in inner and branch.id is not None),
            "state": "open" if branch.is_stored else "sealed",
            "created_at": branch.created_at,
        }
        numbers[branch.id] = insert_row(connection, "branches", row)
    return numbers


def _read(
    connection: sqlite3.Connection, table: str, report: MigrationReport, now: float
) -> dict[str | None, _Found]:
    found: dict[str | None, _Found] = {}
    rows = connection.execute(
        f"SELECT id, parent_id, node_uid, created_at FROM {table} ORDER BY created_at, id"
    )
    for raw, parent, uid, created in rows:
        id_ = id_of(raw)
        if id_ is None or id_ in found:
            reason = "it has no id" if id_ is None else "another row has the same id"
            report.leave("branches", id_, reason)
            continue
        time = float(created if created is not None else now)
        found[id_] = _Found(id_, id_of(parent), id_of(uid), time)
        report.take("branches", "a branch")
    return found


def _check_parents(found: Mapping[str | None, _Found], report: MigrationReport) -> None:
    """Make roots of branches whose parents do not exist."""
    for branch in found.values():
        if branch.parent is not None and (branch.parent == branch.id or branch.parent not in found):
            report.changed.append(
                f"branch {branch.id!r} is a root: its parent {branch.parent!r} does not exist"
            )
            branch.parent = None


def _in_order(found: Mapping[str | None, _Found], report: MigrationReport) -> list[_Found]:
    """Return branches with parents before children; a circle is opened at one of its branches."""
    below: dict[str | None, list[_Found]] = {}
    for branch in found.values():
        below.setdefault(branch.parent, []).append(branch)
    places = {id_: place for place, id_ in enumerate(found)}
    waiting = dict(found)
    free = [(branch.rank, places[branch.id], branch) for branch in below.get(None, [])]
    heapq.heapify(free)
    order = []
    while waiting:
        if not free:
            branch = _in_circle(waiting)
            report.changed.append(
                f"branch {branch.id!r} is a root: its parent {branch.parent!r} descends from it"
            )
            below[branch.parent].remove(branch)
            branch.parent = None
            heapq.heappush(free, (branch.rank, places[branch.id], branch))
        _, _, branch = heapq.heappop(free)
        del waiting[branch.id]
        order.append(branch)
        if branch.id is not None:
            for child in below.get(branch.id, []):
                heapq.heappush(free, (child.rank, places[child.id], child))
    return order


def _in_circle(waiting: Mapping[str | None, _Found]) -> _Found:
    """Return a branch that descends from itself; every one that waits stands below a circle."""
    branch = next(iter(waiting.values()))
    seen: set[str | None] = set()
    while branch.id not in seen:
        seen.add(branch.id)
        branch = waiting[branch.parent]
    return branch


def _name(branch: _Found, taken: set[str], report: MigrationReport) -> str:
    """Return the id of a branch in the new file, which is that of the original if it can be."""
    id_ = _NAMELESS if branch.id is None else branch.id
    name = id_
    try:
        values.name("branch_id", id_)
    except InvalidUpdate:
        shown = "".join(c if c.isprintable() else "?" for c in id_)[:_MOST_CHARS]
        name = shown.strip() or "unnamed"
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    if free != id_:
        report.changed.append(f"branch {id_!r} has the id {free!r} now")
    if not branch.is_stored:
        reason = "rows name no branch" if branch.id is None else "only rows name it"
        report.changed.append(f"branch {free!r} was made, and sealed: {reason}")
    return free
