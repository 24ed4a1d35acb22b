"""Archival memory: records with tags. A new version overlays a record from its branch on."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import InvalidUpdate, RecordNotVisible
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.tiers.branches import Branches, BranchView, newest_first
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.types import FOREVER, Branch, Record, Segment
from taskweaver.memory.branched.values import (
    checked_data,
    checked_tags,
    checked_text,
    dump,
    moment,
    shown,
)

Content = tuple[str, tuple[str, ...]]
"""Text and tags of a record."""
_Row = tuple[str, str, str]
"""Text, tags and meta of a version, as they are stored."""
_Times = tuple[float | None, float | None, int | None]
"""Beginning and end of a version, and the record that replaced it."""
COLUMNS = "seq, branch_id, record, text, tags, meta, created_at, valid_from, valid_to, replaced_by"
_AT_FIRST, _MOST_AT_ONCE = 8, 256
"""Records whose versions are looked up in the first query, and, doubled each time, at most."""

_SAME = """
SELECT a.record, a.meta FROM archival a
WHERE a.branch_id = ? AND a.text_hash = ? AND a.text = ? AND a.tags = ? AND a.is_deleted = 0
AND a.valid_from IS ? AND a.valid_to IS ? AND NOT EXISTS (
    SELECT 1 FROM archival later
    WHERE later.record = a.record AND later.branch_id = a.branch_id AND later.seq > a.seq
) LIMIT 1
"""


@dataclass
class Archival:
    """The archival memory of all branches."""

    _branches: Branches
    _config: MemoryConfig
    _compressor: Compressor

    def prepare(self, text: object, context: Callable[[], str]) -> str:
        """Check and shorten a text, before a transaction is open.

        Args:
            text: The text.
            context: Returns the subject of the work; asked only when the text is too long.

        Raises:
            InvalidUpdate: If it is no text, or empty.
        """
        checked = checked_text("archival.text", text)
        most = self._config.archival_max_chars
        if len(checked) <= most:
            return checked
        return self._compressor.compress(checked, most, "archival entry", context=context())

    def add(  # noqa: PLR0913 - each part is a name of its own
        self,
        writer: Writer,
        branch_id: str,
        text: object,
        *,
        tags: object = (),
        meta: object = None,
        replaces: object = (),
        valid_from: object = None,
        valid_to: object = None,
    ) -> int:
        """Add a record and return the id.

        A text with tags that the branch itself keeps, in this form, is not added again: it stays
        one record, whose meta takes up the fields of the new one.

        Args:
            writer: The transaction.
            branch_id: The branch.
            text: The text.
            tags: Tags.
            meta: Further fields.
            replaces: Ids of records that end when this one begins: they are closed on the branch,
                ancestors and siblings keep theirs.
            valid_from: When the record begins to hold; None for now.
            valid_to: When it ends to hold; None for no end.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            RecordNotVisible: If the branch does not see a record that is replaced.
            InvalidUpdate: If an argument is malformed.
        """
        branch = self._branches.writable(writer, branch_id)
        kept = self._fit(checked_text("archival.text", text))
        content = (kept, dump(checked_tags("archival.tags", tags)))
        extra = checked_data("archival.meta", meta)
        start, end = _span(valid_from, valid_to)
        asked = (branch.number, text_hash(kept), *content, start, end)
        same = writer.connection.execute(_SAME, asked).fetchone()
        number = same and int(same[0])
        if replaces:
            number = self._close(writer, branch, replaces, number, start)
        if same is None:
            row = (*content, dump(extra) if extra else "{}")
            return self._insert(writer, branch, row, None, (start, end, None))
        before = json.loads(same[1])
        if before | extra != before:
            row = (*content, dump(before | extra))
            self._insert(writer, branch, row, number, (start, end, None))
        return int(same[0])

    def _close(
        self, writer: Writer, branch: Branch, ids: object, by: int | None, end: float | None
    ) -> int:
        """Close records, at once without an end, and return the id of their replacement.

        They are closed before their replacement is written, so that a look at any row sees one at
        most. A closed version keeps the text.

        Args:
            writer: The transaction.
            branch: The branch.
            ids: Ids of the records.
            by: Id of the replacement; None for a record that is added next.
            end: When they end.
        """
        view = BranchView(writer.connection, branch)
        each = ids if isinstance(ids, list | tuple) else [ids]
        closed = {old.id: old for old in (self.get(view, id_) for id_ in each) if old.id != by}
        by = writer.seq + len(closed) + 1 if by is None else by
        for old in closed.values():
            start = old.created_at if old.valid_from is None else old.valid_from
            row = (old.text, dump(old.tags), dump(old.meta))
            ends = [time for time in (end or writer.now, old.valid_to) if time is not None]
            times = (start, min(ends), by)
            self._insert(writer, branch, row, old.id, times)
        return by

    def update(  # noqa: PLR0913 - each part is a name of its own
        self,
        writer: Writer,
        branch_id: str,
        record_id: object,
        *,
        text: object = None,
        tags: object = None,
        meta: object = None,
        replaces: object = (),
        valid_to: object = None,
    ) -> int:
        """Overlay a record in view of a branch. Ancestors and siblings see the former version.

        Records that it `replaces` are closed from now on. One whose `valid_to` is over is closed,
        too: `closed` finds it, and views of the past.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            RecordNotVisible: If the branch does not see the record.
            InvalidUpdate: If nothing is given, or it is malformed.
        """
        branch = self._branches.writable(writer, branch_id)
        old = self.get(BranchView(writer.connection, branch), record_id)
        if not replaces and all(part is None for part in (text, tags, meta, valid_to)):
            problem = "gives neither text, tags, meta, replaces nor valid_to"
            raise InvalidUpdate("archival_update", problem)
        kept = old.text if text is None else self._fit(checked_text("archival.text", text))
        marks = old.tags if tags is None else checked_tags("archival.tags", tags)
        extra = old.meta if meta is None else checked_data("archival.meta", meta)
        start, end = _span(old.valid_from, old.valid_to if valid_to is None else valid_to)
        if replaces:
            self._close(writer, branch, replaces, old.id, None)
        times = (start, end, old.replaced_by)
        self._insert(writer, branch, (kept, dump(marks), dump(extra)), old.id, times)
        return old.id

    def delete(self, writer: Writer, branch_id: str, record_id: object) -> int:
        """Hide a record from a branch and the future descendants, and return the id.

        Ancestors and siblings keep theirs, and a look at the past finds it.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            RecordNotVisible: If the branch does not see the record.
        """
        branch = self._branches.writable(writer, branch_id)
        old = self.get(BranchView(writer.connection, branch), record_id)
        self._insert(writer, branch, ("", "[]", "{}"), old.id, is_deleted=True)
        return old.id

    def get(self, view: BranchView, record_id: object) -> Record:
        """Return the version of a record that a branch sees, also of one that begins later.

        Raises:
            RecordNotVisible: If it sees none: the record is unknown, forgotten or closed.
        """
        try:
            number = int(record_id) if isinstance(record_id, str | int) else -1
        except ValueError:
            number = -1
        if number < 0:
            raise RecordNotVisible(f"{shown(record_id)} is no record id; ids are numbers.")
        versions = view.connection.execute(
            f"SELECT {COLUMNS} FROM archival WHERE record = ?", (min(number, FOREVER),)
        )
        found, is_deleted = next(self._newest(view, map(record, versions)), (None, True))
        if found is None or is_deleted or self._is_over(view, found):
            by = found and found.replaced_by
            raise RecordNotVisible(
                f"Branch {view.branch.id!r} sees no archival record {shown(record_id)}"
                + (f", record {by} replaced it." if by else ".")
            )
        return found

    def visible(self, view: BranchView, *, tags: Sequence[str] = ()) -> Iterator[Record]:
        """Yield the records a branch sees that have all tags, newest first."""
        path = self._branches.path(view, "archival")
        seen: set[int] = set()
        rows = newest_first(view.connection, path, _fetch)
        for found in self.current(view, map(record, rows)):
            if found.id not in seen and set(tags) <= set(found.tags):
                seen.add(found.id)
                yield found

    def closed(self, view: BranchView) -> list[Record]:
        """Return the closed records in view, the last closed first."""
        query = (
            f"SELECT {COLUMNS} FROM archival WHERE branch_id = ? AND seq <= ?"
            " AND valid_to IS NOT NULL"
        )
        path = self._branches.path(view, "archival")
        rows = (row for segment in path for row in view.connection.execute(query, segment))
        found = [
            item
            for item, is_deleted in self._newest(view, map(record, rows))
            if is_deleted or self._is_over(view, item)
        ]
        return sorted(found, key=lambda item: (item.valid_to or 0.0, item.seq), reverse=True)

    def current(self, view: BranchView, found: Iterable[Record]) -> Iterator[Record]:
        """Leave out versions that another overlays, and records that do not hold."""
        for item, is_deleted in self._newest(view, found):
            is_early = item.valid_from is not None and item.valid_from > self._branches.time(view)
            if not (is_deleted or is_early or self._is_over(view, item)):
                yield item

    def _is_over(self, view: BranchView, item: Record) -> bool:
        return item.valid_to is not None and item.valid_to <= self._branches.time(view)

    def _newest(self, view: BranchView, found: Iterable[Record]) -> Iterator[tuple[Record, int]]:
        """Leave out versions that a nearer or later one overlays; tell which are deletions."""
        path = self._branches.path(view, "archival")
        places = {segment.branch: (place, segment.up_to) for place, segment in enumerate(path)}
        query = (
            "SELECT record, branch_id, seq, is_deleted FROM archival"
            " WHERE record IN (SELECT value FROM json_each(?))"
        )
        waiting, size = iter(found), _AT_FIRST  # often these are enough
        while some := list(islice(waiting, size)):
            size = min(2 * size, _MOST_AT_ONCE)
            seen: dict[int, tuple[int, int, int]] = {}
            ids = json.dumps([item.id for item in some])
            for id_, branch, seq, is_deleted in view.connection.execute(query, (ids,)):
                if branch in places and seq <= places[branch][1]:
                    version = places[branch][0], -seq, is_deleted
                    seen[id_] = min(version, seen.get(id_, version))
            for item in some:
                if item.id in seen and seen[item.id][1] == -item.seq:
                    yield item, seen[item.id][2]

    def deleted(self, view: BranchView) -> dict[Content, int]:
        """Return the contents that a branch sees as deleted or closed, each with the deletion.

        Returns:
            The number of the row that deleted a record, by the text and tags of each version.
        """
        ends = dict(self._branches.path(view, "archival"))
        found: dict[Content, int] = {}
        for number, seq, id_ in view.connection.execute(
            "SELECT branch_id, seq, record FROM archival WHERE is_deleted = 1"
        ).fetchall():
            if seq > ends.get(number, -1):
                continue
            with suppress(RecordNotVisible):
                self.get(view, id_)
                continue  # written again since
            for text, tags in view.connection.execute(
                "SELECT text, tags FROM archival WHERE record = ? AND is_deleted = 0", (id_,)
            ):
                content = text, tuple(json.loads(tags))
                found[content] = max(seq, found.get(content, 0))
        return found

    def _fit(self, text: str) -> str:
        """Shorten without a model: no model is asked inside a transaction."""
        return self._compressor.cut(text, self._config.archival_max_chars)

    def _insert(
        self,
        writer: Writer,
        branch: Branch,
        row: _Row,
        overlaid: int | None,
        times: _Times = (None, None, None),
        *,
        is_deleted: bool = False,
    ) -> int:
        """Add a version, of a new record if it overlays none.

        A version that is over when it is written counts as deleted, whatever the clock says later.
        """
        text, tags, meta = row
        start, end, replaced_by = times
        return writer.insert(
            "archival",
            branch_id=branch.number,
            record=writer.seq + 1 if overlaid is None else overlaid,
            text=text,
            text_hash=text_hash(text),
            tags=tags,
            meta=meta,
            created_at=writer.now,
            is_deleted=int(is_deleted or (end is not None and end <= writer.now)),
            valid_from=start,
            valid_to=end,
            replaced_by=replaced_by,
        )


def text_hash(text: str) -> int:
    """Return a small number that is the same for the same text, for quick lookups."""
    return zlib.crc32(text.encode())


def record(row: tuple[Any, ...]) -> Record:
    """Return a row of `COLUMNS` as a record."""
    seq, branch, id_, text, tags, meta, *times = row
    return Record(id_, seq, branch, text, tuple(json.loads(tags)), dict(json.loads(meta)), *times)


def _span(valid_from: object, valid_to: object) -> tuple[float | None, float | None]:
    """Return the time in which a record holds.

    Raises:
        InvalidUpdate: If it is malformed, or ends before it begins.
    """
    start, end = moment("archival.valid_from", valid_from), moment("archival.valid_to", valid_to)
    if start is not None and end is not None and end <= start:
        raise InvalidUpdate("archival.valid_to", "must be later than valid_from")
    return start, end


def _fetch(connection: sqlite3.Connection, segment: Segment) -> Iterator[tuple[Any, ...]]:
    return connection.execute(
        f"SELECT {COLUMNS} FROM archival WHERE branch_id = ? AND seq <= ? ORDER BY seq DESC",
        segment,
    )
