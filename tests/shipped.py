"""The plugins in the top-level folder, made as the kernel makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskweaver.plugin import Plugin
from taskweaver.plugin.register import collect
from taskweaver.plugin.registry import PluginRegistry

REGISTRY = PluginRegistry(Path(__file__).parents[1] / "plugins")
SHIPPED = [
    "anomaly_detection",
    "document_text",
    "long_running_demo",
    "sql_query",
    "table_profile",
    "time_series_forecast",
]


def make(name: str, ctx: Any, **config: Any) -> Plugin:
    """Return a plugin with the configuration of its file, of which `config` replaces parts."""
    entry = REGISTRY.plugins[name]
    found = collect(entry.source(), name, str(entry.path))
    return found.factory(name, ctx, {**entry.config, **config})
