"""The registry of plugins under the import path that plugins and tools have used for long."""

from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry, PluginParameter, PluginSpec

__all__ = ["PluginEntry", "PluginParameter", "PluginRegistry", "PluginSpec"]
