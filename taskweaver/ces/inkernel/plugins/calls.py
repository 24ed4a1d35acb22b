"""Record of a cell's plugin calls: name, start, duration and outcome."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from taskweaver.plugin.base import Plugin

_MOST_CALLS = 200
_MARK = "__taskweaver_timed__"

Row = tuple[str, float, float, str]


@dataclass(slots=True)
class PluginCallLog:
    """The plugin calls of the running cell.

    Attributes:
        rows: Name, seconds since the cell began, seconds it took, and type of its error; the
            first 200.
    """

    rows: list[Row] = field(default_factory=list)
    _began: float = 0.0

    def begin(self) -> None:
        """Begin a cell."""
        self.rows = []
        self._began = time.perf_counter()

    def watch(self, plugin: Plugin) -> None:
        """Record each call of a plugin, by wrapping its class, which each load defines anew."""
        kind = type(plugin)
        if not hasattr(kind.__call__, _MARK):
            timed = self._timed(kind.__call__)
            setattr(timed, _MARK, True)
            kind.__call__ = timed  # type: ignore[method-assign]

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def timed(plugin: Plugin, /, *args: Any, **kwargs: Any) -> Any:
            began, error = time.perf_counter(), ""
            try:
                return call(plugin, *args, **kwargs)
            except BaseException as raised:
                error = type(raised).__name__
                raise
            finally:
                if len(self.rows) < _MOST_CALLS:
                    ended = time.perf_counter()
                    self.rows.append((plugin.name, began - self._began, ended - began, error))

        return timed
