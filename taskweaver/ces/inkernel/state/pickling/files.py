"""Reduction of file objects."""

from __future__ import annotations

import io
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.state.pickling import rebuild
from taskweaver.ces.inkernel.state.pickling.scope import CannotStore, Notes, type_name
from taskweaver.ces.inkernel.state.placeholder import ClosedFile


def reduce_file(notes: Notes, file: Any) -> Any:
    """Reduce a file: closed ones stay closed, those open for reading are opened again.

    Raises:
        CannotStore: If the file is open for writing, or is no file with a path.
    """
    if file.closed:
        return ClosedFile, (_name(file), str(getattr(file, "mode", "")))
    mode = str(getattr(file, "mode", ""))
    if file.writable():
        raise CannotStore("the file is open for writing")
    path = _name(file)
    if not isinstance(path, str) or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise CannotStore("it is no file with a path")
    try:
        position = file.tell()
    except OSError as error:
        raise CannotStore(f"its position is unknown: {error}") from None
    options: dict[str, Any] = {"mode": mode}
    if isinstance(file, io.TextIOWrapper):
        options |= {"encoding": file.encoding, "errors": file.errors}
    elif isinstance(file, io.FileIO):
        options["buffering"] = 0
    facts = (type_name(type(file)), notes.cell)
    return rebuild.reopened, (local_path(path), options, position, *facts)


def local_path(path: str) -> str:
    """Return a path relative to the working directory if it lies there.

    A branch of a session has a copy of the directory, and must not open its parent's files.
    """
    with suppress(ValueError, OSError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def _name(file: Any) -> Any:
    """Return the path of a file, or its number."""
    name = getattr(file, "name", "")
    return os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else name
