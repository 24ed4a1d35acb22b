"""Consolidation and relief: old events become a digest, and a full core memory is emptied.

Both work without a model, and better with one. The originals of events stay where they are: a
search still finds them, and siblings and ancestors see them as before. A descendant starts from the
digest it inherits, so nothing is summarised twice. The pressure says how full a memory is.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.tiers.branches import BranchView
from taskweaver.memory.branched.tiers.compression import Compressor, PromptedModel
from taskweaver.memory.branched.tiers.core import DIGEST_KEY, RESERVED
from taskweaver.memory.branched.tiers.recall import grouped
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import (
    FOREVER,
    Branch,
    CoreEntry,
    Digest,
    Event,
    Pressure,
    PressureLevel,
)
from taskweaver.memory.branched.values import whole

DIGEST_CHARS = 1200
_FEWEST_TEXTS = 3
_FEWEST_CHARS = 1200
"""Texts and characters below which a model is not asked: lines of the events say as much."""


class _Old(NamedTuple):
    """The events that a digest covers, after another one, and all of both by kind."""

    before: Digest | None
    events: Sequence[Event]
    kinds: Counter[str]


class Consolidation:
    """Keeps the events in view within their window."""

    def __init__(self, tiers: Tiers) -> None:
        self._database = tiers.database
        self._branches = tiers.branches
        self._recall = tiers.recall
        self._config = tiers.config
        self._log = tiers.log
        self._model = tiers.model

    def within_append(self, writer: Writer, branch_id: str) -> None:
        """Consolidate in the transaction of an append, unless a model is to be asked."""
        if self._model is None and self._is_due(branch_id):
            branch = self._branches.writable(writer, branch_id)
            threshold = self._config.consolidation_threshold
            view = BranchView(writer.connection, branch)
            old = self._old(view, self._kept, above=threshold)
            if old is not None:
                self._add(writer, branch, old, self._summary(branch, old, ()), self._kept)

    def after_append(self, branch_id: str) -> int:
        """Consolidate when the events in view exceed the threshold, and return how many were."""
        if not self._is_due(branch_id):
            return 0
        return self.consolidate(branch_id, above=self._config.consolidation_threshold)

    def _is_due(self, branch_id: str) -> bool:
        return self._branches.countdown.is_due(branch_id) and self._config.auto_consolidate

    @property
    def _kept(self) -> int:
        return self._config.recall_max_events

    def consolidate(
        self,
        branch_id: str,
        *,
        keep: int | None = None,
        inherited_only: bool = False,
        above: int = 0,
    ) -> int:
        """Sum up all events in view but the newest, and return how many a new digest covers.

        Those to `keep` stay as they are, None keeps a window; `inherited_only` are ancestors'
        events. Nothing is done unless more events than `above` are in view.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        kept = self._kept if keep is None else whole("keep", keep)
        with self._branches.view(branch_id) as view:
            old = self._old(view, kept, inherited_only=inherited_only, above=above)
            path = self._branches.path(view)
        if old is None:
            return 0
        shared = {number for number, up_to in path[1:] if up_to == FOREVER}
        text = self._summary(view.branch, old, shared)
        left = None if inherited_only else kept

        def act(writer: Writer) -> bool:
            return self._add(writer, self._branches.writable(writer, branch_id), old, text, left)

        return len(old.events) if self._database.write(act) else 0

    def _old(
        self, view: BranchView, kept: int, *, inherited_only: bool = False, above: int = 0
    ) -> _Old | None:
        """Return the events that a new digest covers (see `consolidate`)."""
        before = self._recall.digest(view)
        rows = self._recall.beyond(view, before, inherited_only=inherited_only)
        events = grouped(view.connection, rows[kept:]) if len(rows) > above else []
        if not events:
            if above:
                self._branches.countdown.counted(view.branch, above + 1 - len(rows))
            return None
        kinds: Counter[str] = Counter()
        if before is not None:
            query = "SELECT kinds FROM digests WHERE seq = ?"
            kinds.update(json.loads(view.connection.execute(query, (before.seq,)).fetchone()[0]))
        for event in events:
            kinds[event.kind] += event.count
        return _Old(before, events, kinds)

    def _add(self, writer: Writer, branch: Branch, old: _Old, text: str, left: int | None) -> bool:
        """Add a digest of old events to a branch, and return False if another one was faster.

        `left` is the number of events it does not cover; None if that is not known.
        """
        up_to, kinds = old.events[0].seq, dict(old.kinds)
        is_added = self._recall.add_digest(writer, branch, old.before, up_to, kinds, text)
        if is_added and left is not None:
            threshold = self._config.consolidation_threshold
            self._branches.countdown.counted(branch, threshold + 1 - left)
        return is_added

    def _summary(self, branch: Branch, old: _Old, shared: Collection[int]) -> str:
        """Sum events up, with a model for long texts.

        Events of `shared` branches, whose later writes all descendants see, are summed up there:
        here each of many descendants would ask the same. Their lines follow on the summary.
        """
        told = [event for event in old.events if event.kind not in self._config.plain_kinds]
        own = [event for event in told if event.branch not in shared]
        is_enough = len(own) >= _FEWEST_TEXTS and sum(len(e.text) for e in own) >= _FEWEST_CHARS
        if self._model is not None and is_enough:
            try:
                answer = self._ask(self._model, branch, old.before, own)
            except Exception as error:  # noqa: BLE001 - a model may raise anything; ours never fails
                self._log.problem("events were summed up without the model", error)
            else:
                lines = [_line(event) for event in told if event.branch in shared]
                return Compressor.cut("\n".join([answer, *lines]), DIGEST_CHARS)
        return extract(old.before, told, old.kinds)

    def _ask(
        self, model: PromptedModel, branch: Branch, before: Digest | None, old: Sequence[Event]
    ) -> str:
        entries = [{"kind": "earlier summary", "text": before.text}] if before else []
        entries += [{"kind": event.kind, "text": event.text} for event in reversed(old)]
        values = {
            "context": f"They are in view on the branch {branch.id!r}; it inherits some of them.",
            "max_chars": DIGEST_CHARS,
            "entries_json": json.dumps(entries, ensure_ascii=False, indent=1),
        }
        answer = model.ask("consolidation", values)
        if not answer:
            raise ValueError("the answer is empty")
        return Compressor.cut(answer, DIGEST_CHARS)


