"""Core memory: keys and values a prompt always shows. The nearest branch wins."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from taskweaver.memory.branched import values
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.storage.connections import CORE_SIZES, Writer
from taskweaver.memory.branched.tiers.archival import Archival
from taskweaver.memory.branched.tiers.branches import Branches, BranchView
from taskweaver.memory.branched.types import FOREVER, Branch, CoreEntry, Path, Segment
from taskweaver.memory.branched.values import checked_text

PINNED = 5
INDEX_KEY = "RESOURCE_INDEX"
RESERVED = (
    INDEX_KEY,
    "resource_index_json",
    "resource_digest",
    "resource_used",
    "idea_md_hash",
    "phase0_hash",
    "environment_hash",
)
"""Keys with sections or meanings of their own: not shown in the core section, never evicted."""

DIGEST_KEY = "CoreDigest"
_CONTEXT = {
    "Goal": "goal",
    "Research goal": "idea_md_summary",
    "Experiment config": "phase0_summary",
}
_CONTEXT_CHARS = 400
_KEPT_VIEWS = 256
_NEWEST = """
SELECT c.seq, c.branch_id, c.key, c.value, c.importance, c.expires_at, c.created_at
FROM json_each(?) AS part CROSS JOIN core_kv AS c
WHERE c.branch_id = json_extract(part.value, '$[0]') AND c.seq <= json_extract(part.value, '$[1]')
AND NOT EXISTS (
    SELECT 1 FROM core_kv AS later WHERE later.branch_id = c.branch_id AND later.key = c.key
    AND later.seq > c.seq AND later.seq <= json_extract(part.value, '$[1]')
)
"""


_Row = tuple[int, int, str, str | None, int, float | None, float]


class _Inherited(NamedTuple):
    """Final inheritance of a branch: rows of the closed parts of the path that may count."""

    schema: int
    path: Path
    closed: Path
    rows: tuple[_Row, ...]


class Core:
    """The core memory of all branches."""

    def __init__(
        self,
        branches: Branches,
        archival: Archival,
        config: MemoryConfig,
    ) -> None:
        self._branches = branches
        self._archival = archival
        self._config = config
        self._lock = threading.Lock()
        self._inherited: OrderedDict[int, _Inherited] = OrderedDict()

    def entries(self, view: BranchView) -> dict[str, CoreEntry]:
        """Return the core entries in view of a branch, by key, sorted.

        An expired value is not there, and hides no value that the branch inherits. Expiry is
        judged at the time of the view: the time of its row, or the present.
        """
        connection, branch = view.connection, view.branch
        path = self._branches.path(view, "core_kv")
        now = self._branches.time(view)
        if view.at is None:
            rows = self._closed(connection, branch, path)
            rows += _newest(connection, [part for part in path if part.up_to == FOREVER])
        else:
            rows = _newest(connection, path)
        found: dict[str, CoreEntry | None] = {}
        for row in _nearest_first(rows, path):
            seq, number, key, value, importance, expires_at, created_at = row
            if key in found or (expires_at is not None and expires_at <= now):
                continue
            entry = CoreEntry(seq, number, key, value or "", importance, expires_at, created_at)
            found[key] = None if value is None else entry
        return {key: entry for key, entry in sorted(found.items()) if entry is not None}

    def _closed(self, connection: sqlite3.Connection, branch: Branch, path: Path) -> list[_Row]:
        """Return the rows that may count of the segments of a path that take no more rows.

        Those never change, so a branch reads them once, and only those its parent did not inherit.
        An erasure changes them, and with them the number of the schema.
        """
        (schema,) = connection.execute("PRAGMA schema_version").fetchone()
        with self._lock:
            known = self._inherited.get(branch.number)
            above = self._inherited.get(branch.parent or 0)
            if known is not None:
                self._inherited.move_to_end(branch.number)
        if known is not None and known.path is path and known.schema == schema:
            return list(known.rows)
        closed = tuple(part for part in path if part.up_to != FOREVER)
        fresh, rows = closed, []
        above = above if above is not None and above.schema == schema else None
        if above is not None and self._branches.keeps(branch.parent or 0, "core_kv", above.path):
            count = len(closed) - len(above.closed)
            if count >= 0 and closed[count:] == above.closed:
                fresh, rows = closed[:count], list(above.rows)
        rows += _newest(connection, fresh)
        found = _Inherited(schema, path, closed, _candidates(_nearest_first(rows, path)))
        if self._branches.keeps(branch.number, "core_kv", path):
            with self._lock:
                self._inherited[branch.number] = found
                while len(self._inherited) > _KEPT_VIEWS:
                    self._inherited.popitem(last=False)
        return list(found.rows)

    def context(self, branch_id: str) -> str:
        """Return the subject of a branch's work, for a model that shortens the texts."""
        with self._branches.view(branch_id) as view:
            entries = self.entries(view)
        return "\n".join(
            f"{title}: {entries[key].value[:_CONTEXT_CHARS]}"
            for title, key in _CONTEXT.items()
            if key in entries
        )

    def put(
        self,
        writer: Writer,
        branch_id: str,
        key: object,
        value: object,
        *,
        importance: object = 3,
        ttl: object = None,
    ) -> int:
        """Set a key on a branch, and evict keys that no longer fit, and return the row's number.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            InvalidUpdate: If the key, value, importance or ttl is malformed, or the value alone
                is longer than core memory may be.
        """
        branch = self._branches.writable(writer, branch_id)
        key = values.name("core key", key)
        text = checked_text(f"core.{key}", value, may_be_empty=True)
        most = self._config.core_max_chars
        if len(key) + len(text) + 2 > most and key not in RESERVED:
            raise InvalidUpdate(
                f"core.{key}",
                f"is {len(text):,} characters long, and all of core memory has {most:,}. Write it"
                " to archival memory, and its gist here.",
            )
        seconds = values.ttl(f"core.{key}.ttl", ttl)
        end = None if seconds is None else writer.now + seconds
        weight = values.importance(f"core.{key}.importance", importance)
        seq = _insert(writer, branch, key, text, weight, end)
        self._evict(writer, branch, None if seconds is not None else len(key) + len(text) + 3)
        return seq

    def delete(self, writer: Writer, branch_id: str, key: object) -> bool:
        """Hide a key from a branch and later forks, and return whether the key was in view.

        The ancestor that wrote it keeps it.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        branch = self._branches.writable(writer, branch_id)
        key = values.name("core key", key)
        if key not in self.entries(BranchView(writer.connection, branch)):
            return False
        _insert(writer, branch, key, None)
        return True

    def rescore(self, writer: Writer, branch: Branch, scores: Mapping[str, int]) -> None:
        """Write new importances, as rows of the branch. Pinned keys keep theirs."""
        for key, entry in self.entries(BranchView(writer.connection, branch)).items():
            score = scores.get(key, entry.importance)
            if score != entry.importance and not _is_pinned(entry):
                weight = min(PINNED - 1, max(1, score))
                _insert(writer, branch, key, entry.value, weight, entry.expires_at)

    def evict(
        self, writer: Writer, branch: Branch, keys: Sequence[str], *, reason: str = ""
    ) -> list[str]:
        """Move keys to archival memory, and return the moved keys: in view and not pinned."""
        view = self.entries(BranchView(writer.connection, branch))
        moved = [key for key in keys if key in view and not _is_pinned(view[key])]
        for key in moved:
            entry = view[key]
            self._archival.add(
                writer,
                branch.id,
                f"Core evicted: {key}\n{entry.value}",
                tags=["CORE_EVICT", f"core_key:{key}"],
                meta={"core_seq": entry.seq, **({"reason": reason} if reason else {})},
            )
            _insert(writer, branch, key, None)
        return moved

    def fold(self, writer: Writer, branch: Branch, summary: str) -> list[str]:
        """Replace all keys that are not pinned by one digest. Their values go to archival memory.

        Args:
            writer: The transaction.
            branch: The branch.
            summary: The digest's text.

        Returns:
            The keys that were folded away.
        """
        view = self.entries(BranchView(writer.connection, branch))
        keys = [key for key, entry in view.items() if not _is_pinned(entry) and key != DIGEST_KEY]
        if not keys:
            return []
        snapshot = "\n".join(f"{key}: {view[key].value}" for key in keys)
        record = self._archival.add(
            writer,
            branch.id,
            f"Core memory snapshot\n{snapshot}",
            tags=["CORE_SNAPSHOT", f"branch_id:{branch.id}"],
        )
        writer.known.rows.pop(CORE_SIZES, None)
        for key in keys:
            _insert(writer, branch, key, None)
        reference = f"\n(ref: {record})"
        room = max(0, self._config.core_max_chars // 4 - len(reference))
        _insert(writer, branch, DIGEST_KEY, summary[:room] + reference, PINNED)
        return keys

    def chars(self, view: Mapping[str, CoreEntry]) -> int:
        """Return the size that counts against the budget: lines of ``key: value``."""
        sizes = [
            len(key) + len(entry.value) + 3 for key, entry in view.items() if key not in RESERVED
        ]
        return max(0, sum(sizes) - 1)

    def _evict(self, writer: Writer, branch: Branch, grown: int | None) -> None:
        """Keep the view within the budget: the least important, then the oldest, goes first.

        Args:
            writer: The transaction.
            branch: The branch.
            grown: Most characters that the view has more than before, for good; None if a value
                in it ends, and may bring back a longer one.
        """
        most = self._config.core_max_chars
        sizes: dict[int, int] = writer.known.rows.setdefault(CORE_SIZES, {})
        size = sizes.pop(branch.number, None)
        if branch.live:  # its descendants see the value too
            sizes.clear()
        if size is not None and grown is not None and size + grown <= most:
            sizes[branch.number] = size + grown
            return
        view = self.entries(BranchView(writer.connection, branch))
        excess = self.chars(view) - most
        is_lasting = grown is not None and all(item.expires_at is None for item in view.values())
        if excess <= 0 and is_lasting:
            sizes[branch.number] = most + excess
        free = [entry for entry in view.values() if not _is_pinned(entry)]
        for entry in sorted(free, key=lambda entry: (entry.importance, entry.seq)):
            if excess <= 0:
                return
            self.evict(writer, branch, [entry.key])
            excess -= len(entry.key) + len(entry.value) + 3


def _insert(
    writer: Writer,
    branch: Branch,
    key: str,
    value: str | None,
    importance: int = 1,
    expires_at: float | None = None,
) -> int:
    """Add a row of a key, without a value a tombstone."""
    return writer.insert(
        "core_kv",
        branch_id=branch.number,
        key=key,
        value=value,
        importance=importance,
        expires_at=expires_at,
        created_at=writer.now,
    )


def _newest(connection: sqlite3.Connection, path: Sequence[Segment]) -> list[_Row]:
    """Return the newest row by key and segment."""
    return connection.execute(_NEWEST, (json.dumps(path),)).fetchall() if path else []


def _nearest_first(rows: Iterable[_Row], path: Path) -> list[_Row]:
    place = {segment.branch: number for number, segment in enumerate(path)}
    return sorted(rows, key=lambda row: place[row[1]])


def _candidates(rows: Iterable[_Row]) -> tuple[_Row, ...]:
    """Return the rows of each key, nearest first, as far as the first that never expires."""
    settled: set[str] = set()
    found = []
    for row in rows:
        if row[2] not in settled:
            found.append(row)
            if row[5] is None:
                settled.add(row[2])
    return tuple(found)


def _is_pinned(entry: CoreEntry) -> bool:
    return entry.importance >= PINNED or entry.key in RESERVED
