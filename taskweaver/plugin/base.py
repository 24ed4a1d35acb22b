"""Base class of plugins: objects that are called like functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from taskweaver.plugin.context import LogErrorLevel, PluginContext


class Plugin(ABC):
    """Base of plugins, of which a subclass overrides `__call__`.

    Attributes:
        name: Name it is called by.
        ctx: Its way to the session: artifacts, log, session variables.
        config: Its ``configurations`` from the YAML file.
    """

    def __init__(self, name: str, ctx: PluginContext, config: Mapping[str, Any]) -> None:
        self.name = name
        self.ctx = ctx
        self.config = dict(config)

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the plugin."""

    def log(self, level: LogErrorLevel, message: str) -> None:
        """Write a line to the plugin log, which is shown with the result of the cell."""
        self.ctx.log(level, self.name, message)

    def get_env(self, variable_name: str) -> str:
        """Return the environment variable ``PLUGIN_<plugin>_<variable_name>``.

        Raises:
            PluginError: If it is not set.
        """
        return self.ctx.get_env(self.name, variable_name)