def extract(before: Digest | None, old: Sequence[Event], kinds: Counter[str]) -> str:
    """Sum events up without a model: how many of which kind, and the newest lines.

    The events are the newest first. `kinds` counts all of them, and those of the digest they follow
    on, which has the same form.
    """
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    text = f"{sum(kinds.values())} events: {counts}"
    earlier = before.text.splitlines()[1:] if before else []
    for line in [*map(_line, old), *earlier]:
        if len(text) + len(line) + 1 > DIGEST_CHARS:
            break
        text += f"\n{line}"
    return Compressor.cut(text, DIGEST_CHARS)


def _line(event: Event) -> str:
    times = f" x{event.count}" if event.count > 1 else ""
    return f"- [{event.kind}{times}] {Compressor.cut(' '.join(event.text.split()), 160)}"


LEVELS: tuple[PressureLevel, ...] = ("low", "medium", "high", "critical")
_LIST = re.compile(r"\[.*\]", re.DOTALL)
_PREVIEW_CHARS = 200
_REASON_CHARS = 100
_ARCHIVED_AT = 2
"""Keys with this importance or less are moved to archival memory under high pressure."""

Score = tuple[str, int, str]
"""A key, its importance from 1 to 5, and the reason."""


@dataclass(slots=True)
class Relief:
    """Outcome of `Pressures.relieve`.

    Attributes:
        level: The level it acted on.
        actions: Measures taken, as ``action:count``.
        freed_chars: Characters of core memory that were freed.
        evicted: Core keys that moved to archival memory.
        consolidated: Events that a new digest covers.
        new_level: The level afterwards.
    """

    level: PressureLevel
    actions: list[str] = field(default_factory=list)
    freed_chars: int = 0
    evicted: int = 0
    consolidated: int = 0
    new_level: PressureLevel = "low"


