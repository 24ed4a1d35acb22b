"""The user's decisions about project folders, kept in the user's state, outside of the folders."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from taskweaver.trust.finding import Finding
from taskweaver.utils.system.installation import state_folder

_MOST_BYTES = 4 << 20
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Answers:
    """The decisions about one folder.

    Attributes:
        granted: Digests of the effects that the user allows.
        declined: Digests of those that the user does not allow.
    """

    granted: frozenset[str] = frozenset()
    declined: frozenset[str] = frozenset()

    def undecided(self, findings: Collection[Finding]) -> tuple[Finding, ...]:
        """Return the findings that the user was not asked about yet."""
        return tuple(f for f in findings if f.digest not in self.granted | self.declined)


def answers_for(folder: Path) -> Answers:
    """Return the decisions about a folder; none where they cannot be read."""
    file = _file(folder)
    if file is None:
        return Answers()
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as opened:
            if os.fstat(opened.fileno()).st_uid != os.geteuid():
                return Answers()
            data = json.loads(opened.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return Answers()
    if not isinstance(data, dict) or data.get("folder") != str(folder.resolve()):
        return Answers()
    return Answers(_texts(data.get("granted")), _texts(data.get("declined")))


def _texts(value: object) -> frozenset[str]:
    items = value if isinstance(value, list) else []
    return frozenset(item for item in items if isinstance(item, str))


def remember(folder: Path, answers: Answers) -> bool:
    """Keep the decisions about a folder in place of earlier ones; return whether that was done."""
    file = _file(folder)
    if file is None:
        return False
    data = {
        "folder": str(folder.resolve()),
        "granted": sorted(answers.granted),
        "declined": sorted(answers.declined),
    }
    partial = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(partial, flags, _MODE), "w", encoding="utf-8") as opened:
            json.dump(data, opened, indent=1)
        partial.replace(file)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        return False
    return True


def forget(folder: Path) -> bool:
    """Remove the decisions about a folder; return whether there were any.

    Raises:
        OSError: If they cannot be removed.
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
