"""A working directory here and the one of its kernel, kept alike before and after each cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from taskweaver.ces.errors import KernelError
from taskweaver.ces.remote.connection import KernelServer, quoted
from taskweaver.utils.file_system.safe_fs import Folder, digest_of

_CHUNK_BYTES = 1 << 20
_State = tuple[int, int]
"""Size and time of a file."""


class FolderMirror:
    """The two directories of a session. Links and special files are left out.

    A file that changed here goes there before a cell; one that changed there comes here after it.
    """

    def __init__(self, server: KernelServer, session_path: str, cwd: Path) -> None:
        self._server = server
        self._path = f"{session_path}/files"
        self._cwd = cwd
        self._here: dict[str, _State] | None = None
        self._there: dict[str, _State] = {}

    def forget(self) -> None:
        """Compare the files by their content at the next `push`."""
        self._here = None

    def push(self) -> None:
        """Bring the changes of this side to the other.

        The first time files are compared by content, and files of the other side stay: they come
        with the next `pull`.

        Raises:
            KernelError: If the server refuses a file, or does not answer.
            OSError: If a file cannot be read.
        """
        with Folder.at(self._cwd) as folder:
            now = {path: (facts.st_size, facts.st_mtime_ns) for path, facts in folder.files()}
            if self._here is None:
                equal = self._compare(folder, set(now))
                self._here = {path: now[path] for path in equal}
            for path, state in now.items():
                if self._here.get(path) != state:
                    self._send(folder, path)
            for path in self._here.keys() - now.keys():
                self._remove_there(path)
            self._here = now

    def _compare(self, folder: Folder, names: set[str]) -> set[str]:
        """Return the files that are equal on both sides."""
        equal = set()
        listed = self._server.ask("GET", self._path, params={"digests": "1"})
        self._there = {}
        for path, state, digest in _listed(listed):
            if path in names:
                with folder.open_file(path) as file:
                    if digest_of(file) == digest:
                        equal.add(path)
                        self._there[path] = state
        return equal

    def _send(self, folder: Folder, path: str) -> None:
        def chunks() -> Iterator[bytes]:
            with folder.open_file(path) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk

        headers = {"Content-Type": "application/octet-stream"}
        facts = self._server.ask(
            "PUT", f"{self._path}/{quoted(path)}", content=chunks, headers=headers
        )
        for name, state, _ in _listed({"files": [facts]}):
            self._there[name] = state

    def _remove_there(self, path: str) -> None:
        self._server.ask("DELETE", f"{self._path}/{quoted(path)}")
        self._there.pop(path, None)

    def pull(self) -> None:
        """Bring the changes of the other side to this one.

        Raises:
            KernelError: If the server refuses, or does not answer.
            OSError: If a file cannot be written.
        """
        listed = self._server.ask("GET", self._path)
        now = {path: state for path, state, _ in _listed(listed)}
        here = {} if self._here is None else self._here
        with Folder.at(self._cwd) as folder:
            for path, state in now.items():
                if self._there.get(path) != state:
                    here[path] = self._fetch(folder, path)
                    self._there[path] = state
            for path in self._there.keys() - now.keys():
                folder.remove(path)
                here.pop(path, None)
                del self._there[path]

    def _fetch(self, folder: Folder, path: str) -> _State:
        parent = PurePosixPath(path).parent
        if str(parent) != ".":
            folder.make_folders(str(parent))
        with (
            self._server.reading(f"{self._path}/{quoted(path)}") as response,
            folder.replacing(path) as file,
        ):
            for chunk in response.iter_bytes(_CHUNK_BYTES):
                file.write(chunk)
        facts = folder.stat(path)
        if facts is None:
            raise KernelError(f"{path} was removed while it came from the server.")
        return facts.st_size, facts.st_mtime_ns


def _listed(answer: Any) -> Iterator[tuple[str, _State, str | None]]:
    """Yield path, state and digest of the files in an answer; what is none is left out."""
    found = answer.get("files") if isinstance(answer, dict) else None
    for item in found if isinstance(found, list) else ():
        match item:
            case {"path": str(path), "size": int(size), "mtime_ns": int(mtime_ns)}:
                digest = item.get("digest")
                yield path, (size, mtime_ns), digest if isinstance(digest, str) else None
