"""Working directories: files that a user adds, under names that stay inside, copies of branches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal, NotRequired, TypedDict

from taskweaver.memory.round import (
    FILE_NAMES,
    FILES_ADDED,
    FILES_CHANGED,
    FILES_KEPT,
    FILES_REFUSED,
)
from taskweaver.session.errors import FileNotAdded, SessionError
from taskweaver.tables.files.file_list import ListedFile
from taskweaver.utils.data_files import is_data_file
from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder, copy_in, is_plain_name
from taskweaver.utils.files import leaves
from taskweaver.utils.named_files import Finder, NamedFile, numbered

_MOST_TABLES = 200

Stamp = tuple[int, int]
"""Time at which a file was last written, in ns, and its size in bytes."""
STAGING_FOLDER = "staging"
"""Folder of a session in which branches are prepared; code cannot write there."""


def stamp_of(facts: os.stat_result) -> Stamp:
    """Return the stamp of a file, which changes with its content."""
    return facts.st_mtime_ns, facts.st_size


class AddedFile(TypedDict):
    """A file of the user's: a name, and a path or the content."""

    name: str
    path: NotRequired[str | Path]
    content: NotRequired[bytes | str]


def chosen_file(given: str | os.PathLike[str], root: Path | None = None) -> NamedFile:
    """Return the file that a user of this machine gives by its path. `root` is as for `files_in`.

    Raises:
        FileNotAdded: If there is none, or it cannot be used.
    """
    named = Finder(Path.cwd(), None, root).find(str(given))
    if named is None:
        place = "" if Path(given).is_absolute() else f" in {Path.cwd()}"
        raise FileNotAdded(f"There is no file {given}{place}. Give its path.")
    if named.problem:
        raise FileNotAdded(f"{given} {named.problem}.")
    return named


def add_files(cwd: Path, files: Iterable[AddedFile]) -> list[str]:
    """Copy files into the working directory.

    Folders in the names of the files are dropped.

    Returns:
        Their names there.

    Raises:
        FileNotAdded: If one cannot be read or written.
    """
    names = []
    for file in files:
        names.append(name := _name(file))
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
    return names


def _write(folder: Folder, name: str, file: AddedFile) -> None:
    if "content" in file:
        content = file["content"]
        with folder.replacing(name) as target:
            target.write(content.encode() if isinstance(content, str) else content)
    elif "path" in file:
        source, copy = Path(file["path"]).expanduser(), folder.stat(name)
        if copy is None or not os.path.samestat(copy, source.stat()):
            copy_in(source, folder, name)
    else:
        raise FileNotAdded(f"{name}: a file needs a path or its content.")


def _apart(files: Sequence[AddedFile]) -> dict[str, AddedFile]:
    """Return files by names of their own: of two with one name the second gets a number."""
    apart: dict[str, AddedFile] = {}
    for file in files:
        name = next(name for name in numbered(_name(file)) if name not in apart)
        apart[name] = {**file, "name": name}
    return apart


def _name(file: AddedFile) -> str:
    """Return the name of a file without folders."""
    given: object = file.get("name")
    name = given.replace("\\", "/").rstrip("/").rpartition("/")[2] if isinstance(given, str) else ""
    if not is_plain_name(name):
        raise FileNotAdded(f"{given!r} is not a name for a file.")
    return name


