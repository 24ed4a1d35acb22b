"""The plugins of one kernel: loaded, and loaded again after each restart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from taskweaver.ces.claims import text
from taskweaver.ces.common import PluginCode

Request = Callable[[dict[str, Any], float], Mapping[str, Any] | None]
"""Send an operation to the running kernel; None when the kernel ended over it."""

_LOAD_S, _LOAD_GRACE_S = 30.0, 5.0
_ENDED = "it ended the Python session, which was restarted"


class KernelPlugins:
    """Plugins of a kernel.

    Attributes:
        loaded: Code of each plugin that is loaded, by name.
    """

    def __init__(self, request: Request, cell_timeout_s: float) -> None:
        self.loaded: dict[str, PluginCode] = {}
        self._request = request
        self._limit_s = min(_LOAD_S, cell_timeout_s)
        self._lost: dict[str, str] = {}

    def update(self, plugins: Iterable[PluginCode], removed: Iterable[str]) -> dict[str, str]:
        """Load new and changed plugins, and remove others; return the problems by name."""
        gone = list(removed)
        new = [plugin for plugin in plugins if self.loaded.get(plugin.name) != plugin]
        for name in [*gone, *(plugin.name for plugin in new)]:
            self.loaded.pop(name, None)
        return self._load(new, gone) if new or gone else {}

    def load_again(self) -> None:
        """Load all plugins into a fresh kernel; `take_lost` returns those that fail now."""
        before, self.loaded = self.loaded, {}
        try:
            self._lost |= self._load(list(before.values()), []) if before else {}
        except BaseException:
            self.loaded = before  # for the kernel that comes next
            raise

    def take_lost(self) -> list[tuple[str, str, str]]:
        """Return, once, a log line for each plugin that a restart lost."""
        lost, self._lost = self._lost, {}
        return [("error", name, f"{problem} (left out)") for name, problem in lost.items()]

    def _load(self, new: Sequence[PluginCode], gone: Sequence[str]) -> dict[str, str]:
        """Load plugins in one request; each alone if one of them ended the kernel."""
        problems = self._ask(new, gone)
        if problems is not None:
            return problems
        problems = {}
        for plugin in new:
            alone = self._ask([plugin], [])
            problems |= {plugin.name: _ENDED} if alone is None else alone
        return problems

    def _ask(self, new: Sequence[PluginCode], gone: Sequence[str]) -> dict[str, str] | None:
        operation = {
            "op": "load",
            "plugins": [asdict(plugin) for plugin in new],
            "removed": list(gone),
            "limit_s": self._limit_s,
        }
        reply = self._request(operation, self._limit_s * len(new) + _LOAD_GRACE_S)
        reported = None if reply is None else reply.get("problems")
        if not isinstance(reported, dict):
            return None
        problems = {item.name: text(reported[item.name]) for item in new if item.name in reported}
        self.loaded |= {plugin.name: plugin for plugin in new if plugin.name not in problems}
        return problems
