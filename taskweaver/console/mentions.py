"""Files a message names: found where the user stands, handed to the session."""

from __future__ import annotations

import re
from pathlib import Path

from taskweaver.utils.files import leaves

_QUOTED = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`")
_WORD = re.compile(r"[^\s\"'`<>|*?,;]+")


def mentioned_files(message: str, here: Path, there: Path, root: Path | None = None) -> list[Path]:
    """Find the files of a message that exist for the user and not yet for the kernel.

    A word counts when it looks like a file, that is, has a dot or a folder in it. Relative names
    start `here`; a file of the same name in the kernel's working directory, `there`, is left alone,
    for the code may have changed it. Links in the project folder `root` may not leave it.
    """
    words = [next(filter(None, match)) for match in _QUOTED.findall(message)]
    words += [word.lstrip("([{").rstrip(")]}.:!") for word in _WORD.findall(message)]
    found: dict[str, Path] = {}
    for word in words:
        path = _existing(word, here, root)
        if path is not None and path.name not in found and not (there / path.name).exists():
            found[path.name] = path
    return list(found.values())


def _existing(word: str, here: Path, root: Path | None) -> Path | None:
    if "." not in word and "/" not in word:
        return None
    try:
        path = here / Path(word).expanduser()
        return path.resolve() if path.is_file() and not leaves(path, root) else None
    except (OSError, RuntimeError, ValueError):
        return None