def files_in(
    folder: Path, root: Path | None = None, *, tables_only: bool = False
) -> Iterator[Path]:
    """Yield the files directly in a folder, none of one that is not there.

    Links may not leave the project folder `root`; None allows any target. With `tables_only` they
    are the first `_MOST_TABLES` by name that have the suffix of a table and are not hidden.
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
    informed. Of a copy that an earlier process brought, the later of file and copy counts. A path
    means that very file: if the name of the copy is taken, it gets another one.

    Attributes:
        listed: Files as a kernel saw them, by name, with their stamps then.
    """

    def __init__(self, cwd: Path) -> None:
        self.listed: dict[str, tuple[Stamp, ListedFile]] = {}
        self._cwd = cwd
        self._brought: dict[str, tuple[NamedFile, Stamp, Stamp | None]] = {}
        self._found = stamps_in(cwd)

    def bring(self, files: Sequence[AddedFile], mentioned: Iterable[NamedFile]) -> list[str]:
        """Add the user's files, and those a message names that are new or changed.

        Files that the user gives replace those that are there.

        Returns:
            The changes, and names that differ from the message's, a line each, for the roles.

        Raises:
            FileNotAdded: If one cannot be read or written.
        """
        given = _apart(files)
        other = {
            str(file["path"]): name
            for file, name in zip(files, given, strict=True)
            if name != _name(file) and "path" in file
        }
        new: dict[str, NamedFile] = {}
        refused = []
        for named in mentioned:
            if named.problem:
                refused.append(f"{named.spelled} {named.problem}")
            elif name := self._name_for(named, given, new):
                new[name] = named
                other |= {named.spelled: name} if named.spelled != name else {}
        states = {n: self._state(n, new[n].path) for n in new if n not in given}
        copied: list[AddedFile] = [
            {"name": name, "path": new[name].path}
            for name, state in states.items()
            if state in {"new", "changed"}
        ]
        lists = {
            FILES_ADDED: add_files(self._cwd, [*given.values(), *copied]),
            FILES_CHANGED: [name for name, state in states.items() if state == "changed"],
            FILES_KEPT: [name for name, state in states.items() if state == "kept"],
            FILES_REFUSED: refused,
        }
        for name, state in states.items():
            if state != "same":
                stamps = _stamp_at(new[name].path), self._stamp_here(name)
                self._brought[name] = replace(new[name], spelled=name), *stamps
        notes = [f"{note}: {', '.join(items)}." for note, items in lists.items() if items]
        notes += [f"{FILE_NAMES}: {json.dumps(other, ensure_ascii=False)}"] if other else []
        return notes

    @property
    def brought(self) -> list[NamedFile]:
        """Files that messages named before, by the names of their copies."""
        return [named for named, _, _ in self._brought.values()]

    def _name_for(
        self, named: NamedFile, given: Mapping[str, AddedFile], new: Mapping[str, NamedFile]
    ) -> str:
        """Return the name of the copy of a file, empty where its name means another file here."""
        if named.is_bare:
            name = named.spelled if named.spelled in self._brought else named.source.name
            is_other = name in self._brought and self._brought[name][0].source != named.source
            return "" if is_other else name
        for name, (known, _, copy) in self._brought.items():
            if known.path == named.path and copy == self._stamp_here(name):
                return name
        names = numbered(named.source.name)
        return next(name for name in names if self._is_for(name, named, given, new))

    def _is_for(
        self,
        name: str,
        named: NamedFile,
        given: Mapping[str, AddedFile],
        new: Mapping[str, NamedFile],
    ) -> bool:
        """Return whether the copy of a file may have a name: it is free, or has its content."""
        if name in given:
            return os.path.realpath(given[name].get("path", "")) == str(named.path)
        if name in new:
            return new[name].path == named.path
        copy = self._stamp_here(name)
        return copy is None or (name not in self._brought and copy == _stamp_at(named.path))

    def _state(self, name: str, source: Path) -> Literal["new", "same", "changed", "kept"]:
        copy_now = self._stamp_here(name)
        if copy_now is None:
            return "new"
        if name not in self._brought:  # code, the user or an earlier process put it there
            is_later = self._found.get(name) == copy_now and _stamp_at(source) > copy_now
            return "changed" if is_later else "same"
        _, source_then, copy_then = self._brought[name]
        if _stamp_at(source) == source_then:
            return "same"
        return "changed" if copy_now == copy_then else "kept"

    def _stamp_here(self, name: str) -> Stamp | None:
        """Return the stamp of a copy, None if there is none."""
        try:
            with Folder.at(self._cwd) as folder:
                facts = folder.stat(name)
        except OSError as error:
            raise FileNotAdded(f"{self._cwd} cannot be read: {error.strerror}") from error
        return None if facts is None else stamp_of(facts)


def stamps_in(cwd: Path) -> dict[str, Stamp]:
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


def copy_working_folder(source: Folder, target: Folder, *, limit_bytes: int) -> None:
    """Copy a working directory into an empty folder that code cannot write.

    Links stay links, special files are left out; storage is shared where the file system can.

    At most `limit_bytes` are really copied.

    Raises:
        SessionError: If there is more to copy, or it cannot be done.
    """
    try:
        copy_tree(source, target, CopyRules(limit_bytes))
    except OSError as error:
        raise _not_copied(error) from error
    except CopyTooLarge as error:
        way = (
            ", and this file system cannot share storage. Remove files, or raise"
            " session.fork_limit_mb."
            if error.is_of_bytes
            else ". Remove some, or pack them into an archive."
        )
        raise SessionError(f"The working directory holds more than {error.limit}{way}") from error


def clone_into(
    session: Folder, source: Folder, target: PurePosixPath, inner: str, *, limit_bytes: int
) -> None:
    """Copy a working directory into a new folder, which appears when the copy is complete.

    The copy is made in `STAGING_FOLDER`, where code cannot swap its files, and then moved.

    `target` is relative to the session's folder, and a leftover of that name goes. The copy is
    called `inner` in it, or is the folder itself if that is empty; at most `limit_bytes` are
    really copied.

    Raises:
        SessionError: If there is more to copy, or it cannot be done; nothing is left behind.
    """
    draft = PurePosixPath(STAGING_FOLDER, target.name)
    try:
        session.remove(draft)
        session.make_folders(draft / inner)
        with session.folder(draft / inner) as copy:
            copy_working_folder(source, copy, limit_bytes=limit_bytes)
        session.remove(target)
        session.move(draft, session, target)
    except BaseException as error:
        session.remove(draft)
        if isinstance(error, OSError):
            raise _not_copied(error) from error
        raise


def _not_copied(error: OSError) -> SessionError:
    return SessionError(f"The working directory cannot be copied: {error}")
