"""Reads documents as text."""

from __future__ import annotations

from pathlib import Path

from taskweaver.utils.files import read_text
from taskweaver.utils.html_text import html_text

_PLAIN = (".txt", ".md", ".markdown")
_HTML = (".html", ".htm")


def read_document(path: Path, max_chars: int | None = None) -> str:
    """Return the text of a document; headings of HTML begin with ``#``.

    Args:
        path: The file; its suffix says what it is.
        max_chars: Where the text is cut off; None for nowhere.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is of another kind, too large, or not text.
    """
    suffix = path.suffix.lower()
    if suffix not in (*_PLAIN, *_HTML):
        raise ValueError(f"{path.name}: documents of the kind {suffix!r} cannot be read")
    text = read_text(path)
    text = html_text(text).text if suffix in _HTML else text
    return text[:max_chars]
