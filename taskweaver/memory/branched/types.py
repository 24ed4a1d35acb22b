"""Values that a branched memory takes and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

FOREVER = 2**62
"""A sequence number no row reaches: a branch's own rows, and those of a live one, have no end."""

EMPTY = 0
"""In place of a branch's number: the view that a root starts from."""

Moment = int | datetime
"""A state of the past: by the number of its newest row, or by its time."""

Time = float | datetime | str
"""A time: seconds since 1970, or an ISO 8601 text like ``2026-05-31``."""

Tier = Literal["core_kv", "events", "archival", "exclusions", "digests"]
"""A table of rows on branches."""

BranchState = Literal["open", "sealed", "pruned"]
PressureLevel = Literal["low", "medium", "high", "critical"]

TextModel = Callable[[str], str]
"""A language model: a prompt in, the answer out. A call may raise anything."""


class Segment(NamedTuple):
    """A stretch of a branch's rows that another branch sees.

    Attributes:
        branch: Number of the branch.
        up_to: Newest row that is seen, by sequence number.
    """

    branch: int
    up_to: int


Path = tuple[Segment, ...]
"""View of a branch: its own segment first, the root's last."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of thought.

    Attributes:
        number: Its number in the file.
        id: Its name, which callers know it by.
        node_uid: Another name, of a tree-search node; may be None.
        parent: Number of the branch it was forked from; None for a root.
        fork_seq: Newest row of the parent it sees.
        live: Whether its later writes are seen by its descendants too.
        state: ``sealed`` and ``pruned`` branches take no writes; pruned ones may be collected.
        created_at: When, in seconds since 1970; for display only.
    """

    number: int
    id: str
    node_uid: str | None
    parent: int | None
    fork_seq: int
    live: bool
    state: BranchState
    created_at: float


@dataclass(frozen=True, slots=True)
class CoreEntry:
    """A key of core memory in view of a branch.

    Attributes:
        seq: Sequence number of the row.
        branch: Number of the branch that wrote it.
        key: Its name.
        value: Its value.
        importance: From 1 to 5; 5 is never evicted.
        expires_at: When it ends, in seconds since 1970; None for never.
        created_at: When it was written.
    """

    seq: int
    branch: int
    key: str
    value: str
    importance: int
    expires_at: float | None
    created_at: float


@dataclass(frozen=True, slots=True)
class Event:
    """An event of recall memory.

    Attributes:
        seq: Sequence number, and id, of its newest occurrence.
        branch: Number of the branch that wrote it.
        kind: Its kind.
        text: A description in words.
        tags: Tags.
        data: Further fields.
        count: How often it happened, one after the other.
        created_at: When, in seconds since 1970.
    """

    seq: int
    branch: int
    kind: str
    text: str
    tags: tuple[str, ...]
    data: dict[str, Any]
    count: int
    created_at: float

    @property
    def id(self) -> int:
        """The sequence number, which names the event in calls."""
        return self.seq


@dataclass(frozen=True, slots=True)
class Record:
    """A record of archival memory in view of a branch.

    Attributes:
        id: Its id, the same in all its versions.
        seq: Sequence number of this version.
        branch: Number of the branch that wrote this version.
        text: Its text.
        tags: Tags.
        meta: Further fields.
        created_at: When this version was written.
        valid_from: When it begins to hold, in seconds since 1970; None for its writing.
        valid_to: When it ends to hold; None for no end.
        replaced_by: Id of the record that closed it; None for none.
        score: Rank in a search, higher is better.
        match: Whether it answers the query, or is merely recent.
    """

    id: int
    seq: int
    branch: int
    text: str
    tags: tuple[str, ...]
    meta: dict[str, Any]
    created_at: float
    valid_from: float | None = None
    valid_to: float | None = None
    replaced_by: int | None = None
    score: float = 0.0
    match: Literal["query", "recency"] = "query"


@dataclass(frozen=True, slots=True)
class Digest:
    """A summary of all events of a branch's view up to a row.

    Attributes:
        seq: Sequence number.
        branch: Number of the branch that wrote it.
        subject: The summarised tier, for example ``recall``.
        up_to: Newest row it covers.
        count: How many events it covers.
        text: The summary.
        created_at: When it was made.
    """

    seq: int
    branch: int
    subject: str
    up_to: int
    count: int
    text: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Pressure:
    """Fill level of a branch's memory.

    Attributes:
        level: The level of the fuller of core and recall.
        core_chars: Characters of the core memory in view.
        core_ratio: Of the budget.
        events: Events in view that no digest covers.
        recall_ratio: Of the window.
        recommendations: Measures that would help, in the seeds' words.
    """

    level: PressureLevel
    core_chars: int
    core_ratio: float
    events: int
    recall_ratio: float
    recommendations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a rendered memory.

    Attributes:
        title: Its heading.
        text: The shown text, heading included.
        shown: Ids of the shown parts: keys, or row numbers.
        dropped: Ids of the parts that did not fit.
    """

    title: str
    text: str
    shown: tuple[str | int, ...]
    dropped: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderResult:
    """A memory rendered for a prompt.

    Attributes:
        text: The whole text.
        seq: The state that was rendered; rendering at it again gives the same, but for values that
            expired between its newest row and the rendering.
        query: The query of the archival sections.
        sections: Its parts, with the ids that they show and leave out.
        pressure: How full the memory is.
    """

    text: str
    seq: int
    query: str
    sections: tuple[Section, ...]
    pressure: Pressure


@dataclass(frozen=True, slots=True)
class MergeNote:
    """A merge that was made, of branches by their ids.

    Attributes:
        seq: Position of its event.
        target: Branch that was merged into.
        source: Branch that was merged.
    """

    seq: int
    target: str
    source: str


@dataclass(frozen=True, slots=True)
class MergePreview:
    """Things that a merge would do.

    Attributes:
        core: Core keys that only the source changed, with the values to take.
        records: Texts of the records to take, oldest first.
        conflicts: Core keys, and records by ``record`` and id, that both branches changed: the
            value where they parted, that of the target and that of the source; None is none.
    """

    core: dict[str, str]
    records: list[str]
    conflicts: dict[str, tuple[str | None, str, str]]


@dataclass(frozen=True, slots=True)
class MergeReport:
    """Outcome of a merge.

    Attributes:
        taken: Entries written to the target, in words.
        conflicts: Core keys and records that both branches changed since they parted.
        applied: Whether anything was written; a ``manual`` merge with conflicts writes nothing.
    """

    taken: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    applied: bool = True


def day(time: float) -> str:
    """Return the day of a time as text, of UTC."""
    return datetime.fromtimestamp(time, UTC).date().isoformat()


def plain_record(found: Record, names: Mapping[int, str]) -> dict[str, Any]:
    """Return a record as a dictionary, with the id as a text."""
    return {
        "id": str(found.id),
        "branch_id": names.get(found.branch, ""),
        "text": found.text,
        "tags": list(found.tags),
        "meta": found.meta,
        "created_at": found.created_at,
        "valid_from": found.valid_from,
        "valid_to": found.valid_to,
        "replaced_by": found.replaced_by and str(found.replaced_by),
        "score": round(found.score, 4),
        "match": found.match,
    }


def plain_event(event: Event) -> dict[str, Any]:
    """Return an event as a dictionary, with the fields beside its own.

    Its ``ts`` is the one it was written with, if any; ``created_at`` is the time of the write.
    """
    return {
        "ts": event.created_at,
        **event.data,
        "id": event.seq,
        "kind": event.kind,
        "summary": event.text,
        "tags": list(event.tags),
        "count": event.count,
        "created_at": event.created_at,
    }
