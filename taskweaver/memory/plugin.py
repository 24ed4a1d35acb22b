"""The registry of plugins under the import path that plugins and tools have used for long."""

from injector import Module, provider, singleton

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry, PluginParameter, PluginSpec

__all__ = ["PluginEntry", "PluginModule", "PluginParameter", "PluginRegistry", "PluginSpec"]


class PluginModule(Module):
    """The plugins of a project, for injection."""

    @singleton
    @provider
    def plugins(self, src: AppConfigSource) -> PluginRegistry:
        """The registry of ``plugin.base_path``."""
        return PluginRegistry(src.get_path("plugin.base_path"))
