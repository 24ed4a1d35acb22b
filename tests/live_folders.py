"""Search for files below a folder in which others come and go meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def paths_below(folder: Path, pattern: str) -> list[Path]:
    """Return the paths that `Path.rglob` finds, which fails where a folder has just gone."""
    return [
        path
        for place, folders, files in os.walk(folder)
        for path in (Path(place, name) for name in (*folders, *files))
        if path.match(pattern)
    ]
