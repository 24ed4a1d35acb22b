"""The user's answer about a project folder, kept in the user's state, outside of the folder."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from taskweaver.utils.system.installation import state_folder

_MOST_BYTES = 4 << 20


class Answer(NamedTuple):
    """An answer about a folder, and the hashes of the effects."""

    digests: frozenset[str]
    is_granted: bool


def answer_for(folder: Path) -> Answer | None:
    """Return the readable answer about a folder, or None."""
    file = _file(folder)
    if file is None:
        return None
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as opened:
            is_own = os.fstat(opened.fileno()).st_uid == os.geteuid()
            data = json.loads(opened.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not is_own or not isinstance(data, dict) or data.get("folder") != str(folder.resolve()):
        return None
    digests = data.get("digests")
    known = frozenset(map(str, digests)) if isinstance(digests, list) else frozenset()
    return Answer(known, data.get("is_granted") is True)


def granted_digests(folder: Path) -> frozenset[str]:
    """Return the hashes of the effects that the user allows."""
    answer = answer_for(folder)
    return answer.digests if answer is not None and answer.is_granted else frozenset()


def remember(folder: Path, answer: Answer) -> bool:
    """Keep the answer about a folder in place of an earlier one; return whether that was done."""
    file = _file(folder)
    if file is None:
        return False
    digests = sorted(answer.digests)
    data = {
        "folder": str(folder.resolve()), "digests": digests, "is_granted": answer.is_granted,
    }  # fmt: skip
    partial = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(partial, flags, 0o600), "w", encoding="utf-8") as opened:
            json.dump(data, opened, indent=1)
        partial.replace(file)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        return False
    return True


def forget(folder: Path) -> bool:
    """Remove the answer about a folder, and return whether there was one.

    Raises:
        OSError: If it cannot be removed.
    """
    file = _file(folder)
    if file is None or not file.exists():
        return False
    file.unlink()
    return True


def _file(folder: Path) -> Path | None:
    state = state_folder()
    if state is None:
        return None
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    return state / "trust" / f"{name}.json"
