"""The plugin behind every function of the application that code in a kernel may call.

Its configuration describes the call: ``parameters``, the names in order, ``needed``, those a call
must give, and ``about``, the text `help` shows.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskweaver.plugin import Plugin, PluginContext, register_plugin


@register_plugin
class HostFunction(Plugin):
    """Calls the function of its name, and returns the value, or files as paths."""

    def __init__(self, name: str, ctx: PluginContext, config: Mapping[str, Any]) -> None:
        super().__init__(name, ctx, config)
        self.__doc__ = self.config.get("about")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function. Arguments that are None and not needed count as left out."""
        names, needed = self.config["parameters"], self.config["needed"]
        if len(args) > len(names):
            raise TypeError(f"{self.name}() takes {len(names)} arguments, not {len(args)}")
        given = dict(zip(names, args, strict=False))
        twice = given.keys() & kwargs.keys()
        if twice:
            raise TypeError(f"{self.name}() got {', '.join(sorted(twice))} twice")
        given = {
            name: value
            for name, value in (given | kwargs).items()
            if value is not None or name in needed
        }
        parts = self.ctx.call_host(self.name, given)
        values = [self._value(part) for part in parts]
        return values[0] if len(values) == 1 else values or None

    def _value(self, part: Mapping[str, Any]) -> Any:
        """Return a part of a result. A file is written and listed with the result of the cell."""
        if "file" not in part:
            return part["value"]
        _, path = self.ctx.create_artifact_path(
            self.name, part["file"], part["type"], f"from {self.name}"
        )
        Path(path).write_bytes(base64.b64decode(part["data"]))
        return path
