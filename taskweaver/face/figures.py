"""Pictures that code of an answer drew."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from taskweaver.utils.file_system.safe_fs import Folder

MAX_FIGURE_BYTES = 4 << 20
"""Size of the largest picture that is read."""
MAX_FIGURES_BYTES = 32 << 20
"""Size of all pictures of an answer that are read."""
_FORMATS = {
    ".png": ("image/png", b"\x89PNG\r\n\x1a\n"),
    ".jpg": ("image/jpeg", b"\xff\xd8\xff"),
    ".jpeg": ("image/jpeg", b"\xff\xd8\xff"),
    ".gif": ("image/gif", b"GIF8"),
    ".svg": ("image/svg+xml", b""),
}
"""MIME types and first bytes, by the end of a file's name."""


@dataclass(frozen=True, slots=True)
class AnswerFigure:
    """A picture; a notebook shows it.

    Attributes:
        path: The file, in the session's working folder.
        mime: Its MIME type.
        data: Its content, such as PNG; empty for SVG, which can hold script, and for a file that
            is too large.
    """

    path: Path
    mime: str
    data: bytes

    def __repr__(self) -> str:
        return f"AnswerFigure({str(self.path)!r})"

    def _repr_html_(self) -> str:
        name = html.escape(self.path.name)
        if not self.data:
            return f"<p>{name} is not shown; the file has it.</p>"
        content = base64.b64encode(self.data).decode()
        return f'<img alt="{name}" style="max-width:100%" src="data:{self.mime};base64,{content}">'


def is_picture(name: str) -> bool:
    """Return whether a file has the name of a picture."""
    return Path(name).suffix.lower() in _FORMATS


def read_figures(names: Iterable[str], folder: Path) -> Iterator[AnswerFigure]:
    """Read pictures, up to `MAX_FIGURE_BYTES` each and `MAX_FIGURES_BYTES` together.

    Args:
        names: Paths relative to the folder.
        folder: A working folder, which code can write to; no link in it is followed.
    """
    left_bytes = MAX_FIGURES_BYTES
    for name in names:
        mime, magic = _FORMATS[Path(name).suffix.lower()]
        data = _content(folder, name, min(MAX_FIGURE_BYTES, left_bytes)) if magic else b""
        data = data if data.startswith(magic) else b""
        left_bytes -= len(data)
        yield AnswerFigure(folder / name, mime, data)


def _content(folder: Path, name: str, most_bytes: int) -> bytes:
    """Return the content of a file; empty for one that is too large, missing or no file."""
    try:
        with Folder.at(folder) as opened, opened.open_file(name) as file:
            content = file.read(most_bytes + 1)
    except (OSError, ValueError):  # code can remove or replace the files that it has written
        return b""
    return content if len(content) <= most_bytes else b""
