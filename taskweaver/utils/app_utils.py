"""The project folder of a command: the current folder, or the nearest project above."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from taskweaver.utils.files import read_json

CONFIG_FILE = "taskweaver_config.json"
"""Name of a project's configuration file."""

MOST_BYTES = 4 << 20
"""Largest one that is read."""


def discover_app_dir(app_dir: str | Path | None = None) -> tuple[Path, bool, bool]:
    """Find the project folder.

    Args:
        app_dir: The folder; None looks upwards from the current one for a configuration file, in
            folders of the user's own alone: see `own_folders_above`.

    Returns:
        The folder, whether it is a project, and whether it is empty.
    """
    if app_dir is None:
        here = Path.cwd()
        found = next((place for place in own_folders_above(here) if _is_project(place)), None)
        path = found or here
        return path, found is not None, _is_empty(path)
    path = Path(app_dir).expanduser().resolve()
    return path, _is_project(path), _is_empty(path)


def config_file_of(app_dir: str | Path | None) -> tuple[Path, Path | None]:
    """Return the folder of a project and the configuration file, or None for a file not to be read.

    A file in the current folder that `discover_app_dir` passes over is not read: anyone can put
    one into a folder that everyone can write to.
    """
    path, is_project, _ = discover_app_dir(app_dir)
    file = path / CONFIG_FILE
    is_own = is_project or app_dir is not None or any(own_folders_above(path))
    return path, file if is_own and file.exists() else None


def own_folders_above(folder: Path) -> Iterator[Path]:
    """Yield a folder and the folders above, as far as only the user can put files there.

    It stops before a folder of another user, one that everyone can write to, and the border of a
    file system; the home folder is the last one.
    """
    home = _home()
    device: int | None = None
    for place in (folder, *folder.parents):
        try:
            facts = place.stat()
        except OSError:
            return
        is_own = facts.st_uid == os.geteuid() and not facts.st_mode & stat.S_IWOTH
        if not is_own or (device is not None and facts.st_dev != device):
            return
        device = facts.st_dev
        yield place
        if place == home:
            return


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):
        return None


def _is_empty(folder: Path) -> bool:
    return not folder.is_dir() or not any(folder.iterdir())


def _is_project(folder: Path) -> bool:
    try:
        return isinstance(read_json(folder / CONFIG_FILE, MOST_BYTES), dict)
    except (OSError, ValueError):
        return False
