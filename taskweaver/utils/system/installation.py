"""This installation: packages of extras, the folder of the state, and keys kept in files.

This package is not on PyPI, where anyone may take its name: ``pip install`` of an extra of it would
install the code of strangers. So commands that install the packages of an extra name the packages.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shlex
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from taskweaver.utils.system.platform import SYSTEM

_DISTRIBUTION = "taskweaver"
KEY_BYTES = 32


def requirements(extra: str = "") -> list[str]:
    """Return the requirements of an extra that apply to this system, in the form for pip.

    Args:
        extra: Name of the extra; empty for the package itself.

    Returns:
        Names with their versions, in the order of the package's metadata; none when the package
        is not installed and has no metadata.
    """
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for requirement in map(Requirement, lines):
        marker, requirement.marker = requirement.marker, None
        is_core = marker is None or marker.evaluate({"extra": ""})
        if is_core is not bool(extra) and (marker is None or marker.evaluate({"extra": extra})):
            found.append(str(requirement))
    return found


def missing(extra: str = "") -> list[str]:
    """Return the requirements of an extra whose package is not installed. See `requirements`."""
    return absent(requirements(extra))


def absent(lines: Iterable[str]) -> list[str]:
    """Return the requirements whose package is not installed, in any version."""
    from packaging.requirements import Requirement

    def is_installed(name: str) -> bool:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            return False
        return True

    return [line for line in lines if not is_installed(Requirement(line).name)]


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    return command(requirements(extra)) or f"install the packages of its extra `{extra}`"


def command(lines: list[str]) -> str:
    """Return the command that installs requirements, or an empty text without requirements."""
    quoted = " ".join(f'"{line}"' for line in lines)
    return f"python -m pip install {quoted}" if lines else ""


def kept_key(file: Path) -> bytes:
    """Return the key in a file, which is made, for the owner alone, if missing.

    Raises:
        OSError: If the file cannot be read or made.
    """
    with suppress(FileNotFoundError):
        return file.read_bytes()
    key = secrets.token_bytes(KEY_BYTES)
    partial = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial.touch(0o600)
    try:
        partial.write_bytes(key)
        os.link(partial, file)  # whole or not at all, also when two processes begin at once
    except FileExistsError:
        return file.read_bytes()
    finally:
        partial.unlink()
    return key


def own_command(*words: object, project: Path | None = None) -> str:
    """Return a command of this program in the form for a shell, for texts that a user copies."""
    option = [] if project is None else ["-p", str(project)]
    return shlex.join(["taskweaver", *option, *map(str, words)])


def seal(folder: Path) -> str:
    """Return the text that marks a folder as written by this installation, at this place.

    The same folder elsewhere, copied or moved, has another seal. Without a home folder the key is
    made for this process alone.
    """
    place = os.fsencode(folder.resolve())
    return hmac.new(_key(state_folder()), place, hashlib.sha256).hexdigest()


def state_folder() -> Path | None:
    """Return the folder of the user's state, or None without a home folder.

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


@cache
def _key(state: Path | None) -> bytes:
    if state is not None:
        with suppress(OSError):
            return kept_key(state / "installation.key")
    return secrets.token_bytes(KEY_BYTES)
