"""Differences of two branches of a session: messages, memory, variables, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from taskweaver.ces.inkernel.state.placeholder import LOST_MARK
from taskweaver.memory.branched.upkeep.compare import MemoryDifference
from taskweaver.memory.round import Round
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.text import without_addresses

Pair = tuple[str | None, str | None]
OTHER = "other content"
_SIDES = ("only the first", "only the second")
_ROUND_EVENT = "[round] "
_LINE_CHARS = 120
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True)
class BranchDifference:
    """Differences of two branches.

    Attributes:
        rounds: Messages of the user on the first only, and on the second only.
        memory: Differences of their memories.
        variables: Variables that differ, as each branch last showed them; None is none.
        files: Files that differ: their sizes in bytes as text; None is none.
    """

    rounds: tuple[list[str], list[str]]
    memory: MemoryDifference
    variables: dict[str, Pair]
    files: dict[str, Pair]

    def __str__(self) -> str:
        lines = [
            f"{side}: {_first_line(text)}"
            for side, texts in zip(_SIDES, self.rounds, strict=True)
            for text in texts
        ]
        groups = {"variable": self.variables, "file": self.files, "memory": self.memory.core}
        for kind, pairs in groups.items():
            lines += [
                f"{kind} {name}: {_first_line(first or '-')}  |  {_first_line(second or '-')}"
                for name, (first, second) in pairs.items()
            ]
        remembered = zip(_SIDES, self.memory.events, self.memory.archival, strict=True)
        for side, events, records in remembered:
            notes = [event for event in events if not event.startswith(_ROUND_EVENT)]
            lines += [f"{side}, event: {_first_line(event)}" for event in notes]
            lines += [f"{side}, record: {record}" for record in records]
        return "\n".join(lines) or "They are the same."


def _first_line(text: str) -> str:
    """Return the beginning of a text, in a line."""
    line = text.strip().partition("\n")[0]
    is_whole = line == text.strip() and len(line) <= _LINE_CHARS
    return line if is_whole else f"{line[:_LINE_CHARS].rstrip()} ..."


def rounds_apart(first: Sequence[Round], second: Sequence[Round]) -> tuple[list[str], list[str]]:
    """Return the user's messages of rounds that only one of two conversations has."""
    ids = [{round_.id for round_ in rounds} for rounds in (first, second)]
    return (
        [round_.question for round_ in first if round_.id not in ids[1]],
        [round_.question for round_ in second if round_.id not in ids[0]],
    )


def changed_variables(recorded: dict[str, str], now: Mapping[str, str]) -> dict[str, Pair]:
    """Return variables that both sides show, and show differently, without those that were lost."""
    shown = {name: text for name, text in recorded.items() if name in now and LOST_MARK not in text}
    return differing_variables(shown, {name: now[name] for name in shown})


def files_of(folder: Folder) -> dict[str, tuple[int, bytes]]:
    """Return the size of each file by name, with its hash if it is small, else its time."""
    found = {}
    for path, facts in folder.files():
        version = str(facts.st_mtime_ns).encode()
        if facts.st_size <= _SMALL:
            try:
                with folder.open_file(path) as file:
                    version = sha256(file.read(_SMALL)).digest()
            except OSError:
                continue  # removed or replaced since it was listed
        found[path] = (facts.st_size, version)
    return found


def differing_files(first: Folder, second: Folder) -> dict[str, Pair]:
    """Return files that only one folder has, or that differ. Large ones go by size and time."""
    return differing_sizes(files_of(first), files_of(second))


def differing_sizes(
    first: Mapping[str, tuple[int, object]], second: Mapping[str, tuple[int, object]]
) -> dict[str, Pair]:
    """Return files whose size and version differ: their sizes as text. None is none."""
    sizes = [{name: f"{file[0]:,} bytes" for name, file in one.items()} for one in (first, second)]
    return {
        name: (one, f"{two}, {OTHER}" if one == two else two)
        for name in differing_keys(first, second)
        for one, two in [(sizes[0].get(name), sizes[1].get(name))]
    }


def differing_keys(first: Mapping[str, object], second: Mapping[str, object]) -> list[str]:
    """Return the keys that only one side has, or that have other values, in order."""
    return sorted(key for key in {*first, *second} if first.get(key) != second.get(key))


def differing_variables(first: dict[str, str], second: dict[str, str]) -> dict[str, Pair]:
    """Return variables that differ. The address of an object in memory does not count."""
    one, two = (
        {name: without_addresses(value) for name, value in variables.items()}
        for variables in (first, second)
    )
    return {name: (first.get(name), second.get(name)) for name in differing_keys(one, two)}
