"""Search for files below a folder in which others come and go meanwhile."""

from __future__ import annotations

from glob import escape, glob
from pathlib import Path


def paths_below(folder: Path, pattern: str) -> list[Path]:
    """Return the paths that `Path.rglob` finds, which fails where a folder has just gone."""
    found = glob(f"{escape(str(folder))}/**/{pattern}", recursive=True, include_hidden=True)  # noqa: PTH207
    return list(map(Path, found))
