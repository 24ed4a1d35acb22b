"""Requests in the words of a table: texts to find in names, and typing errors.

They are tried only where a request has no reading of its own, and count only if the request that
is made of them is understood without a rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from taskweaver.analyst.language.lexicon import LEXICON, LEXICON_WORDS
from taskweaver.analyst.language.names import distance, is_misspelled, meanings, name_words
from taskweaver.tables.files.profile import ColumnProfile, TableProfile

_KINDS = frozenset("fn sup share chart view between instead dir each".split())
_SHORTEST_CHARS = 7
_ORDINARY = {
    *"median lowest number total values share chart unique".split(),
    *(
        phrase
        for phrase, senses in LEXICON.items()
        if len(phrase) >= _SHORTEST_CHARS and _KINDS & {sense.kind for sense in senses}
    ),
}
"""Words that shape a request, and are long enough to be known with a typing error."""
_FIND = re.compile(
    r"(?:(?:find|search(?: for)?|look (?:up|for)|suche?(?: nach)?|finde?)(?: me)? (?P<text>[\w -]+)"
    r"|(?:(?:list|show|give me|find) )?(?:everything|all|anything|entries|rows|those) (?:with|named"
    r"|containing) (?P<part>[\w-]+)(?: in (?:the|its) (?:name|title|description))?)",
    re.IGNORECASE,
)
_NAMING = frozenset("name title label description".split())
_WORD = re.compile(r"[^\W\d_]{3,}")


def in_table_words(
    text: str, unknown: Sequence[str], table: TableProfile
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield requests that may be meant, the likeliest first, with the notes on what was taken.

    Args:
        text: The request.
        unknown: Words of it that were not understood.
        table: The table it may be about.
    """
    if (found := _FIND.fullmatch(text.strip(" ?.!"))) and (name := _label(table)):
        yield f"rows where `{name}` contains '{found['text'] or found['part']}'", ()
    said, notes = text, []
    for word in dict.fromkeys(_WORD.findall(" ".join(unknown))):
        low = word.casefold()
        is_known = low in LEXICON_WORDS or meanings(low)
        near = {one: distance(low, one) for one in _ORDINARY if is_misspelled(low, one)}
        right = [one for one in near if near[one] == min(near.values()) and not is_known]
        if len(right) == 1:
            said = re.sub(rf"\b{re.escape(word)}\b", right[0], said)
            notes.append(f"`{word}` is read as {right[0]}.")
    if notes:
        yield said, tuple(notes)
    word = unknown[0] if len(unknown) == 1 else "?"
    placed = re.search(rf" (?:in|from|of|by|for|aus) {re.escape(word)}\b", text)
    names = [column.name for column in table.columns if _holds(column, word.casefold())]
    if placed and len(names) == 1:
        said = text[: placed.start()] + text[placed.end() :].rstrip(" ?.!")
        note = f"`{word}` is read as a part of values of `{names[0]}`."
        yield f"{said} where `{names[0]}` contains '{word}'", (note,)


def _holds(column: ColumnProfile, part: str) -> bool:
    """Return whether a text is one of several words of some values, and no other part of any."""
    values = [value.casefold() for value in column.values or () if part in value.casefold()]
    words = (re.findall(r"\w+", value) for value in values)
    return len(part) > 3 and bool(values) and all(part in found[:-1] + found[1:] for found in words)


def _label(table: TableProfile) -> str:
    """Return the first column of texts that names the rows; empty for none."""
    texts = [column for column in table.columns if column.kind == "text"]
    named = [one.name for one in texts if _NAMING & set(name_words(one.name))]
    named += [one.name for one in texts if one.distinct == table.rows]
    return next(iter(named), "")
