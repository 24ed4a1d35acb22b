"""Files of a session whose kernel runs on another machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from taskweaver.ces.claims import mapping
from taskweaver.ces.remote.connection import KernelServer, quoted
from taskweaver.utils.file_system.safe_fs import Folder

_CHUNK_BYTES = 1 << 20
_State = tuple[int, int]
"""Size of a file and the time of its last change."""


class RemoteFiles:
    """Copies of files between a working directory here and that of the session at the server.

    New and changed files go up before a cell and come down after it. Links and special files are
    left out, and nothing is deleted on the other side.
    """

    def __init__(self, server: KernelServer, session_path: str, cwd: Path) -> None:
        self._server = server
        self._path = f"{session_path}/files"
        self._cwd = cwd
        self._here: dict[str, _State] = {}
        self._there: dict[str, _State] = {}

    def forget(self) -> None:
        """Copy all files at the next `upload`: the server has a new session."""
        self._here, self._there = {}, {}

    def upload(self) -> None:
        """Send files that are new here or have changed.

        Raises:
            KernelError: If the server refuses a file, or does not answer.
            OSError: If a file cannot be read.
        """
        with Folder.at(self._cwd) as folder:
            for path, facts in folder.files():
                state = (facts.st_size, facts.st_mtime_ns)
                if self._here.get(path) != state:
                    self._send(folder, path)
                    self._here[path] = state

    def _send(self, folder: Folder, path: str) -> None:
        def chunks() -> Iterator[bytes]:
            with folder.open_file(path) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk

        place = f"{self._path}/{quoted(path)}"
        headers = {"Content-Type": "application/octet-stream"}
        facts = self._server.ask("PUT", place, content=chunks, headers=headers)
        self._there |= _states({"files": [facts]})

    def download(self) -> list[str]:
        """Fetch files that are new at the server or have changed.

        Returns:
            A line for each file that cannot be written here, once for each change of it.

        Raises:
            KernelError: If the server refuses, or does not answer.
        """
        problems = []
        listed = _states(self._server.ask("GET", self._path))
        with Folder.at(self._cwd) as folder:
            for path, state in listed.items():
                if self._there.get(path) == state:
                    continue
                try:
                    self._fetch(folder, path)
                except OSError as error:  # such as a folder of that name here
                    problems.append(f"{path} did not come from the server: {error.strerror}.")
                self._there[path] = state
        return problems

    def _fetch(self, folder: Folder, path: str) -> None:
        parent = PurePosixPath(path).parent
        folder.make_folders(str(parent))
        with (
            self._server.reading(f"{self._path}/{quoted(path)}") as response,
            folder.replacing(path) as file,
        ):
            for chunk in response.iter_bytes(_CHUNK_BYTES):
                file.write(chunk)
        if facts := folder.stat(path):
            self._here[path] = (facts.st_size, facts.st_mtime_ns)


def _states(answer: Any) -> dict[str, _State]:
    """Map the paths in a list of files to their states. Items of another shape are skipped."""
    listed = mapping(answer).get("files")
    states = {}
    for item in listed if isinstance(listed, list) else ():
        match item:
            case {"path": str(path), "size": int(size), "mtime_ns": int(mtime_ns)}:
                states[path] = (size, mtime_ns)
    return states
