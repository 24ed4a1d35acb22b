"""Archival memory: records with tags. A new version of a record overlays it from its branch on."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from taskweaver.memory.branched.branches import Branches, newest_first
from taskweaver.memory.branched.compression import Compressor
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.database import Database, Writer
from taskweaver.memory.branched.errors import InvalidUpdate, RecordNotVisible
from taskweaver.memory.branched.schema import index_records
from taskweaver.memory.branched.types import FOREVER, Branch, Path, Record, Segment
from taskweaver.memory.branched.values import Values, dump

COLUMNS = "seq, branch_id, record, text, tags, meta, created_at"


class Archival:
    """The archival memory of all branches."""

    def __init__(
        self,
        database: Database,
        branches: Branches,
        config: MemoryConfig,
        checks: Values,
        compressor: Compressor,
    ) -> None:
        self._database = database
        self._branches = branches
        self._config = config
        self._values = checks
        self._compressor = compressor

    def prepare(self, text: object, context: Callable[[], str]) -> str:
        """Check a text and bring it to the allowed length, before a transaction is open.

        Args:
            text: The text.
            context: Says what the work is about; asked only when the text is too long.

        Raises:
            InvalidUpdate: If it is no text, or empty.
        """
        checked = self._values.text("archival.text", text)
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
        """Add a record and return its id. The same text and tags on the same branch are kept once.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            InvalidUpdate: If the text, tags or meta are malformed.
        """
        branch = self._branches.writable(writer, branch_id)
        kept = self._fit(self._values.text("archival.text", text))
        row = (kept, dump(self._values.tags("archival.tags", tags)))
        extra = dump(self._values.data("archival.meta", meta))
        same = self._same(writer.connection, branch, row)
        return self._insert(writer, branch, row, extra, None) if same is None else same

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
        """Overlay a record a branch sees; what is None stays. Ancestors and siblings keep theirs.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            RecordNotVisible: If the branch does not see the record.
            InvalidUpdate: If nothing is given, or it is malformed.
        """
        branch = self._branches.writable(writer, branch_id)
        old = self.get(writer.connection, branch, record_id)
        if text is None and tags is None and meta is None:
            raise InvalidUpdate("archival_update", "gives neither text nor tags nor meta")
        kept = old.text if text is None else self._fit(self._values.text("archival.text", text))
        marks = old.tags if tags is None else self._values.tags("archival.tags", tags)
        extra = old.meta if meta is None else self._values.data("archival.meta", meta)
        self._insert(writer, branch, (kept, dump(marks)), dump(extra), old.id)
        return old.id

    def get(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        record_id: object,
        *,
        at: int | None = None,
    ) -> Record:
        """Return the version of a record that a branch sees.

        Raises:
            RecordNotVisible: If it sees none.
        """
        number = _number(record_id)
        path = self._branches.path(connection, branch, "archival", at)
        versions = connection.execute(
            f"SELECT {COLUMNS} FROM archival WHERE record = ? ORDER BY seq DESC", (number,)
        ).fetchall()
        places = {segment.branch: (place, segment.up_to) for place, segment in enumerate(path)}
        seen = [row for row in versions if row[1] in places and row[0] <= places[row[1]][1]]
        if not seen:
            raise RecordNotVisible(f"Branch {branch.id!r} sees no archival record {record_id!r}.")
        return record(min(seen, key=lambda row: places[row[1]][0]))

    def visible(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        *,
        tags: Sequence[str] = (),
        at: int | None = None,
    ) -> Iterator[Record]:
        """Yield the records a branch sees that have all tags, newest first."""
        path = self._branches.path(connection, branch, "archival", at)
        seen: dict[int, int] = {}
        rows = newest_first(connection, path, _fetch)
        for found in self.current(connection, path, map(record, rows)):
            if found.id not in seen and set(tags) <= set(found.tags):
                seen[found.id] = found.seq
                yield found

    def current(
        self, connection: sqlite3.Connection, path: Path, found: Iterable[Record]
    ) -> Iterator[Record]:
        """Leave out versions that a nearer one, or a later one of the same branch, overlays."""
        places = {segment.branch: (place, segment.up_to) for place, segment in enumerate(path)}
        query = "SELECT branch_id, seq FROM archival WHERE record = ?"
        for item in found:
            versions = [
                (places[branch][0], -seq)
                for branch, seq in connection.execute(query, (item.id,))
                if branch in places and seq <= places[branch][1]
            ]
            if versions and min(versions)[1] == -item.seq:
                yield item

    def _fit(self, text: str) -> str:
        """Shorten without a model: inside a transaction nobody is asked."""
        return self._compressor.cut(text, self._config.archival_max_chars)

    def _same(
        self, connection: sqlite3.Connection, branch: Branch, row: tuple[str, str]
    ) -> int | None:
        found = connection.execute(
            "SELECT record FROM archival WHERE branch_id = ? AND text_hash = ? AND text = ?"
            " AND tags = ? AND record = seq LIMIT 1",
            (branch.number, text_hash(row[0]), *row),
        ).fetchone()
        return int(found[0]) if found else None

    def _insert(
        self,
        writer: Writer,
        branch: Branch,
        row: tuple[str, str],
        meta: str,
        overlaid: int | None,
    ) -> int:
        seq = writer.tick()
        writer.connection.execute(
            "INSERT INTO archival (seq, branch_id, record, text, text_hash, tags, meta, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                seq,
                branch.number,
                seq if overlaid is None else overlaid,
                row[0],
                text_hash(row[0]),
                row[1],
                meta,
                writer.now,
            ),
        )
        index_records(writer.connection, "seq = ?", seq)
        return seq


def text_hash(text: str) -> int:
    """Return a small number that is the same for the same text, to look for it quickly."""
    return zlib.crc32(text.encode())


def record(row: tuple[Any, ...]) -> Record:
    """Return a row of `COLUMNS` as a record."""
    seq, branch, id_, text, tags, meta, created = row
    return Record(id_, seq, branch, text, tuple(json.loads(tags)), json.loads(meta), created)


def _fetch(connection: sqlite3.Connection, segment: Segment) -> Iterator[tuple[Any, ...]]:
    return connection.execute(
        f"SELECT {COLUMNS} FROM archival WHERE branch_id = ? AND seq <= ? ORDER BY seq DESC",
        segment,
    )


def _number(record_id: object) -> int:
    try:
        number = int(str(record_id).strip())
    except ValueError:
        raise RecordNotVisible(f"{record_id!r:.60} is no record id; ids are numbers.") from None
    if not 0 <= number < FOREVER:
        raise RecordNotVisible(f"There is no archival record {number:.60g}.")
    return number
