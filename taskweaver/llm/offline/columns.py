"""Which columns a text means: names are marked in it, so that the grammar can be small.

`mark` replaces every column it finds by a mark ``⟦n⟧``. Words in back quotes are columns as
they are; other words are compared without case, plural and punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

MARK = r"⟦(\d+)⟧"
_QUOTED = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"[\w%$€.-]*\w[%]?", re.UNICODE)
_LONGEST = 5
_AFTER_FUNCTION = re.compile(
    r"(\b(?:mean|average|avg|sum|total|median|min|minimum|max|maximum)\s+(?:of\s+)?(?:the\s+)?)(\w+)",
    re.I,
)
# Words of the grammar: taken for a column only when written exactly like one.
GRAMMAR_WORDS = frozenset(
    """
    count counts number mean means average sum sums total totals median minimum min maximum
    max std top bottom day days week weeks month months quarter quarters year years date
    time row rows column columns value values type plot chart line bar box pie by per where
    of in and or is the a an each every all show list name data file table head tail sample
    first last missing unique order
    """.split()
)

_OF_WHAT = re.compile(r"\s+of\b|\s+(?:the\s+)?⟦")
"""What stands behind a function: then the word is one, even where a column has its name."""

_AFTER_COLUMN = re.compile(r"(⟦\d+⟧\s*(?:,|and|vs\.?|against)\s+(?:the\s+)?)(\w+)", re.I)


@dataclass(frozen=True, slots=True)
class Marked:
    """A text with its columns marked.

    Attributes:
        text: The text; mark ``⟦n⟧`` stands for ``names[n]``.
        names: The columns, in the order they were found.
    """

    text: str
    names: tuple[str, ...]


def plain(word: str) -> str:
    """Return a name as it is compared: lower case, letters and digits only."""
    return re.sub(r"[\W_]+", "", word.lower())


def singular(word: str) -> str:
    """Return the singular of an English noun, roughly."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def mark(text: str, columns: Sequence[str]) -> Marked:
    """Mark the columns a text names; with no columns known, those in back quotes."""
    names: list[str] = []

    def note(name: str) -> str:
        if name not in names:
            names.append(name)
        return f"⟦{names.index(name)}⟧"

    by_plain = {plain(name): name for name in columns}

    def quoted(match: re.Match[str]) -> str:
        name = match[1] if match[1] in columns else by_plain.get(plain(match[1]), match[1])
        return note(name) if name in columns or not columns else match[1]

    def after_function(match: re.Match[str]) -> str:
        name = by_plain.get(plain(match[2]))
        return match[1] + note(name) if name else match[0]

    text = _AFTER_FUNCTION.sub(after_function, _QUOTED.sub(quoted, text))
    if columns:
        text = _AFTER_COLUMN.sub(after_function, _mark_words(text, columns, note))
    return Marked(text, tuple(names))


def _mark_words(text: str, columns: Sequence[str], note: object) -> str:
    """Mark runs of words, longest first, that are the name of a column."""
    wanted = {plain(name): name for name in columns} | {
        singular(plain(name)): name for name in columns
    }
    words = list(_WORD.finditer(text))
    pieces, index, at = [], 0, 0
    while index < len(words):
        for size in range(min(_LONGEST, len(words) - index), 0, -1):
            span = (words[index].start(), words[index + size - 1].end())
            written = text[span[0] : span[1]]
            is_function = written.lower() in GRAMMAR_WORDS and _OF_WHAT.match(text, span[1])
            is_free = "⟦" not in written and not is_function
            found = _named(written, columns, wanted) if is_free else None
            if found is not None:
                pieces += [text[at : span[0]], note(found)]  # type: ignore[operator]
                at, index = span[1], index + size
                break
        else:
            index += 1
    return "".join([*pieces, text[at:]])


def _named(written: str, columns: Sequence[str], wanted: dict[str, str]) -> str | None:
    if written in columns:
        return written
    if written.lower() in GRAMMAR_WORDS or not plain(written):
        return None
    return wanted.get(plain(written)) or wanted.get(singular(plain(written)))


def candidates(word: str, columns: Iterable[str]) -> list[str]:
    """Return the columns a word may mean that is not exactly one: parts of names, then spelling."""
    wanted = singular(plain(word))
    names = list(columns)
    exact = [name for name in names if wanted in {plain(name), singular(plain(name))}]
    if exact or not wanted:
        return exact
    parts = [
        name
        for name in names
        if wanted
        in {singular(plain(part)) for part in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name)}
    ]
    if parts:
        return parts
    close = get_close_matches(wanted, [plain(name) for name in names], n=3, cutoff=0.75)
    return [name for name in names if plain(name) in close]
