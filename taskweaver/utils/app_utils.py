"""The folder of a project."""

from __future__ import annotations

import json
from pathlib import Path

CONFIG_FILE = "taskweaver_config.json"
"""Name of a project's configuration file."""


def discover_app_dir(app_dir: str | Path | None = None) -> tuple[Path, bool, bool]:
    """Find the project folder.

    Args:
        app_dir: The folder; None looks upwards from the current one for a configuration file.

    Returns:
        The folder, whether it is a project, and whether it is empty.
    """
    if app_dir is None:
        here = Path.cwd()
        places = [here, *here.parents]
        path = next((place for place in places if _is_project(place)), here)
    else:
        path = Path(app_dir).expanduser().resolve()
    is_empty = not path.is_dir() or not any(path.iterdir())
    return path, _is_project(path), is_empty


def _is_project(folder: Path) -> bool:
    try:
        return isinstance(json.loads((folder / CONFIG_FILE).read_text("utf-8")), dict)
    except (OSError, ValueError):
        return False
