"""Plugins in the kernel: loaded and tested, their calls, and their way to the application."""

from __future__ import annotations

import functools
import importlib
import json
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from taskweaver.ces.inkernel.cell.current import ARTIFACTS
from taskweaver.ces.inkernel.namespace import table_reads
from taskweaver.ces.inkernel.timelimit import TooSlow, hard_time_limit
from taskweaver.plugin.base import Plugin
from taskweaver.plugin.context import ArtifactType, LogErrorLevel, PluginContext
from taskweaver.plugin.errors import HostCallFailed, PluginError
from taskweaver.plugin.register import MODULE_PREFIX, RegisteredPlugin, collect

_MOST_CALLS = 200
_MARK = "__taskweaver_timed__"

Row = tuple[str, float, float, str]
_PIECE_BYTES = 1 << 16
Payload = dict[str, Any]
_FRAMES = 3


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
        """Record each call of a plugin, by wrapping the class, which each load defines anew."""
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


def host_call(path: str, name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a function of the application and wait for the result (see `ces.hostcalls`).

    One connection for each call: nothing stays open that a fork could not take along.

    Raises:
        HostCallFailed: If it cannot be called, or fails.
    """
    try:
        text = json.dumps({"name": name, "arguments": dict(arguments)}, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise HostCallFailed(name, f"the arguments cannot be sent as JSON: {error}") from None
    try:
        reply = json.loads(_exchange(path, text.encode() + b"\n"))
    except OSError as error:
        raise HostCallFailed(name, f"the application cannot be reached: {error}") from error
    except ValueError:
        raise HostCallFailed(name, "the call was broken off by the application.") from None
    if "error" in reply:
        raise HostCallFailed(name, reply["error"])
    return reply["value"]


def _exchange(path: str, request: bytes) -> bytes:
    """Send a request, and return the reply, which ends with the connection."""
    pieces = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        with suppress(BrokenPipeError):  # refused before it was read to its end; the reply says why
            connection.sendall(request)
        while piece := connection.recv(_PIECE_BYTES):
            pieces.append(piece)
    return b"".join(pieces)


def _plain(value: Any) -> Any:
    """Return plain data for a value that JSON cannot hold."""
    for method in ("tolist", "isoformat"):  # numpy's scalars and arrays; dates
        if hasattr(value, method):
            return getattr(value, method)()
    raise TypeError(f"{type(value).__name__} has no form in JSON; give plain data")


@dataclass(slots=True)
class PluginSession:
    """Session data for the plugins of a kernel, and their records of the running cell.

    Attributes:
        ids: Of the environment and of the session.
        session_vars: Variables the application set.
        lines: Log lines of the current cell: level, tag, message.
        host: Socket where functions of the application answer; empty for none.
        calls: Calls of plugins in the current cell.
    """

    ids: Sequence[str] = ("", "")
    session_vars: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    host: str = ""
    calls: PluginCallLog = field(default_factory=PluginCallLog)

    def begin(self, exec_id: str) -> None:
        """Begin a cell, with empty records of artifacts, plugins and tables."""
        ARTIFACTS.begin(exec_id)
        self.lines = []
        self.calls.begin()
        table_reads(begin=True)

    def update(self, payload: Payload) -> Payload:
        """Take the facts of the session in a request."""
        self.ids, self.host = payload["ids"], payload["host"]
        self.session_vars = payload["variables"]
        return {}


class KernelPluginContext(PluginContext):
    """A plugin's access to the session of this kernel."""

    def __init__(self, session: PluginSession, origin: str) -> None:
        """Create the context of the plugin `origin`, as refusals of artifacts call the plugin."""
        self._session = session
        self._origin = origin

    @property
    def env_id(self) -> str:
        """Id of the environment the kernel belongs to."""
        return self._session.ids[0]

    @property
    def session_id(self) -> str:
        """Id of the session."""
        return self._session.ids[1]

    @property
    def execution_id(self) -> str:
        """Id of the cell that is running."""
        return ARTIFACTS.exec_id

    def create_artifact_path(
        self, name: str, file_name: str, type: ArtifactType, desc: str
    ) -> tuple[str, str]:
        """List a file that the plugin writes itself."""
        if Path(file_name).name != file_name:
            raise PluginError(name, f"{file_name!r} is not the name of a file without folders.")
        id_ = f"obj_{len(ARTIFACTS.items):04x}_{type}"
        path = ARTIFACTS.folder / f"{id_}_{file_name}"
        ARTIFACTS.add(path, type, name=id_, original_name=file_name, preview=desc)
        ARTIFACTS.items[-1].origin = self._origin
        return id_, str(path)

    def get_session_var(self, variable_name: str, default: str | None = None) -> str | None:
        """Return a variable the application set on the session."""
        return self._session.session_vars.get(variable_name, default)

    def call_host(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a function of the application."""
        if not self._session.host:
            return super().call_host(name, arguments)
        return host_call(self._session.host, name, arguments)

    def log(self, level: LogErrorLevel, tag: str, message: str) -> None:
        """Write a line to the plugin log."""
        self._session.lines.append((level, tag, message))


class _Loaded(NamedTuple):
    registered: RegisteredPlugin
    plugin: Plugin


class LoadedPlugins:
    """The plugins of a kernel, each named in the namespace of cells."""

    def __init__(self, namespace: dict[str, Any], session: PluginSession) -> None:
        self._namespace = namespace
        self._session = session
        self._loaded: dict[str, _Loaded] = {}

    @property
    def names(self) -> frozenset[str]:
        """Names of the plugins, without names that a cell has bound to another object."""
        found = self._loaded.items()
        return frozenset(n for n, it in found if self._namespace.get(n) is it.plugin)

    def load(self, payload: Payload) -> Payload:
        """Remove and load the plugins of a request, and report plugins that fail to load."""
        plugins: list[Payload] = payload["plugins"]
        _make_importable({str(Path(item["file"]).parent) for item in plugins if item["file"]})
        for name in payload["removed"]:
            self._remove(name)
        problems = {item["name"]: self._load(item, payload["limit_s"]) for item in plugins}
        return {"problems": {name: problem for name, problem in problems.items() if problem}}

    def _load(self, item: Payload, limit_s: float) -> str:
        """Load one plugin, and return the problem, or an empty text."""
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
        """Remove a plugin, but not a variable that has taken the plugin's name."""
        loaded = self._loaded.pop(name, None)
        if loaded is not None and self._namespace.get(name) is loaded.plugin:
            del self._namespace[name]

    def test(self, payload: Payload) -> Payload:
        """Run the tests that came with a plugin, and return name and failure of each."""
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
    """Let plugins import the present files in the same folder."""
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
