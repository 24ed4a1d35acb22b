"""Files a user adds: into the working directory, under names that stay inside it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from taskweaver.session.errors import FileNotAdded

_WORD = re.compile(r"[^\s`'\"<>|*?]+")
_TRAILING = ".,;:!?)]}"


class AddedFile(TypedDict):
    """A file of the user's: a name, and a path or the content."""

    name: str
    path: NotRequired[str | Path]
    content: NotRequired[bytes | str]


def add_files(cwd: Path, files: Iterable[AddedFile]) -> list[str]:
    """Copy files into the working directory.

    Args:
        cwd: The working directory.
        files: The files; folders in their names are dropped.

    Returns:
        Their names there.

    Raises:
        FileNotAdded: If one cannot be read or written.
    """
    return [_add_file(cwd, file) for file in files]


def _add_file(cwd: Path, file: AddedFile) -> str:
    name = Path(file["name"].replace("\\", "/")).name
    if not name or name in {".", ".."} or "\0" in name:
        raise FileNotAdded(f"{file['name']!r} is not a name for a file.")
    target = cwd / name
    try:
        if target.is_symlink():
            target.unlink()
        if "content" in file:
            content = file["content"]
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        elif "path" in file:
            source = Path(file["path"]).expanduser()
            if not (target.exists() and target.samefile(source)):
                shutil.copyfile(source, target)
        else:
            raise FileNotAdded(f"{name}: a file needs a path or its content.")
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileNotAdded(f"{name} cannot be added: {reason} ({error.filename})") from error
    return name


def mentioned_files(message: str, folder: Path) -> dict[str, Path]:
    """Find the files of a folder that a message names, by file name.

    Only whole words count, and only files that lie directly in `folder`.
    """
    if not folder.is_dir():
        return {}
    files = {path.name: path for path in folder.iterdir() if path.is_file()}
    words = (match.group().rstrip(_TRAILING).lstrip("([{") for match in _WORD.finditer(message))
    found = {word: files[word] for word in words if word in files}
    spaced = {name: path for name, path in files.items() if " " in name and name in message}
    return found | spaced


def bring(cwd: Path, files: Sequence[AddedFile], mentioned: Mapping[str, Path]) -> list[str]:
    """Add the user's files, and those a message names that are not there yet.

    Raises:
        FileNotAdded: If one cannot be read or written.
    """
    given = {Path(file["name"]).name for file in files}
    new: list[AddedFile] = [
        {"name": name, "path": path}
        for name, path in mentioned.items()
        if name not in given and not (cwd / name).exists()
    ]
    return add_files(cwd, [*files, *new])
