"""Files of the page, under an address that changes with their content."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from taskweaver.page.bundle import needed

_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}
_STATIC = Path(__file__).parent / "static"
_PLACE = "PAGE_FILES"
_PRELOADS = "<!-- preloads -->"
_START, _ENTRY = "index.html", "app.js"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page.

    Attributes:
        content: Its bytes.
        packed: The same, compressed with gzip.
        media_type: Its media type.
        digest: Hash of its content, in hexadecimal digits.
    """

    content: bytes
    packed: bytes
    media_type: str
    digest: str

    @classmethod
    def of(cls, content: bytes, suffix: str) -> PageFile:
        """Return the file with some content, whose name has a suffix."""
        media_type = _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "text/plain")
        packed = gzip.compress(content, mtime=0)
        return cls(content, packed, media_type, hashlib.sha256(content).hexdigest()[:32])


@dataclass(frozen=True, slots=True)
class PageFiles:
    """All files of the page.

    Attributes:
        version: Hash of all of them: their addresses have it, so that browsers keep them for good.
        start: The document that a browser opens.
        modules: Paths of the modules that it loads at once; others come when they are first needed.
        files: The others by their paths, such as ``core/dom.js``.
    """

    version: str
    start: PageFile
    modules: tuple[str, ...]
    files: dict[str, PageFile]


@cache
def page_files() -> PageFiles:
    """Return the files of the page as they are in the package."""
    paths = sorted(path for path in _STATIC.rglob("*") if path.is_file())
    found = {path.relative_to(_STATIC).as_posix(): path.read_bytes() for path in paths}
    start = found.pop(_START)
    whole = hashlib.sha256(start)
    for path, content in found.items():
        whole.update(path.encode() + b"\0" + content)
    version = whole.hexdigest()[:16]
    sources = {path: text.decode() for path, text in found.items() if path.endswith(".js")}
    modules = sorted(needed(sources, _ENTRY))
    preloads = "\n".join(f'<link rel="modulepreload" href="{_PLACE}/{path}">' for path in modules)
    text = start.decode().replace(_PRELOADS, preloads).replace(_PLACE, f"page/{version}")
    return PageFiles(
        version,
        PageFile.of(text.encode(), ".html"),
        tuple(modules),
        {path: PageFile.of(content, Path(path).suffix) for path, content in found.items()},
    )
