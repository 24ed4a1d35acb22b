"""Limits and switches of a branched memory. The defaults are those of the table of keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.known_keys import BY_NAME

_TASKS = (
    "metrics_extraction",
    "plotting_code",
    "plot_selection",
    "vlm_analysis",
    "node_summary",
)


def _key(name: str) -> Any:
    return field(default=BY_NAME[f"memory.{name}"].default)


def _keys(prefix: str) -> Any:
    start = f"memory.{prefix}."
    found = {
        name.removeprefix(start): key.default
        for name, key in BY_NAME.items()
        if name.startswith(start)
    }
    return field(default_factory=lambda: dict(found))


def _task_budgets() -> dict[str, int]:
    return {task: BY_NAME[f"memory.{task}_budget_chars"].default for task in _TASKS}


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """Keys under ``memory.``; docs/configuration.md says what each does.

    Attributes:
        section_budgets: ``memory.section_budgets.*``, in characters.
        pressure_thresholds: ``memory.pressure_thresholds.*``, shares of a budget.
        budgets: ``memory.<task>_budget_chars`` by task.
        log_dir: Folder of the operation logs; None is beside the database.
        prompt_dir: Folder of prompt files that replace ours; None for none.
    """

    core_max_chars: int = _key("core_max_chars")
    recall_max_events: int = _key("recall_max_events")
    retrieval_k: int = _key("retrieval_k")
    use_fts: Literal["auto", "on", "off"] = _key("use_fts")
    synchronous: Literal["FULL", "NORMAL"] = _key("synchronous")
    archival_max_chars: int = _key("archival_max_chars")
    memory_budget_chars: int = _key("memory_budget_chars")
    memory_log_enabled: bool = _key("memory_log_enabled")
    memory_log_max_chars: int = _key("memory_log_max_chars")
    use_llm_compression: bool = _key("use_llm_compression")
    max_compression_iterations: int = _key("max_compression_iterations")
    auto_consolidate: bool = _key("auto_consolidate")
    consolidation_trigger: Literal["medium", "high", "critical"] = _key("consolidation_trigger")
    recall_consolidation_threshold: float = _key("recall_consolidation_threshold")
    max_memory_read_rounds: int = _key("max_memory_read_rounds")
    final_memory_enabled: bool = _key("final_memory_enabled")
    final_memory_filename_md: str = _key("final_memory_filename_md")
    final_memory_filename_json: str = _key("final_memory_filename_json")
    section_budgets: Mapping[str, int] = _keys("section_budgets")
    pressure_thresholds: Mapping[str, float] = _keys("pressure_thresholds")
    budgets: Mapping[str, int] = field(default_factory=_task_budgets)
    log_dir: Path | None = None
    prompt_dir: Path | None = None

    def budget(self, task_hint: str | None) -> int:
        """Return the characters a prompt for a task may show of the memory."""
        return self.budgets.get(task_hint or "", self.memory_budget_chars)

    @property
    def consolidation_threshold(self) -> int:
        """Events in view beyond which the oldest are summarised."""
        return int(self.recall_max_events * self.recall_consolidation_threshold)

    @classmethod
    def from_source(cls, src: AppConfigSource) -> Self:
        """Read the configuration of an application.

        Raises:
            ConfigError: If a value is of the wrong type.
        """
        values = {
            name: src.read(BY_NAME[f"memory.{name}"])
            for name in (item.name for item in fields(cls))
            if f"memory.{name}" in BY_NAME and name != "prompt_dir"
        }
        log_dir = src.get_path("memory.memory_log_dir", None)
        return cls(
            **values,
            section_budgets=_read_all(src, "section_budgets"),
            pressure_thresholds=_read_all(src, "pressure_thresholds"),
            budgets={task: src.get_int(f"memory.{task}_budget_chars") for task in _TASKS},
            log_dir=Path(log_dir) if log_dir else None,
            prompt_dir=Path(src.get_path("memory.prompt_dir")),
        )


def _read_all(src: AppConfigSource, prefix: str) -> dict[str, Any]:
    start = f"memory.{prefix}."
    keys = [key for name, key in BY_NAME.items() if name.startswith(start)]
    return {key.name.removeprefix(start): src.read(key) for key in keys}
