"""Branches side by side: how two differ, and how the findings of one reach another."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from taskweaver.memory.branched.errors import InvalidUpdate, RecordNotVisible
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.tiers.branches import BranchView
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.tiers.core import RESERVED
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import (
    Branch,
    CoreEntry,
    MergeNote,
    MergePreview,
    MergeReport,
    Record,
)
from taskweaver.memory.branched.values import name, shown, whole
from taskweaver.utils.redact import redact_known

POLICIES = ("ours", "theirs", "newest", "importance", "manual")
_PREVIEW_CHARS = 120
_MERGE = "merge"
"""Kind of the event that a merge leaves on its target."""
_HISTORY = """
SELECT seq, 'core', key || CASE WHEN value IS NULL THEN ' (deleted)' ELSE ': ' || value END,
       created_at FROM core_kv WHERE branch_id = :b
UNION ALL SELECT e.seq, 'event', e.kind || ': ' || coalesce(o.text, e.text), e.created_at
       FROM events e LEFT JOIN events o ON o.seq = e.repeats WHERE e.branch_id = :b
UNION ALL SELECT seq, 'archival', CASE WHEN valid_to IS NOT NULL AND is_deleted THEN 'record '
       || record || coalesce(' (replaced by ' || replaced_by || '): ', ' (closed): ') || text
       WHEN is_deleted THEN 'record ' || record || ' (deleted)' ELSE text END,
       created_at FROM archival WHERE branch_id = :b
UNION ALL SELECT seq, 'digest', text, created_at FROM digests WHERE branch_id = :b
UNION ALL SELECT seq, 'hidden', 'event ' || event_seq, NULL FROM exclusions WHERE branch_id = :b
ORDER BY 1 DESC LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """One row of a branch's own history.

    Attributes:
        seq: Its sequence number, which `at=` takes.
        tier: ``core``, ``event``, ``archival``, ``digest`` or ``hidden``.
        text: Its beginning; known secrets in it are masked, since a cut would leave parts of them.
        created_at: When, in seconds since 1970; None where it is not recorded.
    """

    seq: int
    tier: str
    text: str
    created_at: float | None


class _Closing(NamedTuple):
    """A record that the source of a merge closed.

    Attributes:
        old: The closed record.
        new: The record in its place in the source; None for none.
        own: The record in its place in the target; None for none.
    """

    old: Record
    new: Record | None
    own: Record | None

    @property
    def is_conflict(self) -> bool:
        """Whether the target has a third text in its place."""
        texts = (self.old.text, self.new and self.new.text)
        return self.own is not None and self.own.text not in texts


@dataclass(frozen=True, slots=True)
class MemoryDifference:
    """Difference between two branches.

    Attributes:
        core: Keys whose values differ: the first branch's value and the second's; None is none.
        events: Texts of events that only the first, and only the second, sees.
        archival: Ids of records that only the first, and only the second, sees (as they are).
    """

    core: dict[str, tuple[str | None, str | None]]
    events: tuple[list[str], list[str]]
    archival: tuple[list[int], list[int]]


