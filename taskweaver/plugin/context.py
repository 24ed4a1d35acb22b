"""A plugin's access to the session, and a stand-in for trying a plugin alone."""

from __future__ import annotations

import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from taskweaver.plugin.errors import HostCallFailed, PluginError
from taskweaver.utils.text import wrap_temporal

ArtifactType = Literal["chart", "df", "file", "txt", "svg", "html", "image"]
"""What an artifact is: a chart's description, a table, or a file of that kind."""

LogErrorLevel = Literal["info", "warning", "error"]


def artifact_bytes(type: ArtifactType, val: Any) -> bytes:
    """Return the bytes of an artifact's file.

    Args:
        type: ``df`` writes a table (anything with `to_csv`) as CSV; the others write text and
            bytes as they are, a path as the content of its file, and plain data as JSON.
        val: The content.

    Raises:
        OSError: If `val` is a path that cannot be read.
        TypeError: If `val` cannot be written.
    """
    if type == "df" and hasattr(val, "to_csv"):
        return str(val.to_csv(index=False)).encode()
    match val:
        case bytes() | bytearray() | memoryview():
            return bytes(val)
        case str():
            return val.encode("utf-8", "replace")
        case Path():
            return val.read_bytes()
        case _:
            return json.dumps(val, ensure_ascii=False, indent=2).encode("utf-8", "replace")


class PluginContext(ABC):
    """A plugin's way to the session."""

    @property
    @abstractmethod
    def env_id(self) -> str:
        """Id of the environment the kernel belongs to."""

    @property
    @abstractmethod
    def session_id(self) -> str:
        """Id of the session."""

    @property
    @abstractmethod
    def execution_id(self) -> str:
        """Id of the cell that is running."""

    def add_artifact(
        self,
        name: str,
        file_name: str,
        type: ArtifactType,
        val: Any,
        desc: str | None = None,
    ) -> str:
        """Write a file for the user and list the file with the result of the cell.

        Args:
            name: Its name.
            file_name: Name of the file, without folders.
            type: Its type, which decides the format of the file.
            val: Its content: text, bytes, a table for ``df``, a path, or plain data.
            desc: A line about it.

        Returns:
            Its id.
        """
        id_, path = self.create_artifact_path(name, file_name, type, desc or "")
        Path(path).write_bytes(artifact_bytes(type, val))
        return id_

    @abstractmethod
    def create_artifact_path(
        self, name: str, file_name: str, type: ArtifactType, desc: str
    ) -> tuple[str, str]:
        """List a file that the plugin writes, and return the id and the path to write to."""

    @abstractmethod
    def get_session_var(self, variable_name: str, default: str | None = None) -> str | None:
        """Return a variable the application set on the session."""

    @abstractmethod
    def log(self, level: LogErrorLevel, tag: str, message: str) -> None:
        """Write a line to the plugin log, which is shown with the result of the cell."""

    def call_host(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ARG002 - none here
        """Call a function of the application, outside the kernel, and return the function's result.

        Args:
            name: Its name.
            arguments: Arguments by name: JSON values, numbers and arrays of numpy too.

        Raises:
            HostCallFailed: If the function does not exist, may not be called, or fails.
        """
        raise HostCallFailed(name, "no application is there to call.")

    def get_env(self, plugin_name: str, variable_name: str) -> str:
        """Return the environment variable ``PLUGIN_<plugin_name>_<variable_name>``.

        Raises:
            PluginError: If it is not set.
        """
        name = f"PLUGIN_{plugin_name}_{variable_name}"
        try:
            return os.environ[name]
        except KeyError:
            raise PluginError(plugin_name, f"set the environment variable {name}.") from None

    def wrap_text_with_delimiter_temporal(self, text: str) -> str:
        """Mark text as meant for the current round only: roles do not see it in later ones."""
        return wrap_temporal(text)


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact a plugin made in a `TestPluginContext`."""

    id: str
    name: str
    type: ArtifactType
    path: Path
    desc: str


class TestPluginContext(PluginContext):
    """A context without a session: files go to a folder, the rest is kept to be looked at.

    Attributes:
        artifacts: The artifacts added, in order.
        logs: Level, tag and message of each line.
        session_vars: The values `get_session_var` returns.
    """

    __test__ = False  # its name makes pytest take it for a test

    def __init__(self, temp_dir: Path | str) -> None:
        self._folder = Path(temp_dir)
        self.artifacts: list[Artifact] = []
        self.logs: list[tuple[LogErrorLevel, str, str]] = []
        self.session_vars: dict[str, str] = {}

    @property
    def env_id(self) -> str:
        """Id of the environment."""
        return "test-env"

    @property
    def session_id(self) -> str:
        """Id of the session."""
        return "test-session"

    @property
    def execution_id(self) -> str:
        """Id of the cell."""
        return "test-execution"

    def create_artifact_path(
        self, name: str, file_name: str, type: ArtifactType, desc: str
    ) -> tuple[str, str]:
        """Note a file, and return the id and the path to write to."""
        if Path(file_name).name != file_name:
            raise PluginError(name, f"{file_name!r} is not the name of a file without folders.")
        id_ = f"obj_test_{type}_{len(self.artifacts):04x}"
        path = self._folder / f"{id_}_{file_name}"
        self.artifacts.append(Artifact(id_, name, type, path, desc))
        return id_, str(path)

    def get_session_var(self, variable_name: str, default: str | None = None) -> str | None:
        """Return one of `session_vars`."""
        return self.session_vars.get(variable_name, default)

    def log(self, level: LogErrorLevel, tag: str, message: str) -> None:
        """Keep a line."""
        self.logs.append((level, tag, message))


@contextmanager
def temp_context(workspace_dir: Path | str | None = None) -> Iterator[TestPluginContext]:
    """Give a context for trying a plugin alone.

    ::

        with temp_context() as ctx:
            print(MyPlugin("my_plugin", ctx, {})("argument"))

    Without `workspace_dir` its folder is removed afterwards.
    """
    if workspace_dir is not None:
        yield TestPluginContext(workspace_dir)
        return
    with tempfile.TemporaryDirectory(prefix="taskweaver-plugin-") as folder:
        yield TestPluginContext(folder)
