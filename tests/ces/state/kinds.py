"""Kinds of objects: code that makes each, and code that checks the restored one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Kind:
    """One kind of object.

    Attributes:
        name: Of the kind.
        make: Code of a cell.
        check: Code that runs in the restored kernel.
        lost: Variable and type that are listed as lost; empty if nothing is.
        is_slow: Whether it imports what takes seconds.
    """

    name: str
    make: str
    check: str
    lost: tuple[str, ...]
    is_slow: bool


def _kinds() -> Iterator[Kind]:
    text = (Path(__file__).parent / "kinds.txt").read_text("utf8")
    for section in text.split("# %% ")[1:]:
        name, _, body = section.partition("\n")
        make, _, check = body.partition("# check\n")
        needs, lost = (re.findall(rf"^# {word} (.*)$", make, re.M) for word in ("needs", "lost"))
        if all(find_spec(package) for package in " ".join(needs).split()):
            found = tuple(lost[0].split()) if lost else ()
            shown = f"assert type({found[0]}).__name__ == 'LostObject'\n" if found else ""
            is_slow = re.search(r"^# slow$", make, re.M) is not None
            yield Kind(name, make, check or shown, found, is_slow)


KINDS = list(_kinds())