class BranchComparison:
    """Compares and joins branches."""

    def __init__(self, tiers: Tiers) -> None:
        self._database = tiers.database
        self._branches = tiers.branches
        self._core = tiers.core
        self._recall = tiers.recall
        self._archival = tiers.archival

    def history(self, branch_id: str, *, limit: int = 100) -> list[HistoryStep]:
        """Return the rows of a branch itself, newest first."""
        most = whole("limit", limit)
        with self._branches.view(branch_id) as view:
            rows = view.connection.execute(_HISTORY, {"b": view.branch.number, "limit": most})
            # Secrets are masked before the cut, which would leave parts of them.
            return [
                HistoryStep(
                    seq,
                    tier,
                    Compressor.cut(" ".join(redact_known(text).split()), _PREVIEW_CHARS),
                    created,
                )
                for seq, tier, text, created in rows
            ]

    def diff(self, first: str, second: str) -> MemoryDifference:
        """Return how the views of two branches differ.

        Raises:
            UnknownBranch: If the branch does not exist.
        """
        with self._branches.view(first) as view, self._branches.view(second) as other:
            views = (view, other)
            one, two = (_values(self._core.entries(view)) for view in views)
            texts, others_texts = (
                [f"[{event.kind}] {event.text}" for event in self._recall.visible(view)]
                for view in views
            )
            ids, others = (
                {item.seq: item.id for item in self._archival.visible(view)} for view in views
            )
        return MemoryDifference(
            {
                key: (one.get(key), two.get(key))
                for key in sorted({*one, *two})
                if one.get(key) != two.get(key)
            },
            (_without(texts, others_texts), _without(others_texts, texts)),
            (
                sorted(ids[seq] for seq in ids.keys() - others.keys()),
                sorted(others[seq] for seq in others.keys() - ids.keys()),
            ),
        )

    def promote(self, writer: Writer, branch_id: str, record: str | int, to: str) -> str:
        """Copy a core key (a text) or a record (a number) to another branch; return key or new id.

        Raises:
            RecordNotVisible: If the key or record is not in view.
            UnknownBranch, BranchSealed: If the target takes no writes.
        """
        source = self._branches.find(writer.connection, branch_id)
        view = BranchView(writer.connection, source)
        if isinstance(record, int):
            found = self._archival.get(view, record)
            ours = BranchView(writer.connection, self._branches.find(writer.connection, to))
            closed = [
                one.own.id
                for one in self._closings(view, ours)
                if one.own and one.new == found and not one.is_conflict
            ]
            return str(self._copy_record(writer, source, found, to, closed))
        entry = self._core.entries(view).get(name("core key", record))
        if entry is None:
            raise RecordNotVisible(f"Branch {branch_id!r} sees no core key {shown(record)}.")
        self._copy_entry(writer, entry, to)
        return record

    def merge(
        self,
        writer: Writer,
        source: str,
        target: str,
        policy: str,
        choices: Mapping[str, str] | None = None,
    ) -> MergeReport:
        """Bring the news of a branch since it parted from another to that one.

        Archival records and core keys that only the source changed are copied. Where both
        changed a core key, the policy decides: ``ours`` keeps the target's, ``theirs`` takes the
        source's, ``newest`` the later one, ``importance`` the more important (the target's when
        equal), and ``manual`` writes nothing at all and names the conflicts. Events stay where
        they happened; the merge itself becomes an event of the target. A record that the target
        deleted comes back only if the source wrote it later. A record that the source closed is
        closed in the target; if the target changed or replaced it, the policy decides (the target's
        stays under ``importance``), and the conflict is named ``record`` and its id.

        Raises:
            InvalidUpdate: If the policy does not exist, or a branch is merged with itself.
            UnknownBranch, BranchSealed: If the target takes no writes.
        """
        choices = choices or {}
        for chosen in (policy, *choices.values()):
            if chosen not in POLICIES:
                problem = f"must be one of {', '.join(POLICIES)}, not {shown(chosen)}"
                raise InvalidUpdate("policy", problem)
        theirs, ours, base = self._sides(writer.connection, source, target)
        entries = (self._core.entries(theirs), self._core.entries(ours))
        taken, conflicts = _choose(*entries, base, policy, choices)
        closings = self._closings(theirs, ours)
        conflicts += [_name(one) for one in closings if one.is_conflict]
        for key in choices:
            if key not in conflicts:
                raise InvalidUpdate("choices", f"{shown(key)} is not in conflict")
        undecided = [key for key in conflicts if choices.get(key, policy) == "manual"]
        if undecided:
            return MergeReport([], undecided, applied=False)
        self._branches.writable(writer, target)
        report = MergeReport([], conflicts)
        for entry in taken:
            self._copy_entry(writer, entry, target)
            report.taken.append(f"core {entry.key}")
        lost = {
            one.old.id
            for one in closings
            if one.is_conflict and not _wins(one, choices.get(_name(one), policy))
        }
        report.taken.extend(self._merge_records(writer, theirs, ours, closings, lost))
        from_, taken_count = theirs.branch.id, len(report.taken)
        text = f"merged {from_!r}: {taken_count} entries, {len(conflicts)} conflicts"
        event = {"kind": _MERGE, "content": text, "source": from_, "taken": report.taken}
        self._recall.append(writer, target, event)
        return report

    def _merge_records(
        self,
        writer: Writer,
        theirs: BranchView,
        ours: BranchView,
        closings: Sequence[_Closing],
        lost: Container[int],
    ) -> list[str]:
        """Copy new records, close what they replace, and return the changes in words.

        Args:
            writer: The transaction.
            theirs: The source.
            ours: The target.
            closings: Records that the source closed.
            lost: Ids of closed records of which the target's side is kept.
        """
        news = {item.id: item for item in self._news(theirs, ours)}
        replaced: dict[int, list[int]] = {}
        taken = []
        for one in closings:
            new = one.new and news.get(one.new.id)
            if one.old.id in lost:
                news.pop(new.id if new else 0, None)
            elif one.own is None or (one.new and one.own.text == one.new.text):
                continue
            elif new is not None:
                replaced.setdefault(new.id, []).append(one.own.id)
            else:
                end = one.old.valid_to
                self._archival.update(writer, ours.branch.id, one.own.id, valid_to=end)
                taken.append(f"closed {one.own.id}")
        for item in news.values():
            closed = replaced.get(item.id, ())
            id_ = self._copy_record(writer, theirs.branch, item, ours.branch.id, closed)
            taken.append(f"archival {id_}")
        return taken

    def merges(self) -> list[MergeNote]:
        """Return the merges of all branches, the oldest first."""
        with self._database.snapshot() as connection:
            rows = connection.execute(
                "SELECT e.seq, b.name, json_extract(e.data, '$.source') FROM events e"
                " JOIN branches b ON b.id = e.branch_id WHERE e.kind = ? ORDER BY e.seq",
                (_MERGE,),
            ).fetchall()
        return [MergeNote(seq, target, str(source)) for seq, target, source in rows if source]

    def merge_preview(self, source: str, target: str) -> MergePreview:
        """Return the things that a merge would bring, and the conflicts. Raises as `merge`."""
        with self._database.snapshot() as connection:
            theirs, ours, base = self._sides(connection, source, target)
            given, own = self._core.entries(theirs), self._core.entries(ours)
            before = _values(self._core.entries(ours._replace(at=base)))
            taken, conflicts = _choose(given, own, base, "manual", {})
            news = self._news(theirs, ours)
            rivals = [one for one in self._closings(theirs, ours) if one.is_conflict]
        return MergePreview(
            {entry.key: entry.value for entry in taken},
            [item.text for item in news],
            {key: (before.get(key), own[key].value, given[key].value) for key in conflicts}
            | {
                _name(one): (one.old.text, one.own.text, one.new.text if one.new else "")
                for one in rivals
                if one.own
            },
        )

    def _sides(
        self, connection: sqlite3.Connection, source: str, target: str
    ) -> tuple[BranchView, BranchView, int]:
        """Return source and target of a merge, and the last common row."""
        theirs, ours = (self._branches.find(connection, name) for name in (source, target))
        if theirs.number == ours.number:
            raise InvalidUpdate("source", "is the target itself")
        base = self._branches.common(connection, theirs, ours)
        return BranchView(connection, theirs), BranchView(connection, ours), base

    def _news(self, theirs: BranchView, ours: BranchView) -> list[Record]:
        """Return the records to take, oldest first.

        Those are the records that one branch sees, and the other neither sees nor has inherited: an
        inherited record that the other changed or deleted since is no news of the first one's.
        A copy that the other deleted is news only if it was written later.
        """
        seen = {(item.text, item.tags) for item in self._archival.visible(ours)}
        inherited = dict(self._branches.path(ours, "archival"))
        deleted = self._archival.deleted(ours)
        return [
            item
            for item in reversed(list(self._archival.visible(theirs)))
            if (item.text, item.tags) not in seen
            and item.seq > inherited.get(item.branch, 0)
            and item.seq > deleted.get((item.text, item.tags), 0)
        ]

    def _closings(self, theirs: BranchView, ours: BranchView) -> list[_Closing]:
        """Return the records that the source closed since the two parted."""
        inherited = dict(self._branches.path(ours, "archival"))
        given, own = (
            {item.id: item for item in self._archival.visible(view)} for view in (theirs, ours)
        )
        same = {(item.text, item.tags): item for item in own.values()}
        closed, own_closed = (
            {item.id: item for item in self._archival.closed(view)} for view in (theirs, ours)
        )
        return [
            _Closing(
                old,
                given.get(_last(old.id, closed)),
                same.get((old.text, old.tags)) or own.get(_last(old.id, own_closed)),
            )
            for old in closed.values()
            if old.seq > inherited.get(old.branch, 0)
        ]

    def _copy_entry(self, writer: Writer, entry: CoreEntry, to: str) -> None:
        ttl = None if entry.expires_at is None else max(0.0, entry.expires_at - writer.now)
        self._core.put(writer, to, entry.key, entry.value, importance=entry.importance, ttl=ttl)

    def _copy_record(
        self, writer: Writer, source: Branch, item: Record, to: str, replaces: Sequence[int]
    ) -> int:
        return self._archival.add(
            writer,
            to,
            item.text,
            tags=item.tags,
            meta={**item.meta, "from_branch": source.id, "from_record": item.id},
            replaces=list(replaces),
            valid_from=item.valid_from,
            valid_to=item.valid_to,
        )


