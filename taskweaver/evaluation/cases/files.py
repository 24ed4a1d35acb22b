"""Files of a case: named by a path beside it, or written into it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from taskweaver.evaluation.cases.case import CaseFile
from taskweaver.evaluation.errors import EvaluationError
from taskweaver.evaluation.fields import CaseFields
from taskweaver.utils.file_system.safe_fs import open_ordinary
from taskweaver.utils.files import inside

_MOST_BYTES = 64 << 20
_MOST_FILES = 1_000


def read_files(fields: CaseFields, name: str, folder: Path) -> tuple[CaseFile, ...]:
    """Read the files of a field: paths relative to the case's file, or names with their text.

    Args:
        fields: The case, or a step of it.
        name: Name of the field.
        folder: Folder of the case's file, which no path leaves.

    Raises:
        EvaluationError: If a file is missing, is elsewhere, or is too large.
    """
    if isinstance(fields.data.get(name), dict):
        return tuple(_written(fields, name))
    found = [file for path in fields.texts(name) for file in _beside(fields, name, folder, path)]
    if len(found) > _MOST_FILES:
        raise fields.error(name, f"are more than {_MOST_FILES:,} files.")
    return tuple(found)


def digest_of(data: Any, files: Iterable[CaseFile]) -> str:
    """Return the hash of a case and its files."""
    digest = hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode())
    for file in files:
        digest.update(f"\n{file.name} {len(file.content)}\n".encode())
        digest.update(file.content)
    return digest.hexdigest()[:16]


def _written(fields: CaseFields, name: str) -> Iterator[CaseFile]:
    for file, text in fields.mapping(name).items():
        path = Path(file)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise fields.error(name, f"has {file!r}, which is not a path inside of its folder.")
        if not isinstance(text, str):
            raise fields.error(name, f"has {file!r} without a text.")
        yield CaseFile(file, text.encode())


def _beside(fields: CaseFields, name: str, folder: Path, path: str) -> Iterator[CaseFile]:
    try:
        source = inside(folder, path)
    except ValueError as error:
        raise EvaluationError(fields.place, f"{name}: {error}") from error
    if source.is_dir():
        for file in sorted(item for item in source.rglob("*") if item.is_file()):
            relative = Path(source.name) / file.relative_to(source)
            yield CaseFile(relative.as_posix(), _content(fields, name, file))
        return
    yield CaseFile(source.name, _content(fields, name, source))


def _content(fields: CaseFields, name: str, path: Path) -> bytes:
    try:
        with open_ordinary(path) as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror}."
        raise EvaluationError(fields.place, f"{name}: {problem}") from error
    if len(content) > _MOST_BYTES:
        raise EvaluationError(fields.place, f"{name}: {path} is larger than {_MOST_BYTES:,} bytes.")
    return content
