"""The cell that runs now: displayed results, new files, and the sender.

Results of a cell of another Jupyter client are messages, as in any kernel, and no files.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MAX_FILES = 2_000
_MAX_LISTED = 50
_MAX_DEPTH = 4
_IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}
_TYPES = {".svg": "svg", ".html": "html", ".htm": "html", ".txt": "txt", ".md": "txt"}
_TABLES = {".csv", ".tsv", ".parquet", ".xlsx"}


@dataclass(slots=True)
class Listed:
    """One artifact, in the form of the report.

    `file_name` is absolute here, and `origin` says which plugin made it, if one did.
    """

    name: str
    type: str
    file_name: str
    original_name: str
    preview: str
    origin: str = ""


@dataclass(slots=True)
class ArtifactList:
    """Artifacts of the current cell.

    Attributes:
        exec_id: Id of the cell.
        folder: The working directory, wherever the cell changes to.
        items: The artifacts, in the order they were made.
        figures: Numbers of the figures that the cell has made or named, and not shown yet.
        shown: Ids of the figures that it has shown.
        displays: Files of displays that can be updated, by id.
    """

    exec_id: str = ""
    folder: Path = field(default_factory=Path.cwd)
    items: list[Listed] = field(default_factory=list)
    figures: set[int] = field(default_factory=set)
    shown: set[int] = field(default_factory=set)
    displays: dict[str, Path] = field(default_factory=dict)
    _reported: int = 0
    _before: dict[str, tuple[int, int]] = field(default_factory=dict)
    _described: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def begin(self, exec_id: str) -> None:
        """Begin a cell: drop the artifacts that were reported, record the files that exist."""
        self.exec_id = exec_id
        self.items, self._reported = self.items[self._reported :], 0
        self.displays.clear()
        self.figures.clear()
        self.shown.clear()
        self._described = {}
        self._before = dict(_files(self.folder))

    def add(
        self, path: Path, type: str, *, name: str = "", original_name: str = "", preview: str = ""
    ) -> str:
        """List a file, and return the id of the artifact."""
        self._count += 1
        id_ = name or f"obj_{self._count:04x}_{type}"
        listed = Listed(id_, type, str(path), original_name or path.name, preview)
        self.items.append(listed)
        return id_

    def describe(self, path: Path, text: str) -> None:
        """Keep the description of a file that the cell wrote."""
        self._described[str(path.resolve())] = text

    def report(self) -> list[dict[str, Any]]:
        """Add new and changed files that are not listed yet, and return all artifacts."""
        known = {Path(item.file_name).resolve() for item in self.items}
        for name, stamp in _files(self.folder):
            path = Path(name)
            is_new = self._before.get(name) != stamp and path.resolve() not in known
            if is_new and len(self.items) < _MAX_LISTED:
                described = self._described.get(str(path.resolve()), "")
                preview = "; ".join(filter(None, [described, _size(stamp[1])]))
                self.add(path, type_of(path), preview=preview)
        self._reported = len(self.items)
        return [asdict(item) for item in self.items]


ARTIFACTS = ArtifactList()


def free_name(stem: str, suffix: str) -> Path:
    """Return a path in the working directory that does not exist: ``stem_1.suffix``, ``_2``..."""
    numbers = range(1, MAX_FILES)
    paths = (ARTIFACTS.folder / f"{stem}_{number}{suffix}" for number in numbers)
    return next(path for path in paths if not path.exists())


def _files(folder: Path, depth: int = 0) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the first visible files below a folder, without links, with time and size."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)[:MAX_FILES]
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith((".", "__")) or entry.is_symlink():
            continue
        if entry.is_file():
            try:
                facts = entry.stat()
            except OSError:
                continue  # gone meanwhile
            yield entry.path, (facts.st_mtime_ns, facts.st_size)
        elif entry.is_dir() and depth < _MAX_DEPTH:
            yield from _files(Path(entry.path), depth + 1)


def type_of(path: Path) -> str:
    """Return the type of artifact that a file is, by name."""
    suffix = path.suffix.lower()
    if suffix in _IMAGES:
        return "image"
    return "df" if suffix in _TABLES else _TYPES.get(suffix, "file")


def _size(size_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} GiB"


class ForeignCell:
    """The cell of another client that runs now, if any.

    Attributes:
        is_running: Whether the cell that runs is one of another client.
    """

    is_running = False

    @contextmanager
    def running(self, shell: Any) -> Iterator[None]:
        """Show results and figures of the code in a block to the sender of the code."""
        before = shell.ast_node_interactivity
        shell.ast_node_interactivity = "last_expr"  # the value of an assignment is not shown
        self.is_running = True
        try:
            yield
        finally:
            self.is_running = False
            shell.ast_node_interactivity = before


FOREIGN = ForeignCell()


def show_picture(png: bytes, text: str) -> None:
    """Send a picture, with a text as a substitute, to the client whose cell runs."""
    from IPython.display import display

    display({"image/png": base64.b64encode(png).decode(), "text/plain": text}, raw=True)