def _last(id_: int, closed: Mapping[int, Record]) -> int:
    """Return the last in a line of records that replaced each other."""
    for _ in closed:  # no longer, should a damaged file have a circle
        id_ = closed[id_].replaced_by or 0 if id_ in closed else id_
    return id_


def _name(closing: _Closing) -> str:
    """Return the name of a conflict."""
    return f"record {closing.old.id}"


def _wins(closing: _Closing, policy: str) -> bool:
    """Return whether the source's side of a conflict is taken."""
    theirs, own = closing.new or closing.old, closing.own
    return policy == "theirs" or (policy == "newest" and own is not None and theirs.seq > own.seq)


def _values(view: dict[str, CoreEntry]) -> dict[str, str]:
    return {key: entry.value for key, entry in view.items()}


def _without(first: Iterable[str], second: Iterable[str]) -> list[str]:
    known = set(second)
    return [text for text in first if text not in known]


def _choose(
    theirs: dict[str, CoreEntry],
    ours: dict[str, CoreEntry],
    base: int,
    policy: str,
    choices: Mapping[str, str],
) -> tuple[list[CoreEntry], list[str]]:
    """Return the source's entries to take, and the keys both sides changed."""
    taken, conflicts = [], []
    for key, entry in theirs.items():
        own = ours.get(key)
        if entry.seq <= base or key in RESERVED or (own and own.value == entry.value):
            continue
        if own is None or own.seq <= base:
            taken.append(entry)
            continue
        conflicts.append(key)
        is_newer, is_heavier = entry.seq > own.seq, entry.importance > own.importance
        if {"theirs": True, "newest": is_newer, "importance": is_heavier}.get(
            choices.get(key, policy), False
        ):
            taken.append(entry)
    return taken, conflicts
