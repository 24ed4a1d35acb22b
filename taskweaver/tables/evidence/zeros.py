"""Search a large file for numerals that begin with 0 or +, which the C parser takes for numbers."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from taskweaver.tables.evidence.sniffing import TextForm, is_gzip

_CHUNK = 1 << 16
_LONGEST = 20
_ZERO, _PLUS, _QUOTE = ord("0"), ord("+"), ord('"')
_LINE_FEED = ord("\n")


def may_hold_names(path: Path, form: TextForm) -> bool:
    """Return whether a field is a numeral that begins with 0 or +; in UTF-16 one always may be."""
    if form.encoding.startswith("utf-16") or len(form.separator) > 1:
        return True
    import numpy as np

    with _opened(path) as file:
        return any(
            _found(np.frombuffer(chunk, np.uint8), form.separator) for chunk in _chunks(file)
        )


def _opened(path: Path) -> IO[bytes]:
    if is_gzip(path):
        return gzip.open(path)  # type: ignore[return-value]  # it reads like a file
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.open(archive.namelist()[0])
    return path.open("rb")


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Give the bytes in chunks that overlap by the longest numeral."""
    rest = b"\n"
    while chunk := file.read(_CHUNK):
        yield rest + chunk
        rest = chunk[-_LONGEST:]


def _found(data: Any, separator: str) -> bool:
    """Return whether a field in some bytes is a numeral that begins with 0 or +."""
    import numpy as np

    # Comparisons of bytes are much faster than lists of places, which come last therefore.
    before, after = data[:-1], data[1:]
    begins = before == ord(separator)
    begins |= before == _LINE_FEED
    begins |= before == _QUOTE
    begins &= (after == _ZERO) | (after == _PLUS)
    places = np.flatnonzero(begins) + 2
    for length in range(_LONGEST):
        if not len(places):
            return False
        places = places[places < len(data)]
        values = data[places]
        is_digit = (values >= _ZERO) & (values <= _ZERO + 9)
        is_end = (values == ord(separator)) | (values == 10) | (values == 13) | (values == _QUOTE)
        if length > 0 and is_end.any():
            return True
        places = places[is_digit] + 1
    return False
