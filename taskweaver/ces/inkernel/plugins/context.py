"""The plugin context inside a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.cell.artifacts import ARTIFACTS
from taskweaver.ces.inkernel.plugins.calls import PluginCallLog
from taskweaver.ces.inkernel.plugins.hostcall import call
from taskweaver.plugin.context import ArtifactType, LogErrorLevel, PluginContext
from taskweaver.plugin.errors import PluginError


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

    ids: tuple[str, str] = ("", "")
    session_vars: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    host: str = ""
    calls: PluginCallLog = field(default_factory=PluginCallLog)


class KernelPluginContext(PluginContext):
    """A plugin's access to the session whose kernel it runs in."""

    def __init__(self, session: PluginSession, origin: str) -> None:
        """Create the context of the plugin `origin`, as refusals of its artifacts call it."""
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
        return call(self._session.host, name, arguments)

    def log(self, level: LogErrorLevel, tag: str, message: str) -> None:
        """Write a line to the plugin log."""
        self._session.lines.append((level, tag, message))
