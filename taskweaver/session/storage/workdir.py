"""Files a user adds: into the working directory, under names that stay inside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

from taskweaver.analyst.files.mentions import is_data_file
from taskweaver.memory.forms.request_notes import FILES_ADDED, FILES_CHANGED, FILES_KEPT
from taskweaver.session.errors import FileNotAdded
from taskweaver.utils.file_system.safe_fs import Folder, copy_in, is_plain_name
from taskweaver.utils.files import leaves

_WORD = re.compile(r"[^\s`'\"<>|*?]+")
_TRAILING = ".,;:!?)]}"
_MOST_TABLES = 200

Stamp = tuple[int, int]
"""Time at which a file was last written, in ns, and its size in bytes."""


def stamp_of(facts: os.stat_result) -> Stamp:
    """Return the stamp of a file, which changes with its content."""
    return facts.st_mtime_ns, facts.st_size


class AddedFile(TypedDict):
    """A file of the user's: a name, and a path or the content."""

    name: str
    path: NotRequired[str | Path]
    content: NotRequired[bytes | str]


def add_files(cwd: Path, files: Iterable[AddedFile]) -> list[str]:
    """Copy files into the working directory.

    Folders in the names of the files are dropped.

    Returns:
        Their names there.

    Raises:
        FileNotAdded: If one cannot be read or written.
    """
    return [_add_file(cwd, file) for file in files]


def _add_file(cwd: Path, file: AddedFile) -> str:
    name = _name(file)
    try:
        with Folder.at(cwd) as folder:
            _write(folder, name, file)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        reason = f"{error.strerror or error}{where}"
        raise FileNotAdded(f"{name} cannot be added: {reason}") from error
    except (ValueError, RuntimeError, TypeError) as error:
        # A path with a NUL, the home folder of nobody, content that is no text UTF-8 can hold.
        raise FileNotAdded(f"{name} cannot be added: {error}") from error
    return name


def _write(folder: Folder, name: str, file: AddedFile) -> None:
    if "content" in file:
        content = file["content"]
        with folder.replacing(name) as target:
            target.write(content.encode() if isinstance(content, str) else content)
    elif "path" in file:
        source = Path(file["path"]).expanduser()
        if not _is_there(folder, name, source):
            copy_in(source, folder, name)
    else:
        raise FileNotAdded(f"{name}: a file needs a path or its content.")


def _name(file: AddedFile) -> str:
    """Return the name of a file without folders."""
    given: object = file.get("name")
    name = given.replace("\\", "/").rstrip("/").rpartition("/")[2] if isinstance(given, str) else ""
    if not is_plain_name(name):
        raise FileNotAdded(f"{given!r} is not a name for a file.")
    return name


def _is_there(folder: Folder, name: str, source: Path) -> bool:
    copy = folder.stat(name)
    return copy is not None and os.path.samestat(copy, source.stat())


def mentioned_files(
    message: str, folder: Path, root: Path | None = None, *, tables_only: bool = False
) -> dict[str, Path]:
    """Find the files of a folder that a message names, by file name.

    Only whole words count, and only files that lie directly in `folder`.

    Links may not leave the project folder `root`, and the paths that are returned hold none; None
    allows any target. `tables_only` is as for `files_in`.
    """
    files = {
        path.name: path if root is None else path.resolve()
        for path in files_in(folder, root, tables_only=tables_only)
        if is_plain_name(path.name)
    }
    odd = [name for name in files if not _WORD.fullmatch(name) and name in message]
    for name in odd:  # part of such a name is not the name of another file
        message = message.replace(name, " ")
    words = (match.group().rstrip(_TRAILING).lstrip("([{") for match in _WORD.finditer(message))
    plain = [word for word in words if word in files]
    return {name: files[name] for name in [*plain, *odd]}


def files_in(
    folder: Path, root: Path | None = None, *, tables_only: bool = False
) -> Iterator[Path]:
    """Yield the files directly in a folder; none of one that is not there.

    `root` is as for `mentioned_files`. With `tables_only` they are the first `_MOST_TABLES` by name
    that have the extension of a table and are not hidden.
    """
    if not folder.is_dir():
        return
    paths: Iterable[Path] = folder.iterdir()
    if tables_only:
        paths = sorted(path for path in paths if is_data_file(path.name) and path.name[0] != ".")
        paths = paths[:_MOST_TABLES]
    for path in paths:
        with suppress(OSError):  # a link to a place that the user may not see, or to no place
            if path.is_file() and not leaves(path, root):
                yield path


class WorkingFiles:
    """The user's files in a working directory: each is brought once, and again when it changed.

    A copy that code has changed since is the user's work too: it is kept, and the roles are
    informed. Of a copy that an earlier process brought, the later of file and copy counts.
    """

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._brought: dict[str, tuple[Stamp, Stamp | None]] = {}
        self._found = _stamps(cwd)

    def bring(self, files: Sequence[AddedFile], mentioned: Mapping[str, Path]) -> list[str]:
        """Add the user's files, and those a message names that are new or changed.

        Files that the user gives replace those that are there.

        Returns:
            The changes, a line each, in words for the roles.

        Raises:
            FileNotAdded: If one cannot be read or written.
        """
        given = {_name(file) for file in files}
        named = {name: path for name, path in mentioned.items() if name not in given}
        states = {name: self._state(name, path) for name, path in named.items()}
        new = [name for name, state in states.items() if state == "new"]
        changed = [name for name, state in states.items() if state == "changed"]
        kept = [name for name, state in states.items() if state == "kept"]
        added = add_files(self._cwd, files)
        for name in new + changed:
            added += add_files(self._cwd, [{"name": name, "path": named[name]}])
        for name in new + changed + kept:
            self._brought[name] = _stamp_at(named[name]), self._stamp_here(name)
        notes = {FILES_ADDED: added, FILES_CHANGED: changed, FILES_KEPT: kept}
        return [f"{what}: {', '.join(names)}." for what, names in notes.items() if names]

    @property
    def brought(self) -> tuple[str, ...]:
        """Names of the files of the data folder that were brought before."""
        return tuple(self._brought)

    def _state(self, name: str, source: Path) -> Literal["new", "same", "changed", "kept"]:
        copy_now = self._stamp_here(name)
        if copy_now is None:
            return "new"
        if name not in self._brought:  # code, the user or an earlier process put it there
            is_later = self._found.get(name) == copy_now and _stamp_at(source) > copy_now
            return "changed" if is_later else "same"
        source_then, copy_then = self._brought[name]
        if _stamp_at(source) == source_then:
            return "same"
        return "changed" if copy_now == copy_then else "kept"

    def _stamp_here(self, name: str) -> Stamp | None:
        """Return the stamp of a copy; None if there is none."""
        try:
            with Folder.at(self._cwd) as folder:
                facts = folder.stat(name)
        except OSError as error:
            raise FileNotAdded(f"{self._cwd} cannot be read: {error.strerror}") from error
        return None if facts is None else stamp_of(facts)


def _stamps(cwd: Path) -> dict[str, Stamp]:
    """Return the stamps of the data files directly in a working directory.

    None of one that cannot be read: an error is raised as soon as a file is brought to it.
    """
    try:
        with Folder.at(cwd) as folder:
            found = {name: folder.stat(name) for name in filter(is_data_file, folder.names())}
    except OSError:
        return {}
    return {name: stamp_of(facts) for name, facts in found.items() if facts is not None}


def _stamp_at(path: Path) -> Stamp:
    try:
        return stamp_of(path.stat())
    except OSError as error:
        raise FileNotAdded(f"{path} cannot be read: {error.strerror}") from error
