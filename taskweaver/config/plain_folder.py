"""Sessions and logs of folders without a configuration file, kept in the user's state folder."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.utils.system.installation import state_folder

_ORIGIN = "folder.txt"
"""File that names the working folder, for a person who looks into the state folder."""

_OWN_SESSIONS = Path("workspace", "sessions")
_NAME_CHARS = 40


def state_place(folder: Path) -> Path | None:
    """Return the place in the user's state folder that belongs to a folder without a configuration.

    Returns:
        The place; None where the folder keeps its sessions itself: it has some of an earlier
        version, or the state folder cannot be written.
    """
    folder, state = folder.resolve(), state_folder()
    if state is None or _has_own_sessions(folder) or not _can_be_made(state):
        return None
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    name = re.sub(r"[^\w.-]+", "-", folder.name)[:_NAME_CHARS]
    return state / "folders" / f"{name}-{digest}"


def defaults_at(place: Path) -> dict[str, str]:
    """Return the defaults of keys that lead into a place of `state_place`."""
    return {
        "workspace.workspace_path": str(place / "workspace"),
        "execution_service.env_dir": str(place / "workspace" / "env"),
        "logging.log_folder": str(place / "logs"),
    }


def prepare_place(src: AppConfigSource) -> str:
    """Make the place of a folder without a configuration file, which only the user can read.

    Returns:
        A sentence that names the folder of the sessions when the place is new; else empty.

    Raises:
        ConfigError: If it cannot be made.
    """
    place = None if src.config_file else state_place(src.app_base_path)
    workspace = Path(src.get_path("workspace.workspace_path"))
    if place is None or not workspace.is_relative_to(place):
        return ""
    try:
        is_new = _make(place, src.app_base_path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(str(place), f"cannot be made: {reason}.") from error
    if not is_new:
        return ""
    return f"Sessions of this folder are kept in {workspace / 'sessions'}, not in the folder."


def _make(place: Path, folder: Path) -> bool:
    """Make a place that names its working folder, and return whether the place is new."""
    place.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.parent.mkdir(exist_ok=True, mode=0o700)
    place.mkdir(exist_ok=True, mode=0o700)
    try:
        with (place / _ORIGIN).open("xb") as file:
            file.write(os.fsencode(folder) + b"\n")
    except FileExistsError:
        return False
    return True


def _has_own_sessions(folder: Path) -> bool:
    """Return whether the user made the folder's sessions. The maker of a link counts."""
    sessions = folder / _OWN_SESSIONS
    try:
        makers = {place.lstat().st_uid for place in (sessions.parent, sessions)}
        return sessions.is_dir() and makers == {os.geteuid()}
    except OSError:
        return False


def _can_be_made(path: Path) -> bool:
    """Return whether the nearest folder above that exists can be written."""
    nearest = next((place for place in (path, *path.parents) if place.exists()), None)
    return nearest is not None and nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
