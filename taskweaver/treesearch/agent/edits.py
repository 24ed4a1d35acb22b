"""Search-and-replace blocks: a change of a file, as a model writes it.

The form is that of merge conflicts, which models know from aider and other editors::

    <<<<<<< SEARCH
    lines of the file
    =======
    lines in their place
    >>>>>>> REPLACE
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from taskweaver.treesearch.errors import PhasePlanError

_BLOCK = re.compile(
    r"^<{5,9} ?SEARCH[^\n]*\n(?P<search>.*?)^={5,9}[ \t]*\n"
    r"(?P<replace>.*?)^>{5,9}(?: ?REPLACE)?[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines of a file, and the lines in their place."""

    search: str
    replace: str


def edits_in(text: str) -> list[Edit]:
    """Return the blocks of a text, in order."""
    return [Edit(match["search"], match["replace"]) for match in _BLOCK.finditer(text)]


def edited(path: str, text: str, edits: Iterable[Edit]) -> str:
    """Return a file's text after edits, one after the other.

    Lines are found as they stand, else without the blanks at their ends, else without their
    indentation, which the lines in their place are given then. A text that stands once is also
    found where it is no whole lines.

    Raises:
        PhasePlanError: If a text stands nowhere, or more than once.
    """
    for edit in edits:
        if not edit.search.strip():
            if text.strip():
                raise PhasePlanError(
                    path, "an edit of a file that is not empty needs lines to find"
                )
            text = edit.replace
            continue
        text = _replaced(path, text.splitlines(keepends=True), edit)
    return text


def _replaced(path: str, lines: list[str], edit: Edit) -> str:
    wanted = edit.search.splitlines()
    for normal in (str, str.rstrip, str.strip):
        places = list(_places(lines, wanted, normal))
        if len(places) > 1:
            where = ", ".join(str(at + 1) for at in places)
            raise PhasePlanError(
                path, f"the lines to find stand at lines {where}; add lines around them"
            )
        if places:
            at, new = places[0], edit.replace
            if normal is str.strip:
                new = _indented(new, wanted, lines[at : at + len(wanted)])
            return "".join([*lines[:at], _ended(new), *lines[at + len(wanted) :]])
    whole = "".join(lines)
    for trim in (_without_end, str.strip):
        part = trim(edit.search)
        if whole.count(part) == 1:
            return whole.replace(part, trim(edit.replace))
    raise PhasePlanError(path, f"the lines to find are not in it.{_nearest(lines, wanted)}")


def _places(lines: list[str], wanted: list[str], normal: Callable[[str], str]) -> Iterator[int]:
    """Yield the places where lines stand, compared in a normal form."""
    have = [normal(line.rstrip("\r\n")) for line in lines]
    want = [normal(line) for line in wanted]
    for at in range(len(have) - len(want) + 1):
        if have[at : at + len(want)] == want:
            yield at


def _indented(text: str, wanted: list[str], found: list[str]) -> str:
    """Return lines with the indentation that the found lines have beyond the wanted ones."""
    have = next((_indent(line) for line in found if line.strip()), "")
    want = next((_indent(line) for line in wanted if line.strip()), "")
    if len(have) < len(want):
        cut = len(want) - len(have)
        return "".join(
            line[min(cut, len(_indent(line))) :] for line in text.splitlines(keepends=True)
        )
    added = have[: len(have) - len(want)]
    return "".join(
        added + line if line.strip() else line for line in text.splitlines(keepends=True)
    )


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())].strip("\r\n")


def _without_end(text: str) -> str:
    return text.removesuffix("\n")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _nearest(lines: list[str], wanted: list[str]) -> str:
    """Return the lines of the file most like the first wanted one, for the message."""
    first = next(line.strip() for line in wanted if line.strip())
    plain = [line.strip() for line in lines]
    near = difflib.get_close_matches(first, plain, 1, 0.5)
    if not near:
        return " Write them as they stand there, or give the whole file."
    at = plain.index(near[0])
    shown = "".join(lines[at : at + min(len(wanted), _SHOWN_LINES)]).rstrip()
    return f" The nearest lines there are:\n{shown}\nWrite lines to find as they stand there"
