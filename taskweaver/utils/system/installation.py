"""State of this installation: its folder, and the secret that marks folders it wrote."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shlex
from contextlib import suppress
from functools import cache
from pathlib import Path

from taskweaver.utils.system.key_file import KEY_BYTES, kept_key
from taskweaver.utils.system.platform import SYSTEM


def own_command(*words: object, project: Path | None = None) -> str:
    """Return a command of this program as a shell takes it, for texts that a user copies."""
    option = [] if project is None else ["-p", str(project)]
    return shlex.join(["taskweaver", *option, *map(str, words)])


def seal(folder: Path) -> str:
    """Return the text that marks a folder as written by this installation, at this place.

    The same folder elsewhere, copied or moved, has another seal. Without a home folder the key is
    made for this process alone.
    """
    place = os.fsencode(folder.resolve())
    return hmac.new(_key(_key_file()), place, hashlib.sha256).hexdigest()


def state_folder() -> Path | None:
    """Return the folder of the user's state; None without a home folder.

    It follows the XDG base directories. On macOS it is in the library of the home folder, unless
    an earlier version made the one that the base directories name.
    """
    try:
        home = Path.home()
    except RuntimeError:
        default = None
    else:
        default, library = home / ".local" / "state", home / "Library" / "Application Support"
        if SYSTEM == "darwin" and not (default / "taskweaver").is_dir():
            default = library
    # A relative path counts as none: it leads into the current folder, perhaps another user's.
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    state = named if named.is_absolute() else default
    return state / "taskweaver" if state and state.is_absolute() else None


def _key_file() -> Path | None:
    """Return the file of the key; None without a home folder."""
    folder = state_folder()
    return None if folder is None else folder / "installation.key"


@cache
def _key(file: Path | None) -> bytes:
    if file is not None:
        with suppress(OSError):
            return kept_key(file)
    return secrets.token_bytes(KEY_BYTES)
