"""The user's answer about a project folder, kept in the user's state, outside of the folder."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from taskweaver.utils.files import PRIVATE, PRIVATE_FOLDER, read_json, write_text
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
        is_own = file.lstat().st_uid == os.geteuid()
        data = read_json(file, _MOST_BYTES)
    except (OSError, ValueError):
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
    """Keep the answer about a folder, and return whether the answer was written."""
    file = _file(folder)
    if file is None:
        return False
    data = {
        "folder": str(folder.resolve()),
        "digests": sorted(answer.digests),
        "is_granted": answer.is_granted,
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        write_text(file, json.dumps(data, indent=1), mode=PRIVATE)
    except OSError:
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
