"""The authoring kit of plugins.

Importing this is cheap, because it happens in every kernel: reading plugin files
(`taskweaver.plugin.spec`) and finding them (`taskweaver.plugin.registry`) is imported apart.
"""

from taskweaver.plugin.base import Plugin
from taskweaver.plugin.context import PluginContext, TestPluginContext, temp_context
from taskweaver.plugin.errors import PluginError
from taskweaver.plugin.register import register_plugin, test_plugin

__all__ = [
    "Plugin",
    "PluginContext",
    "PluginError",
    "TestPluginContext",
    "register_plugin",
    "temp_context",
    "test_plugin",
]