class Pressures:
    """Measures and relieves the pressure on branches."""

    def __init__(self, tiers: Tiers, consolidation: Consolidation) -> None:
        self._database = tiers.database
        self._branches = tiers.branches
        self._core = tiers.core
        self._recall = tiers.recall
        self._consolidation = consolidation
        self._compressor = tiers.compressor
        self._config = tiers.config
        self._log = tiers.log
        self._model = tiers.model

    def measure(self, branch_id: str) -> Pressure:
        """Return how full a branch's memory is: the level of the fuller of core and recall.

        The recall ratio is of twice the events that start a consolidation, so it rises only where
        consolidation is switched off or lags behind.
        """
        most = 4 * self._config.consolidation_threshold
        with self._branches.view(branch_id) as view:
            return self.of(self._core.entries(view), self._recall.count(view, most=most))

    def of(self, view: Mapping[str, CoreEntry], events: int) -> Pressure:
        """Return the pressure of a core view and a number of events that no digest covers."""
        threshold = self._config.consolidation_threshold
        chars = self._core.chars(view)
        core_ratio = min(1.0, chars / self._config.core_max_chars)
        recall_ratio = min(2.0, events / max(1, 2 * threshold))
        overall = max(core_ratio, min(1.0, recall_ratio))
        limits = self._config.pressure_thresholds
        level: PressureLevel = "low"
        for name in LEVELS[1:]:
            level = name if overall >= limits[name] else level
        advice = {
            "consolidate_recall": recall_ratio > 1,
            "evict_core": core_ratio > limits["high"],
            "compress_core": core_ratio > limits["medium"],
            "summarize_recall": recall_ratio > limits["medium"],
        }
        advised = tuple(name for name, applies in advice.items() if applies)
        return Pressure(level, chars, round(core_ratio, 3), events, round(recall_ratio, 3), advised)

    def relieve_if_needed(self, branch_id: str, *, task_hint: str | None = None) -> Relief | None:
        """Relieve a branch whose pressure has reached the configured level."""
        if not self._config.auto_consolidate:
            return None
        level = self.measure(branch_id).level
        is_needed = LEVELS.index(level) >= LEVELS.index(self._config.consolidation_trigger)
        return self.relieve(branch_id, level, task_hint=task_hint) if is_needed else None

    def relieve(
        self, branch_id: str, level: PressureLevel, *, task_hint: str | None = None
    ) -> Relief:
        """Take the measures of a level.

        From medium on, a model weighs the core keys again (without one they keep their
        importance). From high on, unimportant keys go to archival memory and old events into a
        digest. At critical, the rest of the keys that are not pinned is folded into one.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            InvalidUpdate: If the level does not exist.
        """
        if level not in LEVELS:
            raise InvalidUpdate("pressure_level", f"must be one of {', '.join(LEVELS)}")
        relief = Relief(level)
        rank = LEVELS.index(level)
        before = self.measure(branch_id)
        if rank >= LEVELS.index("medium"):
            self._weigh(branch_id, task_hint, relief)
        if rank >= LEVELS.index("high"):
            self._archive(branch_id, relief)
            relief.consolidated = self._consolidation.consolidate(branch_id)
            relief.actions.append(f"consolidated_recall:{relief.consolidated}")
        if rank >= LEVELS.index("critical"):
            self._fold(branch_id, relief)
        after = self.measure(branch_id)
        relief.freed_chars = max(0, before.core_chars - after.core_chars)
        relief.new_level = after.level
        return relief

    def _weigh(self, branch_id: str, task_hint: str | None, relief: Relief) -> None:
        if self._model is None:
            return
        view = self._view(branch_id)
        items = [
            {
                "key": key,
                "type": "core",
                "chars": len(entry.value),
                "value_preview": Compressor.cut(entry.value, _PREVIEW_CHARS),
            }
            for key, entry in view.items()
            if key not in (*RESERVED, DIGEST_KEY)
        ]
        scores = {
            key: score for key, score, reason in self.evaluate(items, "", task_hint) if reason
        }
        self._database.write(
            lambda writer: self._core.rescore(
                writer, self._branches.writable(writer, branch_id), scores
            )
        )
        relief.actions.append(f"evaluated_core_importance:{len(scores)}")

    def _archive(self, branch_id: str, relief: Relief) -> None:
        view = self._view(branch_id)
        if not self._is_core_high(view):
            return
        keys = [key for key, entry in view.items() if entry.importance <= _ARCHIVED_AT]
        moved = self._database.write(
            lambda writer: self._core.evict(
                writer, self._branches.writable(writer, branch_id), keys, reason="pressure"
            )
        )
        relief.evicted += len(moved)
        relief.actions.append(f"evicted_core_items:{len(moved)}")

    def _fold(self, branch_id: str, relief: Relief) -> None:
        view = self._view(branch_id)
        if not self._is_core_high(view):
            return
        lines = "\n".join(f"{key}: {entry.value}" for key, entry in view.items())
        summary = self._compressor.compress(
            lines, self._config.core_max_chars // 4, "core memory digest"
        )
        folded = self._database.write(
            lambda writer: self._core.fold(
                writer, self._branches.writable(writer, branch_id), summary
            )
        )
        relief.evicted += len(folded)
        relief.actions.append(f"folded_core_items:{len(folded)}")

    def _is_core_high(self, view: Mapping[str, CoreEntry]) -> bool:
        limit = self._config.core_max_chars * self._config.pressure_thresholds["high"]
        return self._core.chars(view) >= limit

    def _view(self, branch_id: str) -> dict[str, CoreEntry]:
        with self._branches.view(branch_id) as view:
            return self._core.entries(view)

    def evaluate(
        self, items: Sequence[Mapping[str, Any]], context: str, task_hint: str | None
    ) -> list[Score]:
        """Ask the model how important items are for a task, given the subject of the work.

        Items are objects with ``key``, ``type`` and ``value_preview``.

        Returns:
            A score for each item; 3 and no reason where the model gave none, or there is none.
        """
        given: dict[str, tuple[int, str]] = {}
        if self._model is not None and items:
            try:
                given = self._scores(self._model, items, context, task_hint)
            except Exception as error:  # noqa: BLE001 - a model may raise anything
                self._log.problem("importances stay as they are", error)
        return [(str(item["key"]), *given.get(str(item["key"]), (3, ""))) for item in items]

    def _scores(
        self,
        model: PromptedModel,
        items: Sequence[Mapping[str, Any]],
        context: str,
        task_hint: str | None,
    ) -> dict[str, tuple[int, str]]:
        values = {
            "context": context,
            "task_hint": (task_hint or "not said").replace("_", " "),
            "items_json": json.dumps([dict(item) for item in items], ensure_ascii=False, indent=1),
        }
        match = _LIST.search(model.ask("importance_evaluation", values))
        if match is None:
            raise ValueError("the answer has no JSON list")
        scores = {}
        for item in json.loads(match[0]):
            if isinstance(item, dict) and isinstance(item.get("score"), int | float):
                reason = str(item.get("reason") or "given by the model")[:_REASON_CHARS]
                scores[str(item.get("key"))] = (min(5, max(1, round(item["score"]))), reason)
        return scores
