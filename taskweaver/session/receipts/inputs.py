"""The input files of a receipt: named and hashed when it is written, found when it is checked."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from taskweaver.memory.cells import executed_cells
from taskweaver.memory.round import Round, file_notes
from taskweaver.session.receipts.receipt import Input, ReceiptError
from taskweaver.session.storage.workdir import AddedFile
from taskweaver.utils.file_system.safe_fs import Folder, open_ordinary
from taskweaver.utils.files import leaves
from taskweaver.utils.named_files import Finder

EMBEDDED_BYTES = 10 << 20
"""Most bytes of inputs that a receipt holds, the smallest files first."""

_CHUNK = 1 << 20
_STAMP = re.compile(r"(\d{8}-\d{6})")
_SECOND = 1.0


def inputs_of(rounds: Sequence[Round], cwd: Path, data_dir: Path) -> tuple[Input, ...]:
    """Return the files that the cells of a conversation were given, as they are now.

    These are the files that came with a request, and files of the working directory that code
    names and that were there before the request or are in the data folder.

    Raises:
        ReceiptError: If a file cannot be read.
    """
    try:
        with Folder.at(cwd) as folder:
            return _inputs(folder, _added(rounds, cwd, folder, data_dir), data_dir)
    except OSError as error:
        raise ReceiptError(f"The working directory cannot be read: {error}") from error


def _added(rounds: Sequence[Round], cwd: Path, folder: Folder, data_dir: Path) -> dict[str, float]:
    """Return the names of the files that cells were given, each with its round's beginning."""
    added: dict[str, float] = {}
    for round_ in rounds:
        began = _time_of(round_.id)
        for name in _names(file_notes(round_.user_query), cwd):
            added[name] = began
        code = "\n".join(cell.code for cell in executed_cells([round_]))
        for name in _names(code, cwd):
            facts = folder.stat(name)
            was_there = facts is not None and facts.st_mtime < began
            if name not in added and facts and (was_there or (data_dir / name).is_file()):
                added[name] = began
    return added


def _names(text: str, cwd: Path) -> list[str]:
    return [named.source.name for named in Finder(None, cwd).in_text(text) if not named.problem]


def _inputs(folder: Folder, added: Mapping[str, float], data_dir: Path) -> tuple[Input, ...]:
    sizes = {name: facts.st_size for name in added if (facts := folder.stat(name)) is not None}
    left, inputs = EMBEDDED_BYTES, []
    for name in sorted(added, key=lambda name: sizes.get(name, 0)):
        found = _input(folder, name, added[name], data_dir, left)
        left -= found.bytes if found.content is not None else 0
        inputs.append(found)
    return tuple(sorted(inputs, key=lambda item: item.name))


def _time_of(round_id: str) -> float:
    """Return when a round began, as its id says; infinity for an id without a time."""
    match = _STAMP.search(round_id)
    if match is None:
        return float("inf")
    return datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()


def _input(folder: Folder, name: str, added: float, data_dir: Path, left: int) -> Input:
    try:
        with folder.open_file(name) as file:
            facts = os.fstat(file.fileno())
            kept = file.read(left + 1) if facts.st_size <= left else None
            digest = hashlib.sha256(kept or b"")
            size = len(kept or b"")
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                kept = None
    except OSError as error:
        raise ReceiptError(f"The input {name} cannot be read: {error}") from error
    source = data_dir / name
    change = ""
    if facts.st_mtime >= added + _SECOND:
        change = "in the working directory"
    elif source.is_file() and _hash_of(source) != digest.hexdigest():
        change = "in the data folder"
    content = None if kept is None else base64.b64encode(kept).decode("ascii")
    return Input(name, size, digest.hexdigest(), change, content)


def _hash_of(path: Path) -> str:
    try:
        with open_ordinary(path) as file:
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
            return digest.hexdigest()
    except OSError as error:
        raise ReceiptError(f"The input {path.name} cannot be read: {error}") from error


def files_for(
    inputs: Sequence[Input],
    data: Mapping[str, Path],
    folders: Sequence[Path],
    root: Path | None = None,
) -> dict[str, AddedFile]:
    """Find the inputs of a receipt: given files first, then its own copy, then some folders.

    Links in the folder `root` of the project may not leave it; None allows any target.

    Returns:
        The files by name.

    Raises:
        ReceiptError: If one is missing, or a given file is for no input.
    """
    unknown = sorted(set(data) - {item.name for item in inputs})
    if unknown:
        raise ReceiptError(f"The receipt has no input {', '.join(unknown)}.")
    return {item.name: _file_for(item, data.get(item.name), folders, root) for item in inputs}


def _file_for(
    item: Input, given: Path | None, folders: Sequence[Path], root: Path | None
) -> AddedFile:
    if given is not None:
        if not given.is_file():
            raise ReceiptError(f"{given} does not exist.")
        return {"name": item.name, "path": given}
    if item.content is not None:
        try:
            return {"name": item.name, "content": base64.b64decode(item.content, validate=True)}
        except (binascii.Error, ValueError) as error:
            raise ReceiptError(f"The content of {item.name} is no base64: {error}") from error
    paths = (folder / item.name for folder in folders)
    found = next((path for path in paths if path.is_file() and not leaves(path, root)), None)
    if found is None:
        raise ReceiptError(
            f"The input {item.name} ({item.bytes:,} bytes) is not in the receipt."
            f" Name it: --data {item.name}=PATH"
        )
    return {"name": item.name, "path": found}


def hash_of(file: AddedFile) -> str:
    """Return the hash of a file that was found.

    Raises:
        ReceiptError: If it cannot be read.
    """
    content = file.get("content")
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    return _hash_of(Path(file["path"]))
