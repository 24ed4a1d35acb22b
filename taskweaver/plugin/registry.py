"""Finds the plugins of a folder."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

from taskweaver.plugin.errors import PluginError
from taskweaver.plugin.spec import PluginEntry

_Fingerprint = frozenset[tuple[str, int, int]]


class PluginRegistry:
    """The plugins in a folder, read again when one of its files changes."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self._lock = threading.Lock()
        self._seen: _Fingerprint | None = None
        self._plugins: dict[str, PluginEntry] = {}
        self._broken: dict[str, PluginError] = {}

    @property
    def plugins(self) -> dict[str, PluginEntry]:
        """The enabled plugins that can be used, by name."""
        with self._lock:
            self._refresh()
            return dict(self._plugins)

    @property
    def broken(self) -> dict[str, PluginError]:
        """What is wrong with each plugin that cannot be used, by the name of its file."""
        with self._lock:
            self._refresh()
            return dict(self._broken)

    def _refresh(self) -> None:
        seen = self._fingerprint()
        if seen == self._seen:
            return
        self._seen, self._plugins, self._broken = seen, {}, {}
        for path in sorted(self._folder.glob("[!.]*.yaml")):
            try:
                self._add(PluginEntry.from_yaml_file(path), path)
            except PluginError as error:
                self._broken[path.stem] = error

    def _add(self, entry: PluginEntry, path: Path) -> None:
        if not entry.enabled:
            return
        if entry.name in self._plugins:
            raise PluginError(str(path), f"there is another plugin called {entry.name!r}.")
        _check_source(entry, path)
        self._plugins[entry.name] = entry

    def _fingerprint(self) -> _Fingerprint:
        facts = set()
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.suffix in {".yaml", ".py"} and path.is_file():
                    stat = path.stat()
                    facts.add((path.name, stat.st_mtime_ns, stat.st_size))
        return frozenset(facts)


def _check_source(entry: PluginEntry, path: Path) -> None:
    """Parse the implementation, without running it."""
    try:
        ast.parse(entry.source(), entry.path.name)
    except OSError as error:
        problem = f"its code {entry.path} cannot be read: {error.strerror or error}."
        raise PluginError(str(path), problem) from error
    except SyntaxError as error:
        problem = f"{entry.path.name} is not Python: {error.msg}, line {error.lineno}."
        raise PluginError(str(path), problem) from error
    except (ValueError, RecursionError) as error:
        raise PluginError(str(path), f"{entry.path.name} is not Python: {error}.") from error
