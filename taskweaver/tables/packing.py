"""Compressed files: a table of any form in gzip, or alone in a zip archive."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO

from taskweaver.tables.errors import TableError

PACKED = frozenset({".gz", ".zip"})
"""Suffixes of compressed files."""


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, after decompression.

    Raises:
        TableError: If an archive holds anything but one file, or is damaged.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(_member(archive, path)) as file:
                yield file
        else:
            with gzip.open(path) if is_gzip(path) else path.open("rb") as file:
                yield file  # type: ignore[misc]  # a file of gzip reads like another
    except (zipfile.BadZipFile, EOFError, gzip.BadGzipFile, zlib.error, RuntimeError) as error:
        raise TableError(f"{path.name} is damaged, or cannot be unpacked: {error}.") from error


def is_gzip(path: Path) -> bool:
    """Return whether a file is compressed by gzip, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def beginning(path: Path, size: int) -> tuple[bytes, str]:
    """Return the first bytes and the suffix, in lower case, of a file after decompression.

    Raises:
        TableError: If an archive holds anything but one file, or is damaged.
    """
    with opened(path) as file:
        inner = path.stem if path.suffix.lower() == ".gz" else file.name
        return file.read(size), Path(inner).suffix.lower()


def source_of(path: str | PurePath) -> Path | io.BytesIO:
    """Return a file as readers take it: its path, or its content after decompression."""
    place = Path(path)
    if place.suffix.lower() != ".zip" and not is_gzip(place):
        return place
    with opened(place) as file:
        return io.BytesIO(file.read())


def _member(archive: zipfile.ZipFile, path: Path) -> str:
    names = [item for item in archive.namelist() if not item.endswith("/")]
    if len(names) != 1:
        raise TableError(f"{path.name} holds {len(names)} files; unpack it first.")
    return names[0]
