"""Archival memory: records with tags. A new version overlays a record from its branch on."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import InvalidUpdate, RecordNotVisible
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.tiers.branches import Branches, BranchView, newest_first
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.types import FOREVER, Branch, Path, Record, Segment
from taskweaver.memory.branched.values import checked_data, checked_tags, checked_text, dump, shown

Content = tuple[str, tuple[str, ...]]
"""Text and tags of a record."""
COLUMNS = "seq, branch_id, record, text, tags, meta, created_at"
_AT_FIRST, _MOST_AT_ONCE = 8, 256
"""Records whose versions are looked up in the first query, and, doubled each time, at most."""

_SAME = """
SELECT a.record, a.meta FROM archival a
WHERE a.branch_id = ? AND a.text_hash = ? AND a.text = ? AND a.tags = ? AND NOT EXISTS (
    SELECT 1 FROM archival later
    WHERE later.record = a.record AND later.branch_id = a.branch_id AND later.seq > a.seq
) LIMIT 1
"""


class Archival:
    """The archival memory of all branches."""

    def __init__(self, branches: Branches, config: MemoryConfig, compressor: Compressor) -> None:
        self._branches = branches
        self._config = config
        self._compressor = compressor

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

    def add(
        self,
        writer: Writer,
        branch_id: str,
        text: object,
        *,
        tags: object = (),
        meta: object = None,
    ) -> int:
        """Add a record and return the id.

        A text with tags that the branch itself keeps, in this form, is not added again: it stays
        one record, whose meta takes up the fields of the new one.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            InvalidUpdate: If the text, tags or meta are malformed.
        """
        branch = self._branches.writable(writer, branch_id)
        kept = self._fit(checked_text("archival.text", text))
        row = (kept, dump(checked_tags("archival.tags", tags)))
        extra = checked_data("archival.meta", meta)
        asked = (branch.number, text_hash(row[0]), *row)
        same = writer.connection.execute(_SAME, asked).fetchone()
        if same is None:
            return self._insert(writer, branch, row, dump(extra) if extra else "{}", None)
        number, before = int(same[0]), json.loads(same[1])
        if before | extra != before:
            self._insert(writer, branch, row, dump(before | extra), number)
        return number

    def update(
        self,
        writer: Writer,
        branch_id: str,
        record_id: object,
        *,
        text: object = None,
        tags: object = None,
        meta: object = None,
    ) -> int:
        """Overlay a record in view of a branch. Ancestors and siblings see the former version.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            RecordNotVisible: If the branch does not see the record.
            InvalidUpdate: If nothing is given, or it is malformed.
        """
        branch = self._branches.writable(writer, branch_id)
        old = self.get(BranchView(writer.connection, branch), record_id)
        if text is None and tags is None and meta is None:
            raise InvalidUpdate("archival_update", "gives neither text nor tags nor meta")
        kept = old.text if text is None else self._fit(checked_text("archival.text", text))
        marks = old.tags if tags is None else checked_tags("archival.tags", tags)
        extra = old.meta if meta is None else checked_data("archival.meta", meta)
        self._insert(writer, branch, (kept, dump(marks)), dump(extra), old.id)
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
        self._insert(writer, branch, ("", "[]"), "{}", old.id, is_deleted=True)
        return old.id

    def get(self, view: BranchView, record_id: object) -> Record:
        """Return the version of a record that a branch sees.

        Raises:
            RecordNotVisible: If it sees none.
        """
        try:
            number = int(record_id) if isinstance(record_id, str | int) else -1
        except ValueError:
            number = -1
        if number < 0:
            raise RecordNotVisible(f"{shown(record_id)} is no record id; ids are numbers.")
        path = self._branches.path(view, "archival")
        versions = view.connection.execute(
            f"SELECT {COLUMNS}, is_deleted FROM archival WHERE record = ? ORDER BY seq DESC",
            (min(number, FOREVER),),
        ).fetchall()
        places = {segment.branch: (place, segment.up_to) for place, segment in enumerate(path)}
        seen = [row for row in versions if row[1] in places and row[0] <= places[row[1]][1]]
        *row, is_deleted = min(seen, key=lambda row: places[row[1]][0], default=(True,))
        if is_deleted:
            raise RecordNotVisible(
                f"Branch {view.branch.id!r} sees no archival record {shown(record_id)}."
            )
        return record(tuple(row))

    def visible(self, view: BranchView, *, tags: Sequence[str] = ()) -> Iterator[Record]:
        """Yield the records a branch sees that have all tags, newest first."""
        path = self._branches.path(view, "archival")
        seen: set[int] = set()
        rows = newest_first(view.connection, path, _fetch)
        for found in self.current(view.connection, path, map(record, rows)):
            if found.id not in seen and set(tags) <= set(found.tags):
                seen.add(found.id)
                yield found

    def current(
        self, connection: sqlite3.Connection, path: Path, found: Iterable[Record]
    ) -> Iterator[Record]:
        """Leave out deleted records, and versions that a nearer or later one overlays."""
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
            for id_, branch, seq, is_deleted in connection.execute(query, (ids,)):
                if branch in places and seq <= places[branch][1]:
                    version = places[branch][0], -seq, is_deleted
                    seen[id_] = min(version, seen.get(id_, version))
            for item in some:
                if item.id in seen and seen[item.id][1:] == (-item.seq, 0):
                    yield item

    def deleted(self, view: BranchView) -> dict[Content, int]:
        """Return the contents that a branch sees as deleted, each with the deletion.

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
        row: tuple[str, str],
        meta: str,
        overlaid: int | None,
        *,
        is_deleted: bool = False,
    ) -> int:
        seq = writer.insert(
            "archival",
            branch_id=branch.number,
            record=writer.seq + 1 if overlaid is None else overlaid,
            text=row[0],
            text_hash=text_hash(row[0]),
            tags=row[1],
            meta=meta,
            created_at=writer.now,
            is_deleted=int(is_deleted),
        )
        writer.index(seq)
        return seq


def text_hash(text: str) -> int:
    """Return a small number that is the same for the same text, for quick lookups."""
    return zlib.crc32(text.encode())


def record(row: tuple[Any, ...]) -> Record:
    """Return a row of `COLUMNS` as a record."""
    seq, branch, id_, text, tags, meta, created = row
    return Record(id_, seq, branch, text, tuple(json.loads(tags)), dict(json.loads(meta)), created)


def _fetch(connection: sqlite3.Connection, segment: Segment) -> Iterator[tuple[Any, ...]]:
    return connection.execute(
        f"SELECT {COLUMNS} FROM archival WHERE branch_id = ? AND seq <= ? ORDER BY seq DESC",
        segment,
    )
