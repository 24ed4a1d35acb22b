"""How two branches of a session differ: what was asked, what is remembered, variables, files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.branched.compare import Difference
from taskweaver.memory.round import Round

Pair = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class BranchDifference:
    """How two branches differ.

    Attributes:
        rounds: What was asked on the first only, and on the second only.
        memory: How their memories differ.
        variables: Variables that differ, as each branch last showed them; None is none.
        files: Files that differ: their sizes in bytes as text; None is none.
    """

    rounds: tuple[list[str], list[str]]
    memory: Difference
    variables: dict[str, Pair]
    files: dict[str, Pair]


def rounds_apart(first: Sequence[Round], second: Sequence[Round]) -> tuple[list[str], list[str]]:
    """Return what was asked in rounds that only one of two conversations has."""
    ids = [{round_.id for round_ in rounds} for rounds in (first, second)]
    return (
        [round_.user_query for round_ in first if round_.id not in ids[1]],
        [round_.user_query for round_ in second if round_.id not in ids[0]],
    )


def variables_of(rounds: Sequence[Round]) -> dict[str, str]:
    """Return the variables as the newest report of a conversation shows them."""
    for round_ in reversed(rounds):
        for post in reversed(round_.post_list):
            stored = post.get_attachment(AttachmentType.session_variables)
            if stored:
                return {str(name): str(value) for name, value in json.loads(stored[-1].content)}
    return {}


def files_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the files of a folder by name, with size and content where it is small."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            size = path.stat().st_size
            content = path.read_bytes() if size <= _SMALL else str(path.stat().st_mtime_ns).encode()
            found[path.relative_to(folder).as_posix()] = (size, content)
    return found


_SMALL = 1 << 20


def differing_files(first: Path, second: Path) -> dict[str, Pair]:
    """Return files that only one folder has, or that differ; large ones go by size and time."""
    one, two = files_of(first), files_of(second)
    names = sorted(name for name in {*one, *two} if one.get(name) != two.get(name))
    return {name: (_size(one, name), _size(two, name)) for name in names}


def _size(files: dict[str, tuple[int, bytes]], name: str) -> str | None:
    return f"{files[name][0]:,} bytes" if name in files else None


def pairs(first: dict[str, str], second: dict[str, str]) -> dict[str, Pair]:
    """Return what differs between two dictionaries."""
    names = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    return {name: (first.get(name), second.get(name)) for name in names}
