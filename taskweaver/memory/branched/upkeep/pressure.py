"""Fill level of a branch's memory, and the measures against a high one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.tiers.compression import Compressor, Prompts
from taskweaver.memory.branched.tiers.core import DIGEST_KEY, RESERVED
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import CoreEntry, Pressure, PressureLevel, TextModel
from taskweaver.memory.branched.upkeep.consolidation import Consolidation
from taskweaver.utils.text import unfenced

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

    def __init__(
        self,
        tiers: Tiers,
        consolidation: Consolidation,
        prompts: Prompts,
        llm: TextModel | None,
    ) -> None:
        self._database = tiers.database
        self._branches = tiers.branches
        self._core = tiers.core
        self._recall = tiers.recall
        self._consolidation = consolidation
        self._compressor = tiers.compressor
        self._prompts = prompts
        self._config = tiers.config
        self._log = tiers.log
        self._llm = llm

    def measure(self, branch_id: str) -> Pressure:
        """Return how full a branch's memory is: the level of the fuller of core and recall.

        The recall ratio is of twice the events that start a consolidation, so it rises only where
        consolidation is switched off or lags behind.
        """
        most = 4 * self._config.consolidation_threshold
        with self._database.snapshot() as connection:
            branch = self._branches.find(connection, branch_id)
            view = self._core.view(connection, branch)
            return self.of(view, self._recall.count(connection, branch, most=most))

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
        if self._llm is None:
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
        with self._database.snapshot() as connection:
            return self._core.view(connection, self._branches.find(connection, branch_id))

    def evaluate(
        self, items: Sequence[Mapping[str, Any]], context: str, task_hint: str | None
    ) -> list[Score]:
        """Ask the model how important items are for a task, given the subject of the work.

        Items are objects with ``key``, ``type`` and ``value_preview``.

        Returns:
            A score for each item; 3 and no reason where the model gave none, or there is none.
        """
        given: dict[str, tuple[int, str]] = {}
        if self._llm is not None and items:
            try:
                given = self._scores(self._llm, items, context, task_hint)
            except Exception as error:  # noqa: BLE001 - a model may raise anything
                self._log.problem("importances stay as they are", error)
        return [(str(item["key"]), *given.get(str(item["key"]), (3, ""))) for item in items]

    def _scores(
        self,
        llm: TextModel,
        items: Sequence[Mapping[str, Any]],
        context: str,
        task_hint: str | None,
    ) -> dict[str, tuple[int, str]]:
        values = {
            "context": context,
            "task_hint": (task_hint or "not said").replace("_", " "),
            "items_json": json.dumps([dict(item) for item in items], ensure_ascii=False, indent=1),
        }
        answer = unfenced(llm(self._prompts.fill("importance_evaluation", values)))
        match = _LIST.search(answer)
        if match is None:
            raise ValueError("the answer has no JSON list")
        scores = {}
        for item in json.loads(match[0]):
            if isinstance(item, dict) and isinstance(item.get("score"), int | float):
                reason = str(item.get("reason") or "given by the model")[:_REASON_CHARS]
                scores[str(item.get("key"))] = (min(5, max(1, round(item["score"]))), reason)
        return scores
