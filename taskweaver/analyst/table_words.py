"""Requests in the words of a table: synonyms of columns, flags, compared values, typing errors.

They are tried only where a request has no reading of its own, and count only if the request that
is made of them is understood without a rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import product
from os.path import commonprefix

from taskweaver.analyst.language.words.lexicon import LEXICON
from taskweaver.analyst.language.words.names import is_misspelled, name_words
from taskweaver.tables.files.profile import ColumnProfile, TableProfile

_YES, _NO = "yes y true t ja j 1".split(), "no n false f nein 0".split()
_ENDINGS = frozenset("s ed d r rs er ers or ors al als ing e es t ten te rate tion ment".split())
_NOT = r"(?:(?:did|do|does|have|has|had|was|were|are|is)(?: not|n['’]t)|not|non|never|without)[ -]+"
_AND = r"(?:,? (?:and|or|vs\.?|versus|against|compared (?:to|with)|than|und|oder|gegen))"
_ORDINARY = (
    "average median highest lowest number total maximum minimum histogram missing values columns"
    " percentage share describe correlation distribution between biggest largest smallest"
    " summary compare chart duplicates different unique overview"
).split()
_PERSONS = "|".join(word for word, senses in LEXICON.items() if senses[0].kind == "person")
_RATE = re.compile(r"(`[^`]+` = \S+) (?:rates?|ratio|share|quote)\b")


def in_table_words(
    text: str, unknown: Sequence[str], table: TableProfile
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield requests that may be meant, the likeliest first, with the notes on what was taken.

    Args:
        text: The request.
        unknown: Words of it that were not understood.
        table: The table it may be about.
    """
    compared = _compared(text, table)
    if compared:
        yield compared, ()
    words = [word for part in unknown for word in re.findall(r"[^\W\d_]{3,}", part)]
    known = {word: found for word in dict.fromkeys(words) if (found := _meanings(word, table))}
    for chosen in product(*known.values()) if known else ():
        said, notes = text, []
        for word, (meaning, note) in zip(known, chosen, strict=True):
            said = meaning(said, word)
            notes += [note] if note else []
        said = _RATE.sub(r"share of rows where \1", said)
        yield said, tuple(notes)
        yield re.sub(rf"\b(?:{_PERSONS})\b", "rows", said), tuple(notes)


class _Column:
    """A word that stands for a column."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, text: str, word: str) -> str:
        return re.sub(rf"\b{re.escape(word)}\b", f"`{self._name}`", text)


class _Flag:
    """A word that stands for the rows in which a column of yes and no says yes."""

    def __init__(self, name: str, yes: str, no: str) -> None:
        self._name, self._yes, self._no = name, yes, no

    def __call__(self, text: str, word: str) -> str:
        one = rf"(?:{_NOT})?{re.escape(word)}"
        both = (
            rf"(?:(?:for|of|between|with) )?{one}{_AND} {_NOT}\w+|with and without(?: an?)? {word}"
        )
        text, count = re.subn(both, f"per `{self._name}`", text, count=1, flags=re.IGNORECASE)
        if not count:
            no = rf"{_NOT}(?:an? )?{re.escape(word)}\b"
            text = re.sub(no, f"`{self._name}` = {self._no}", text, flags=re.IGNORECASE)
            text = re.sub(rf"\b{re.escape(word)}\b", f"`{self._name}` = {self._yes}", text)
        return text


class _Spelled:
    """A word with a typing error."""

    def __init__(self, right: str) -> None:
        self._right = right

    def __call__(self, text: str, word: str) -> str:
        return text.replace(word, self._right)


Meaning = _Column | _Flag | _Spelled


@cache
def _families() -> tuple[frozenset[str], ...]:
    """Return the words that mean the same, of all languages."""
    texts = (
        files(__package__).joinpath(f"vocabulary_{language}.txt").read_text("utf-8")
        for language in ("en", "de")
    )
    lines = [line for text in texts for line in text.splitlines() if line[:1] != "#"]
    return tuple(frozenset(line.split()) for line in lines)


def _meanings(word: str, table: TableProfile) -> list[tuple[Meaning, str]]:
    """Return the meanings of an unknown word: a flag, else a column, else a word well spelled."""
    low = word.casefold()
    flags = [
        (_Flag(column.name, *values), "")
        for column in table.columns
        if (values := yes_and_no(column)) and _is_stem(low, column.name)
    ]
    if flags:
        return [*flags] if len(flags) == 1 else []
    families = [family for family in _families() if low in family]
    named = [
        column.name
        for column in table.columns
        if any(family & set(name_words(column.name)) for family in families)
    ]
    if len(named) == 1:
        return [(_Column(named[0]), f"`{word}` is taken for the column `{named[0]}`.")]
    right = [ordinary for ordinary in _ORDINARY if is_misspelled(low, ordinary)]
    if len(right) == 1:
        return [(_Spelled(right[0]), f"`{word}` is read as {right[0]}.")]
    return []


def yes_and_no(column: ColumnProfile) -> tuple[str, str] | None:
    """Return the values of a column that mean yes and no; None for another column."""
    if column.kind == "integer" and (column.distinct, column.low, column.high) == (2, "0", "1"):
        return "1", "0"
    values = column.values or ()
    yes = [value for value in values if value.casefold() in _YES]
    no = [value for value in values if value.casefold() in _NO]
    return (yes[0], no[0]) if len(values) == 2 and yes and no else None


def _is_stem(word: str, name: str) -> bool:
    """Return whether a word is a form of a column's name: ``smokers`` of ``smoker``."""
    low = name.casefold()
    shared = len(commonprefix([word, low]))
    is_long = shared >= max(4, len(low) - 2)
    return word == low or (is_long and word[shared:] in _ENDINGS | {""})


def _compared(text: str, table: TableProfile) -> str:
    """Return a request that compares two values of a column as one for both groups."""
    pair = re.search(
        r"(?:(?:for|of|between|from|in) )?(?P<a>[\w-]+)"
        r" (?:vs\.?|versus|compared (?:to|with)|against|and) (?P<b>[\w-]+)",
        text,
    )
    if pair is None or (
        pair[0].find(" and ") >= 0 and not re.match(r"(?:compare|difference)", text)
    ):
        return ""
    for column in table.columns:
        values = {value.casefold(): value for value in column.values or ()}
        first, second = (values.get(pair[part].casefold()) for part in ("a", "b"))
        is_year = column.kind == "integer" and "year" in name_words(column.name)
        if is_year and all(re.fullmatch(r"[12]\d{3}", pair[part]) for part in ("a", "b")):
            first, second = pair["a"], pair["b"]
        if first and second:
            rest = f"{text[: pair.start()]}{text[pair.end() :]}".strip(" ?.!")
            rest = re.sub(r"^compare (?:the )?", "", rest)
            quote = "" if is_year else "`"
            either = f"{quote}{first}{quote} or {quote}{second}{quote}"
            return f"{rest} per `{column.name}` where `{column.name}` is {either}"
    return ""
