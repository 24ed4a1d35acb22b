"""Requests in the words of a table: synonyms of columns, flags, compared values, typing errors.

They are tried only where a request has no reading of its own, and count only if the request that
is made of them is understood without a rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import takewhile

from taskweaver.analyst.language.lexicon import LEXICON
from taskweaver.analyst.language.names import equivalents, is_misspelled, name_words
from taskweaver.tables.files.profile import ColumnProfile, TableProfile

_YES, _NO = "yes y true t ja j 1".split(), "no n false f nein 0".split()
_ENDINGS = frozenset("s ed d r rs er ers or ors al als ing e es t ten te rate tion ment".split())
_NOT = (
    r"(?:(?:did|do|does|have|has|had|was|were|are|is)(?: not|n['\u2019]t)"
    r"|not|non|never|without)[ -]+"
)
_AND = r"(?:,? (?:and|or|vs\.?|versus|against|compared (?:to|with)|than|und|oder|gegen))"
_ORDINARY = (
    "average median highest lowest number total maximum minimum histogram missing values columns"
    " percentage share describe correlation distribution between biggest largest smallest"
    " summary compare chart duplicates different unique overview"
).split()
_PERSONS = "|".join(word for word, senses in LEXICON.items() if senses[0].kind == "person")
_RATE = re.compile(
    r"(?P<of>`[^`]+` = \S+) (?:rates?|ratio|share|quote)\b"
    r"|(?:what |which |the )*(?:share|percentage|percent|proportion|fraction|rate|anteil)"
    r" (?:of|der|von)(?: the| all)?(?: (?!rows\b)\w+)??(?: who| that| which)?(?: have| has| had)?"
    r" (?P<who>`[^`]+` = \S+)"
)
_EARN = re.compile(
    r"(?:do|does|did|are|is|were) (?P<a>\w+) (?P<verb>\w+) (?:more|less) than (?P<b>\w+)"
)
_EACH = re.compile(r"how many (?P<a>\w+) and (?P<b>\w+)(?: (?:are|were) there)?(?: (?:in|on) .*)?")


def in_table_words(
    text: str, unknown: Sequence[str], table: TableProfile
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield requests that may be meant, the likeliest first, with the notes on what was taken.

    Args:
        text: The request.
        unknown: Words of it that were not understood.
        table: The table it may be about.
    """
    compared = _compared(text, table) or _earning(text, table)
    if compared:
        yield compared, ()
    said = re.sub(r"\bdurchschnitts(?=\w{3})", "durchschnitt ", text, flags=re.IGNORECASE)
    said = re.sub(r"\bgesamt(?=\w{3})", "summe ", said, flags=re.IGNORECASE)
    missed = {word for part in unknown for word in _WORD.findall(part)}
    notes = []
    for word in dict.fromkeys(_WORD.findall(re.sub(r"`[^`]*`", " ", said))):
        meant = _meaning(word, table, is_unknown=word in missed)
        if meant is not None:
            said = meant[0](said)
            notes.append(meant[1])
    if said != text:
        said = _RATE.sub(lambda one: f"share of rows where {one['of'] or one['who']}", said)
        yield said, tuple(filter(None, notes))
        yield re.sub(rf"\b(?:{_PERSONS})\b", "rows", said), tuple(filter(None, notes))


Meaning = Callable[[str], str]
"""Puts what a word stands for in its place in a request."""


def _replaced(text: str, word: str, meant: str, *, unless: str = "") -> str:
    """Return a text with other words for a word, which in back quotes stays as it is.

    After a negation it is replaced by `unless`, if that is given.
    """
    no = rf"(?P<no>{_NOT}(?:an? )?)?" if unless else "(?P<no>(?!))?"
    pattern = re.compile(rf"`[^`]*`|{no}\b{re.escape(word)}\b", re.IGNORECASE)

    def chosen(found: re.Match[str]) -> str:
        if found[0][0] == "`":
            return found[0]
        return unless if found["no"] else meant

    return pattern.sub(chosen, text)


def _flagged(text: str, word: str, name: str, values: tuple[str, str]) -> str:
    """Return a text with a condition on a column of yes and no for a word, or with both groups."""
    one = rf"(?:{_NOT})?{re.escape(word)}"
    both = (
        rf"(?:(?:for|of|between|with) )?{one}{_AND} {_NOT}\w+"
        rf"|with and without(?: an?)? {re.escape(word)}"
    )
    text, count = re.subn(both, f"per `{name}`", text, count=1, flags=re.IGNORECASE)
    yes, no = (f"`{name}` = {value}" for value in values)
    return text if count else _replaced(text, word, yes, unless=no)


