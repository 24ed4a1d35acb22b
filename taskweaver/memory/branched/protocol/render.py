"""Shows a branch's memory to a model: a pure read of one state, in a fixed order of sections.

Each section has a share of the budget; an unused rest goes to those that need more. Lines
keep their order and their form from one prompt to the next, so that prompt caches work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from taskweaver.memory.branched import values
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.protocol.updates import LLM_TAG
from taskweaver.memory.branched.tiers.branches import BranchView
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.tiers.core import INDEX_KEY, RESERVED
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import (
    CoreEntry,
    Digest,
    Event,
    Moment,
    Record,
    RenderResult,
    Section,
)
from taskweaver.memory.branched.upkeep.consolidation import Pressures
from taskweaver.memory.branched.values import checked_tags, whole
from taskweaver.utils.markup.quoting import indented
from taskweaver.utils.text import BYTES_PER_TOKEN, estimate_tokens

_SHARES = {
    "Resource Index": 0.15,
    "Core Memory": 0.35,
    "Recall Memory": 0.2,
    "Archival Memory": 0.2,
    "Resource Memory": 0.1,
}
RESOURCE_TAG = "RESOURCE_ITEM"
_RESOURCE_CHARS = 1200
_GOAL_KEYS = ("goal", "idea_md_summary")
_GOAL_CHARS = 400
_OWN_TAGS = ("RECALL_EVENT", "kind:", "run_id:", "node_id:", "phase:")
_FIRST = float("inf")
"""Rank of a summary, which is shown before all other lines."""
_LEAST_CHARS = 40
"""A line that would be cut shorter than this is left out."""


@dataclass(frozen=True, slots=True)
class _Line:
    id: str | int
    text: str
    rank: float
    """Lines of the lowest rank are dropped first when room is short."""


@dataclass
class Renderer:
    """Renders the memory of any branch."""

    _tiers: Tiers
    _pressures: Pressures

    def render(  # noqa: PLR0913 - each limit is a name of its own
        self,
        branch_id: str,
        *,
        task_hint: str | None = None,
        task: str = "",
        budget_chars: int | None = None,
        budget_tokens: int | None = None,
        at: Moment | None = None,
        leave_out: Collection[str] = (),
    ) -> RenderResult:
        """Render the view of a branch.

        Args:
            branch_id: The branch.
            task_hint: Kind of task, for example ``draft``; chooses the default budget.
            task: The task in words; with the goal and the last error it says which archival
                records are looked for.
            budget_chars: Most characters; None takes the configured budget, and a number below
                1 sets no limit.
            budget_tokens: Most tokens, by an estimate; counts in place of characters.
            at: State of the past to render; None for the present.
            leave_out: Core keys, kinds of events and tags of records that are not shown: the
                prompt says the same elsewhere. A record a model wrote is always shown.

        Raises:
            UnknownBranch, InvalidUpdate: If the branch does not exist, or a value is malformed.
        """
        for name, given in (("task", task), ("task_hint", task_hint or "")):
            if not isinstance(given, str):
                raise InvalidUpdate(name, f"must be a text, not {values.shown(given)}")
        leave_out = checked_tags("leave_out", leave_out)
        tiers = self._tiers
        budget = tiers.config.budget(task_hint)
        if budget_chars is not None:
            budget = whole("budget_chars", budget_chars, least=None)
        tiers.index.refresh()
        with tiers.branches.view(branch_id, at) as view:
            seq = tiers.database.now_seq(view.connection) if view.at is None else view.at
            core = tiers.core.entries(view)
            digest = tiers.recall.digest(view)
            events = tiers.recall.visible(view, tiers.config.consolidation_threshold, after=digest)
            query = _query(task, core, events)
            kept = [event for event in events if event.kind not in leave_out]
            shown = kept[: tiers.config.recall_max_events]
            records, items = self._records(view, query, leave_out, has_index=INDEX_KEY in core)
        with tiers.database.guarded():
            index = [_Line(INDEX_KEY, core[INDEX_KEY].value, 0)] if INDEX_KEY in core else []
            lines = {
                "Resource Index": index,
                "Core Memory": _core_lines(core, leave_out),
                "Recall Memory": _recall_lines(digest, shown),
                "Archival Memory": self._archival_lines(records),
                "Resource Memory": _resource_lines(items),
            }
            lines = {name: found for name, found in lines.items() if found}
            most = budget_tokens
            sections = _fit(lines, budget) if most is None else _fit_tokens(lines, most)
            pressure = self._pressures.of(core, sum(event.count for event in events))
            return RenderResult(_joined(sections), seq, query, sections, pressure)

    def _records(
        self,
        view: BranchView,
        query: str,
        leave_out: Collection[str],
        *,
        has_index: bool,
    ) -> tuple[list[Record], list[Record]]:
        """Return the archival records and the resource items that suit a query."""
        k = self._tiers.config.retrieval_k
        hidden = {*leave_out, *([RESOURCE_TAG] if has_index else [])}
        found = self._tiers.search.find(view, query, (1 + 2 * bool(hidden)) * k)
        kept: dict[str, Record] = {}  # a promoted record is on two branches
        for record in found:
            if LLM_TAG in record.tags or hidden.isdisjoint(record.tags):
                kept.setdefault(record.text, record)
        records = list(kept.values())[:k]
        items = self._tiers.search.find(view, query, k, tags=[RESOURCE_TAG]) if has_index else []
        return records, items

    def _archival_lines(self, records: Sequence[Record]) -> list[_Line]:
        most = self._tiers.config.section_budgets["archival_snippet"]
        return [
            _Line(
                record.id,
                f"- (#{record.id}) "
                + indented(f"{Compressor.cut(record.text, most)}{_tags(record.tags)}")
                + (" (recent, no match)" if record.match == "recency" else ""),
                -place,
            )
            for place, record in enumerate(records)
        ]


def _resource_lines(items: Iterable[Record]) -> list[_Line]:
    shown = ((item.id, Compressor.cut(item.text, _RESOURCE_CHARS)) for item in items)
    return [
        _Line(id_, indented(f"--- (#{id_})\n{text}"), -place)
        for place, (id_, text) in enumerate(shown)
    ]


def _core_lines(view: dict[str, CoreEntry], leave_out: Collection[str]) -> list[_Line]:
    return [
        _Line(key, f"- {indented(f'{key}: {entry.value}')}", entry.importance + entry.seq / 2**62)
        for key, entry in view.items()
        if key not in RESERVED and key not in leave_out
    ]


def _recall_lines(digest: Digest | None, events: Iterable[Event]) -> list[_Line]:
    lines = []
    if digest is not None:
        text = f"- [summary of {digest.count} earlier events] {indented(digest.text)}"
        lines.append(_Line(digest.seq, text, _FIRST))
    for event in events:
        times = f" x{event.count}" if event.count > 1 else ""
        text = f"- (#{event.seq}) [{event.kind}{times}] {indented(event.text)}{_tags(event.tags)}"
        lines.append(_Line(event.seq, text, event.seq))
    return lines


def _tags(tags: Iterable[str]) -> str:
    shown = [tag for tag in tags if not tag.startswith(_OWN_TAGS)]
    return f" (tags: {', '.join(shown)})" if shown else ""


def _query(task: str, view: dict[str, CoreEntry], events: Iterable[Event]) -> str:
    """Build the archival query: the last error, the task, the goal."""
    failed = (event.text for event in events if "fail" in event.kind or "error" in event.kind)
    goals = [view[key].value[:_GOAL_CHARS] for key in _GOAL_KEYS if key in view]
    return "\n".join(part for part in (next(failed, ""), task, *goals) if part.strip())


def _joined(sections: Iterable[Section]) -> str:
    return "\n".join(section.text for section in sections)


def _fit_tokens(lines: dict[str, list[_Line]], budget: int) -> tuple[Section, ...]:
    """Fit sections into a number of tokens: into fewer characters until the estimate agrees."""
    budget = whole("budget_tokens", budget, least=None)
    chars = int(budget * BYTES_PER_TOKEN)
    sections = _fit(lines, max(1, chars))
    while chars > 1 and (tokens := estimate_tokens(_joined(sections))) > budget:
        chars = min(chars - 1, int(chars * budget / tokens))
        sections = _fit(lines, max(1, chars))
    return sections


def _fit(lines: dict[str, list[_Line]], budget: int) -> tuple[Section, ...]:
    if budget < 1:
        return tuple(_section(title, found, None) for title, found in lines.items())
    rooms = _rooms(lines, budget - len(lines) + 1)
    sections = (_section(title, lines[title], room) for title, room in rooms.items())
    return tuple(section for section in sections if section.text)


def _rooms(lines: dict[str, list[_Line]], budget: int) -> dict[str, int]:
    """Divide a budget: a share for each section, and the rest for larger sections."""
    needs = {title: _size(title, found) for title, found in lines.items()}
    rooms = {title: min(need, int(budget * _SHARES[title])) for title, need in needs.items()}
    left = budget - sum(rooms.values())
    for title, need in needs.items():
        more = max(0, min(need - rooms[title], left))
        rooms[title] += more
        left -= more
    return rooms


def _size(title: str, lines: Iterable[_Line]) -> int:
    return len(title) + 1 + sum(len(line.text) + 1 for line in lines)


def _section(title: str, lines: list[_Line], room: int | None) -> Section:
    """Take lines by rank while there is room, and restore the order of the lines."""
    if room is None:
        room = _size(title, lines)
    left = room - len(title) - 1
    taken: dict[str | int, str] = {}
    for line in sorted(lines, key=lambda line: -line.rank):
        text, most = line.text, left
        if line.rank == _FIRST:  # a summary leaves room for what is newer, but for half at most
            others = sum(len(other.text) + 1 for other in lines if other is not line)
            most = max(left // 2, left - others)
        if len(text) + 1 > most:
            text = Compressor.cut(text, most - 1) if most > _LEAST_CHARS else ""
        if not text:
            continue
        taken[line.id] = text
        left -= len(text) + 1
    shown = tuple(line.id for line in lines if line.id in taken)
    dropped = tuple(line.id for line in lines if line.id not in taken)
    text = "\n".join([f"{title}:", *(taken[id_] for id_ in shown)]) if shown else ""
    return Section(title, text, shown, dropped)
