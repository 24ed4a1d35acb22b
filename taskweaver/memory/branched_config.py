"""The limits of a branched memory, read from the configuration of an application."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.keys.known_keys import BY_NAME
from taskweaver.memory.branched.config import MemoryConfig


def read_memory_config(src: AppConfigSource) -> MemoryConfig:
    """Return the limits and switches under ``memory.`` in the configuration of an application.

    Raises:
        ConfigError: If a value is of the wrong type.
    """
    values = {
        name: src.read(BY_NAME[f"memory.{name}"])
        for name in (item.name for item in fields(MemoryConfig))
        if f"memory.{name}" in BY_NAME and name != "prompt_dir"
    }
    log_dir = src.get_path("memory.memory_log_dir", None)
    return MemoryConfig(
        **values,
        section_budgets=_read_all(src, "memory.section_budgets."),
        pressure_thresholds=_read_all(src, "memory.pressure_thresholds."),
        budgets={
            task: src.get_int(f"memory.{task}_budget_chars") for task in MemoryConfig().budgets
        },
        log_dir=Path(log_dir) if log_dir else None,
        prompt_dir=Path(src.get_path("memory.prompt_dir")),
    )


def _read_all(src: AppConfigSource, prefix: str) -> dict[str, Any]:
    keys = [key for name, key in BY_NAME.items() if name.startswith(prefix)]
    return {key.name.removeprefix(prefix): src.read(key) for key in keys}
