"""Tracebacks and warnings as an author of cells reads them: frames of libraries are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_LINK = re.compile(
    r"(\n*(?:The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)\n+)"
)
_FRAME = re.compile(
    r"^  (?:File (?P<file>[^\n]+?):\d+(?: in [^\n]*)?|Cell [^\n]*)\n(?:    [^\n]*(?:\n|\Z))*",
    re.MULTILINE,
)
_PACKAGE = re.compile(r"/(?:site|dist)-packages/([^/]+)|([\w.]+)/[^\n]*\.(?:pyx|pxi)$")
_STANDARD = re.compile(r"/lib/python3\.\d+/|^<frozen ")
_CELL_FILE = re.compile(r"\S*ipykernel_\d+/\d+\.py:(\d+): ")


def readable_trace(trace: str) -> str:
    """Return a traceback with the frames of libraries counted, not shown.

    Causes that never passed through a cell are left out. A traceback without any frame of a cell
    stays as it is.
    """
    if "  Cell " not in trace:
        return trace
    pieces = _LINK.split(trace)
    parts, links = pieces[::2], pieces[1::2]
    shown = parts[-1:]
    for part, link in zip(reversed(parts[:-1]), reversed(links), strict=True):
        if "  Cell " in part:
            shown = [part, link, *shown]
    return "".join(_shortened(part) if at % 2 == 0 else part for at, part in enumerate(shown))


def readable_warnings(text: str) -> str:
    """Return the warnings of a cell with its line in place of a temporary file's name."""
    return _CELL_FILE.sub(r"Cell, line \1: ", text)


def _shortened(part: str) -> str:
    frames = list(_FRAME.finditer(part))
    if not frames:
        return part
    body = "".join(_lines(frames))
    return part[: frames[0].start()] + body + part[frames[-1].end() :]


def _lines(frames: list[re.Match[str]]) -> Iterator[str]:
    for package, run in groupby(frames, lambda frame: _package(frame["file"] or "")):
        kept = list(run)
        if package:
            noun = "frame" if len(kept) == 1 else "frames"
            yield f"  ... {len(kept)} {noun} inside {package}\n"
        else:
            yield from (frame[0] for frame in kept)


def _package(file: str) -> str:
    """Return the package that a file belongs to; empty for a cell and the user's own files."""
    match = _PACKAGE.search(file)
    if match:
        return (match[1] or match[2]).removesuffix(".py")
    return "Python's own library" if _STANDARD.search(file) else ""
