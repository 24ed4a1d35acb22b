"""Limits and switches of a branched memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from taskweaver.memory.branched.errors import InvalidUpdate

_SECTION_BUDGETS = {
    "idea_summary": 9600,
    "idea_section_limit": 4800,
    "phase0_summary": 5000,
    "archival_snippet": 3000,
    "results": 8000,
}
_PRESSURE_THRESHOLDS = {"medium": 0.7, "high": 0.85, "critical": 0.95}
_TASK_BUDGETS = {
    "metrics_extraction": 4000,
    "plotting_code": 4000,
    "plot_selection": 4000,
    "vlm_analysis": 4000,
    "node_summary": 4000,
}


_CHOICES = {
    "use_fts": ("auto", "on", "off"),
    "synchronous": ("FULL", "NORMAL"),
    "consolidation_trigger": ("medium", "high", "critical"),
}
_POSITIVE = ("core_max_chars", "recall_max_events", "archival_max_chars")


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """Keys under ``memory.``. Docs/configuration.md describes each.

    Attributes:
        section_budgets: ``memory.section_budgets.*``, in characters.
        pressure_thresholds: ``memory.pressure_thresholds.*``, shares of a budget.
        budgets: ``memory.<task>_budget_chars`` by task.
        log_dir: Folder of the operation logs; None is beside the database.
        prompt_dir: Folder of prompt files that replace the package's own; None for none.
        plain_kinds: Kinds of events that a program writes; a model is not asked to sum them up.
    """

    core_max_chars: int = 16000
    recall_max_events: int = 20
    retrieval_k: int = 8
    use_fts: Literal["auto", "on", "off"] = "auto"
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    archival_max_chars: int = 8000
    memory_budget_chars: int = 24000
    memory_log_enabled: bool = True
    memory_log_max_chars: int = 400
    use_llm_compression: bool = True
    max_compression_iterations: int = 5
    auto_consolidate: bool = True
    consolidation_trigger: Literal["medium", "high", "critical"] = "high"
    recall_consolidation_threshold: float = 1.5
    max_memory_read_rounds: int = 3
    final_memory_enabled: bool = True
    final_memory_filename_md: str = "final_memory_for_paper.md"
    final_memory_filename_json: str = "final_memory_for_paper.json"
    section_budgets: Mapping[str, int] = field(default_factory=_SECTION_BUDGETS.copy)
    pressure_thresholds: Mapping[str, float] = field(default_factory=_PRESSURE_THRESHOLDS.copy)
    budgets: Mapping[str, int] = field(default_factory=_TASK_BUDGETS.copy)
    log_dir: Path | None = None
    prompt_dir: Path | None = None
    plain_kinds: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check values that SQLite or a limit would misread.

        Raises:
            InvalidUpdate: If one is malformed.
        """
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise InvalidUpdate(name, f"must be {' or '.join(choices)}, not {value!r}")
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise InvalidUpdate(name, f"must be at least 1, not {getattr(self, name)}")

    def budget(self, task_hint: str | None) -> int:
        """Return the characters a prompt for a task may show of the memory."""
        return self.budgets.get(task_hint or "", self.memory_budget_chars)

    @property
    def consolidation_threshold(self) -> int:
        """Events in view beyond which the oldest are summarised."""
        return int(self.recall_max_events * self.recall_consolidation_threshold)
