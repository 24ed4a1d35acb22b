"""The plugins in a kernel: loaded, replaced, removed and tested."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from taskweaver.ces.inkernel.plugins.context import KernelPluginContext, PluginSession
from taskweaver.ces.inkernel.timelimit import TooSlow, hard_time_limit
from taskweaver.plugin.base import Plugin
from taskweaver.plugin.errors import PluginError
from taskweaver.plugin.register import MODULE_PREFIX, RegisteredPlugin, collect

Payload = dict[str, Any]
_FRAMES = 3


class _Loaded(NamedTuple):
    registered: RegisteredPlugin
    plugin: Plugin


class LoadedPlugins:
    """The plugins of a kernel, each under its name in the namespace of cells."""

    def __init__(self, namespace: dict[str, Any], session: PluginSession) -> None:
        self._namespace = namespace
        self._session = session
        self._loaded: dict[str, _Loaded] = {}

    @property
    def names(self) -> frozenset[str]:
        """Names of the plugins, without those that a cell has bound to another object."""
        found = self._loaded.items()
        return frozenset(n for n, it in found if self._namespace.get(n) is it.plugin)

    def load(self, payload: Payload) -> Payload:
        """Remove and load the plugins of a request; name and leave out those that fail to load."""
        plugins: list[Payload] = payload["plugins"]
        _make_importable({str(Path(item["file"]).parent) for item in plugins if item["file"]})
        for name in payload["removed"]:
            self._remove(name)
        problems = {item["name"]: self._load(item, payload["limit_s"]) for item in plugins}
        return {"problems": {name: problem for name, problem in problems.items() if problem}}

    def _load(self, item: Payload, limit_s: float) -> str:
        """Load one plugin; return why it cannot be loaded, or an empty text."""
        name = item["name"]
        self._remove(name)
        if name in self._namespace:
            return f"this session has a variable called {name!r} already"
        origin = f"plugin {name} ({item['file']})" if item["file"] else f"plugin {name}"
        context = KernelPluginContext(self._session, origin)
        try:
            with hard_time_limit(limit_s):
                registered = collect(item["source"], name, item["file"])
                plugin = registered.factory(name, context, item["config"])
        except PluginError as error:
            return error.problem
        except TooSlow:
            return f"it did not load within {limit_s:g} s"
        except KeyboardInterrupt:
            return "it was interrupted while it was loaded"
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a constructor may raise anything; it is told
            return f"it cannot be made: {type(error).__name__}: {error}"
        if item["help"]:
            plugin.__doc__ = item["help"]
        self._session.calls.watch(plugin)
        self._loaded[name] = _Loaded(registered, plugin)
        self._namespace[name] = plugin
        return ""

    def _remove(self, name: str) -> None:
        """Remove a plugin; a variable that has taken its name stays."""
        loaded = self._loaded.pop(name, None)
        if loaded is not None and self._namespace.get(name) is loaded.plugin:
            del self._namespace[name]

    def test(self, payload: Payload) -> Payload:
        """Run the tests that came with a plugin: name and failure of each, empty for none."""
        loaded = self._loaded.get(payload["name"])
        if loaded is None:
            return {"results": [["loading", f"{payload['name']} is not loaded"]]}
        results = []
        for test in loaded.registered.tests:
            problem = ""
            try:
                with hard_time_limit(payload["limit_s"]):
                    test.run(loaded.plugin)
            except TooSlow:
                problem = f"it did not end within {payload['limit_s']:g} s"
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a test fails by raising; it is told
                frames = error.__traceback__.tb_next if error.__traceback__ else None
                problem = "".join(
                    traceback.format_exception(type(error), error, frames, limit=-_FRAMES)
                )
            results.append([test.name, problem])
        return {"results": results}


def _make_importable(folders: Iterable[str]) -> None:
    """Let plugins import the files beside them, as these are now."""
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)  # at the end: no plugin hides a module
    importlib.invalidate_caches()
    for name, module in list(sys.modules.items()):
        file = _file_of(module)
        if file and not name.startswith(MODULE_PREFIX) and str(Path(file).parent) in folders:
            del sys.modules[name]


def _file_of(module: object) -> str:
    # Modules that load late would do so for any attribute that is asked for.
    facts: Mapping[str, Any] = getattr(module, "__dict__", {})
    file = facts.get("__file__")
    return file if isinstance(file, str) else ""