_WORD = re.compile(r"[^\W\d_]{3,}")


@cache
def _families() -> tuple[frozenset[str], ...]:
    """Return the words that mean the same, of all languages."""
    texts = (
        files(__package__).joinpath(f"vocabulary_{language}.txt").read_text("utf-8")
        for language in ("en", "de")
    )
    lines = [line for text in texts for line in text.splitlines() if line[:1] != "#"]
    return tuple(frozenset(line.split()) for line in lines)


def _meaning(word: str, table: TableProfile, *, is_unknown: bool) -> tuple[Meaning, str] | None:
    """Return the meaning of a word and a note: a flag, else a column, else a right spelling."""
    low = word.casefold()
    flags = [
        (partial(_flagged, word=word, name=column.name, values=values), "")
        for column in table.columns
        if (values := yes_and_no(column)) and _is_stem(low, column.name)
    ]
    if flags or not is_unknown:
        return flags[0] if len(flags) == 1 else None
    named = _columns_of(word, table)
    if len(named) == 1:
        meaning = partial(_replaced, word=word, meant=f"`{named[0]}`")
        return meaning, f"`{word}` is taken for the column `{named[0]}`."
    right = [ordinary for ordinary in _ORDINARY if is_misspelled(low, ordinary)]
    if len(right) == 1:
        return partial(_replaced, word=word, meant=right[0]), f"`{word}` is read as {right[0]}."
    return None


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
    pairs = zip(word, low, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    is_long = shared >= max(4, len(low) - 2)
    return word == low or (is_long and word[shared:] in _ENDINGS | {""})


def _compared(text: str, table: TableProfile) -> str:
    """Return a request that compares two values of a column as one for both groups."""
    pair = re.search(
        r"(?:(?:for|of|between|from|in) )?(?P<a>[\w-]+)"
        r" (?P<how>vs\.?|versus|compared (?:to|with)|against|and) (?P<b>[\w-]+)",
        text,
    )
    if pair is None or (pair["how"] == "and" and not text.startswith(("compare", "difference"))):
        return ""
    rest = f"{text[: pair.start()]}{text[pair.end() :]}".strip(" ?.!")
    rest = re.sub(r"^compare (?:the )?", "", rest)
    return "".join(f"{rest} {groups}" for groups in _groups_of(pair["a"], pair["b"], table)[:1])


def _earning(text: str, table: TableProfile) -> str:
    """Return ``do men earn more than women`` as a request for the mean of each group."""
    found = _EARN.match(text)
    groups = _groups_of(found["a"], found["b"], table)[:1] if found else []
    columns = _columns_of(found["verb"], table) if found else []
    return f"mean `{columns[0]}` {groups[0]}" if groups and len(columns) == 1 else ""


def each_group(text: str, table: TableProfile) -> str:
    """Return ``how many men and women`` as a request for both numbers; empty for another one."""
    found = _EACH.fullmatch(text.strip(" ?.!").casefold())
    groups = _groups_of(found["a"], found["b"], table) if found else []
    return f"number of rows {groups[0]}" if len(groups) == 1 else ""


def _groups_of(first: str, second: str, table: TableProfile) -> list[str]:
    """Return the groups of two values, as ``per x where x is a or b``, of each fitting column."""
    found = []
    for column in table.columns:
        of_one = {column.name: column}
        values = [
            next(
                (v for v in column.values or () if v.casefold() == word.casefold()),
                next((match.value for match in equivalents(word.casefold(), of_one)), ""),
            )
            for word in (first, second)
        ]
        quote = "`"
        if column.kind in {"integer", "time"} and "year" in name_words(column.name):
            values = [word * bool(re.fullmatch(r"[12]\d{3}", word)) for word in (first, second)]
            quote = ""
        if all(values):
            either = " or ".join(f"{quote}{value}{quote}" for value in values)
            found.append(f"per `{column.name}` where `{column.name}` is {either}")
    return found


def _columns_of(word: str, table: TableProfile) -> list[str]:
    """Return the columns whose names state the same as a word."""
    families = [family for family in _families() if word.casefold() in family]
    return [
        column.name
        for column in table.columns
        if any(family & set(name_words(column.name)) for family in families)
    ]
