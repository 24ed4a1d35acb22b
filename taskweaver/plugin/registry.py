"""Finds the plugins of a folder."""

from __future__ import annotations

import builtins
import hashlib
import keyword
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from taskweaver.plugin.errors import PluginError
from taskweaver.plugin.one_file import parsed, read_one_file
from taskweaver.plugin.spec import PluginEntry
from taskweaver.utils.file_system.safe_fs import open_ordinary
from taskweaver.utils.files import read_text
from taskweaver.utils.redact import register_configured

_OF_THE_KERNEL = frozenset({"pd", "np", "plt", "get_ipython", "display", "In", "Out"})

_Stamp = tuple[int, int]
_Files = Mapping[str, _Stamp]
_Helpers = Mapping[str, str]
"""Digests of helper files."""


def problem_of_name(name: str) -> str:
    """Return why a plugin cannot be called `name`, or an empty text."""
    if not name.isidentifier() or keyword.iskeyword(name):
        return f"a plugin's name must be a name Python allows, not {name!r}"
    if name.startswith("_"):
        return f"a plugin's name cannot begin with _ ({name!r})"
    if hasattr(builtins, name) or name in _OF_THE_KERNEL:
        return f"{name!r} means something else in every cell; choose another name"
    return ""


class PluginRegistry:
    """The plugins in a folder. When a file changes, the folder is read again.

    A YAML file and the Python file it names are a plugin. So is a Python file without one that
    registers a plugin. Files that begin with ``_`` are helpers for plugins to import.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()
        self._seen: _Files | None = None
        self._plugins: dict[str, PluginEntry] = {}
        self._broken: dict[str, PluginError] = {}

    @property
    def plugins(self) -> dict[str, PluginEntry]:
        """The enabled plugins that can be used, by name."""
        with self._lock:
            self._refresh()
            return dict(self._plugins)

    @property
    def registry(self) -> dict[str, PluginEntry]:
        """The same as `plugins`."""
        return self.plugins

    def get_list(self) -> list[PluginEntry]:
        """Return the enabled plugins that can be used, sorted by name."""
        return [entry for _, entry in sorted(self.plugins.items())]

    @property
    def broken(self) -> dict[str, PluginError]:
        """Problems of the plugins that cannot be used, by the names of their files."""
        with self._lock:
            self._refresh()
            return dict(self._broken)

    def _refresh(self) -> None:
        files = self._files()
        if files == self._seen:
            return
        self._seen, self._plugins, self._broken = files, {}, {}
        helpers = self._helpers(files)
        described = set()
        for name in sorted(name for name in files if name.endswith(".yaml")):
            impl = self._add(name, _of_yaml, helpers)
            described |= {Path(name).stem, impl}
        for name in sorted(name for name in files if name.endswith(".py")):
            if Path(name).stem not in described and not name.startswith("_"):
                self._add(name, _of_code, helpers)

    def _add(
        self, file: str, read: Callable[[Path, _Helpers], PluginEntry | None], helpers: _Helpers
    ) -> str:
        """Add the plugin of a file, and return the file that implements the plugin."""
        path, stem = self.folder / file, Path(file).stem
        try:
            entry = read(path, helpers)
            if entry is None or not entry.enabled:
                return entry.impl if entry else ""
            other = self._plugins.setdefault(entry.name, entry)
            if other is not entry:
                problem = f"there is another plugin called {entry.name!r}: {other.described_in}."
                raise PluginError(str(path), problem)
        except PluginError as error:
            self._broken[file if stem in self._broken else stem] = error
            return ""
        register_configured("", entry.config)
        return entry.impl

    def _helpers(self, files: _Files) -> dict[str, str]:
        """Return the digest of each helper file, by the name without ``.py``."""
        digests = {}
        for name in sorted(files):
            if name.startswith("_") and name.endswith(".py"):
                try:
                    with open_ordinary(self.folder / name) as file:
                        data = file.read()
                except OSError:
                    continue  # gone meanwhile, or no file; what imports it says so
                digests[name.removesuffix(".py")] = hashlib.sha256(data).hexdigest()
        return digests

    def _files(self) -> dict[str, _Stamp]:
        facts = {}
        try:
            with os.scandir(self.folder) as files:  # asked at each turn, so no file is asked twice
                for file in files:
                    name = file.name
                    if name.endswith((".yaml", ".py")) and name[0] != "." and not file.is_dir():
                        # What is no file, such as a pipe, is named as broken when it is read.
                        stat = file.stat(follow_symlinks=file.is_file())
                        facts[name] = (stat.st_mtime_ns, stat.st_size)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return facts


def _of_code(path: Path, helpers: _Helpers) -> PluginEntry | None:
    """Return the plugin that a file of code describes itself; None for other code."""
    try:
        source = read_text(path)
    except (OSError, ValueError) as error:
        raise PluginError(str(path), f"cannot be read: {error}.") from error
    entry = read_one_file(path, source)
    return entry and _with_helpers(_named(entry), source, helpers)


def _of_yaml(path: Path, helpers: _Helpers) -> PluginEntry:
    """Return the plugin of a YAML file. Its code is parsed, and not run."""
    entry = PluginEntry.from_yaml_file(path)
    if not entry.enabled:
        return entry
    try:
        source = _named(entry).source()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"its code {entry.path} cannot be read: {reason}."
        raise PluginError(entry.described_in, problem) from error
    parsed(entry.path, source)
    return _with_helpers(entry, source, helpers)


def _named(entry: PluginEntry) -> PluginEntry:
    """Check a plugin's name, before its code is looked for."""
    problem = problem_of_name(entry.name)
    if problem:
        raise PluginError(entry.described_in, f"{problem}.")
    return entry


def _with_helpers(entry: PluginEntry, source: str, helpers: _Helpers) -> PluginEntry:
    """Note the helpers of a plugin's code: all if it names one, as they may import each other."""
    if not any(name in source for name in helpers):
        return entry
    digest = hashlib.sha256("".join(helpers.values()).encode()).hexdigest()
    return replace(entry, helpers=digest)
