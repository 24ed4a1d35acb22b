"""Spellings of names: words of a name, plurals, typing errors, forms and other words of a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import takewhile

from taskweaver.analyst.wording.inert import MONTHS, WEEKDAYS
from taskweaver.tables.files.profile import ColumnProfile, ValueMatch

UNITS = frozenset(
    "mm cm m km kg g mg lbs lb oz mi ft usd eur gbp sec s ms pct percent m2 km2 sqft sqm c "
    "f".split()
)
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿ"
_PART = re.compile(
    rf"[{_UPPER}]+(?=[{_UPPER}][{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|[{_UPPER}]+|\d+"
    rf"|[^\W\d_{_LOWER}{_UPPER}]+"
)
_KEPT = frozenset("species series news gas bus class mass status plus less glass always".split())
WORD_TABLES = {
    head: dict(entry.split("=") for entry in entries.split("|"))
    for line in files(__package__).joinpath("word_tables.txt").read_text("utf-8").splitlines()[1:]
    for head, _, entries in [line.partition(": ")]
}
"""Closed sets of words with their meanings, by the name of the set."""
_IRREGULAR = WORD_TABLES["irregular"]
SHORT = WORD_TABLES["short"]
_AMOUNTS = frozenset(
    "n num number count quantity qty amount population pop attendance volume stock people "
    "inventory staff revenue turnover profit sale goal vote point".split()
)
_DEMONYMS = WORD_TABLES["demonyms"]
_FORMS = "n an ian ean ese ish i y ny s es".split()


@lru_cache(maxsize=4096)
def singular(word: str) -> str:
    """Return the singular of an English noun in lower case; consistent rather than exact."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if (
        len(word) < 4
        or word in _KEPT
        or not word.endswith("s")
        or word.endswith(("ss", "us", "is"))
    ):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    return word[:-1]


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a column's name in lower case and singular."""
    return tuple(singular(part.casefold()) for part in _PART.findall(name))


@lru_cache(maxsize=4096)
def is_amount(name: str, *, is_certain: bool = False) -> bool:
    """Return whether a column's name states a number of things: ``seats``, ``num_beds``, ``pop``.

    A name in the singular (``flight``, ``day``) is that of one thing; one in the plural is not
    certain to be an amount.
    """
    raw = [part.casefold() for part in _PART.findall(name)]
    is_plural = bool(raw) and singular(raw[-1]) != raw[-1]
    return (is_plural and not is_certain) or bool(_AMOUNTS & {*raw, *map(singular, raw)})


def counts_rows(column: ColumnProfile, rows: int) -> bool:
    """Return whether a column numbers the rows: its integers are consecutive, each there once."""
    is_unique = column.kind == "integer" and column.distinct == rows > 1 and not column.missing
    return is_unique and int(column.high) - int(column.low) + 1 == rows


_FAMILIES = tuple(
    frozenset(line.casefold().split())
    for language in ("en", "de")
    for line in files(__package__)
    .joinpath(f"vocabulary_{language}.txt")
    .read_text("utf-8")
    .splitlines()[1:]
    if line[:1] != "#"
)
"""Words that state the same in requests and in names; those of a name in the singular."""
_GERMAN_ENDINGS = ("", "n", "en", "e", "s", "es", "er", "ern")
_SHORTEST_SHORT, _LONG = 3, 10


@lru_cache(maxsize=4096)
def meanings(word: str) -> frozenset[str]:
    """Return the words of names that state the same as a word in lower case, in the singular."""
    forms = {word, singular(word), *(word.removesuffix(ending) for ending in _GERMAN_ENDINGS)}
    lines = [line for line in _FAMILIES if word in line] or [f for f in _FAMILIES if forms & f]
    return frozenset(map(singular, frozenset().union(*lines)))


def corrected(word: str) -> tuple[str, ...]:
    """Return the known words that a word in lower case is with a typing error."""
    known = frozenset().union(*_FAMILIES)
    return tuple(sorted(one for one in known if is_misspelled(word, one)))


def opposites(word: str) -> frozenset[str]:
    """Return the words of names that state the opposite of a word in lower case."""
    return frozenset().union(*(family for family in _FAMILIES if f"-{word}" in family))


@lru_cache(maxsize=4096)
def compound(word: str) -> tuple[str, ...]:
    """Return the two known words of a German compound: ``körper`` and ``gewicht``."""
    for at in range(3, len(word) - 2):
        left, right = word[:at], word[at:]
        for head in (left, left.removesuffix("s"), left.removesuffix("n")):
            if len(head) > 2 and meanings(head) and meanings(right):
                return head, right
    return ()


@lru_cache(maxsize=8192)
def is_short(part: str, asked: str) -> bool:
    """Return whether a part of a name is short for a word: its beginning or its consonants."""
    if SHORT.get(part) == asked:
        return True
    if not _SHORTEST_SHORT <= len(part) <= len(asked) - 2 or part[0] != asked[0]:
        return False
    rest = iter(asked)
    are_consonants = not set(part[:-1]) & set("aeiou") and part[-1] == asked[-1]
    return asked.startswith(part) or (are_consonants and all(one in rest for one in part))


def means_value(word: str, value: str) -> bool:
    """Return whether a word states a value in lower case in another word."""
    return value in meanings(word) or singular(value) in meanings(word)


def shortens(word: str, value: str) -> bool:
    """Return whether a value in lower case is the beginning of a word: ``prof``."""
    return 4 <= len(value) <= len(singular(word)) - 2 and word.startswith(value)


def is_in_value(word: str, value: str) -> bool:
    """Return whether a word is one of the words of a value in lower case.

    A plural is not its last word: ``companies`` are more than ``trading companies``.
    """
    parts = value.split()
    one = singular(word)
    named = parts if one == word else [part for part in parts if part != parts[-1]]
    return len(parts) > 1 and (one in named or word in named)


def is_typed_for(word: str, value: str) -> bool:
    """Return whether a word is a value with one typing error, or two in a long one."""
    limit = 1 if len(value) < _LONG else 2
    return is_misspelled(word, value) and distance(word, value, limit) <= limit


_STUCK = re.compile(r"(?:avg|tot|num|pct)(\w{3,})|(\w{3,})(?:name|tot|pct)")


@lru_cache(maxsize=8192)
def states(part: str, asked: tuple[str, ...]) -> bool:
    """Return whether a part of a name states some words: ``bodywt`` of ``body weight``."""
    if len(asked) == 1:
        word = asked[0]
        is_begun = len(word) == _SHORTEST_SHORT and part.startswith(word)
        is_month = part in MONTHS and MONTHS[part] == MONTHS.get(word)
        if stuck := _STUCK.fullmatch(part):  # ``avginc``, ``ctryname``
            return states(stuck[1] or stuck[2], asked)
        is_short_form = is_word_of(word, part) or is_short(part, word)
        return is_short_form or is_month or is_begun or part in meanings(word)
    return part in meanings("_".join(asked)) or any(
        states(part[:at], asked[:1]) and states(part[at:], asked[1:])
        for at in range(2, len(part) - 1)
    )


_LABELS = (
    frozenset("id key code number no nr name title label full first last type".split()) | _AMOUNTS
)


def is_named_after(word: str, name: str) -> bool:
    """Return whether a noun in the singular is the thing that a column states.

    It is the head of the name, or has only a label after it: ``customer`` of ``customer_id``, and
    not of ``customerClass``.
    """
    words = name_words(name)
    return word in words and set(words[words.index(word) + 1 :]) <= _LABELS


@lru_cache(maxsize=4096)
def core_words(name: str) -> tuple[str, ...]:
    """Return the words of a column's name without a unit at its end."""
    words = name_words(re.sub(r"\([^)]*\)\s*$", "", name))
    while len(words) > 1 and words[-1] in UNITS:
        words = words[:-1]
    if len(words) > 2 and words[-2] == "in" and words[-1] in UNITS | {"lb"}:
        words = words[:-2]
    if len(words) > 1 and words[-1] == "in":
        words = words[:-1]
    return words or name_words(name)


@lru_cache(maxsize=8192)
def is_word_of(asked: str, word: str) -> bool:
    """Return whether a word of a request is a word of a name, or one is short for the other."""
    if asked == word:
        return True
    if SHORT.get(word) == asked or SHORT.get(asked) == word:
        return True
    if len(word) >= 4 and asked in (word + "ed", word + "d", word + "ing", word[:-1] + "ing"):
        return True
    if len(asked) > len(word) and meanings(asked) and word not in meanings(asked):
        return False  # a compound of another meaning: ``Windböe`` beside ``wind``
    shorter, longer = sorted((asked, word), key=len)
    return len(shorter) >= 4 and longer.startswith(shorter) and len(longer) - len(shorter) >= 3


@lru_cache(maxsize=8192)
def is_abbreviated(asked: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether words are those of a name, of which some are short: ``departure delay``."""
    pairs = list(zip(asked, name, strict=False))
    if len(asked) != len(name) or not any(left == right for left, right in pairs):
        return False
    return all(
        left == right or (min(len(left), len(right)) >= 3 and left.startswith(right))
        for left, right in pairs
    )


_ENDINGS = frozenset("s ed d r rs er ers or ors al als ing e es t ten te rate tion ment".split())


def is_stem(word: str, name: str) -> bool:
    """Return whether a word is a form of a column's name: ``smokers`` of ``smoker``."""
    low = name.casefold()
    pairs = zip(word, low, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    is_long = shared >= max(4, len(low) - 2)
    return word == low or (is_long and word[shared:] in _ENDINGS | {""})


@lru_cache(maxsize=8192)
def distance(left: str, right: str, limit: int = 2) -> int:
    """Return the edit distance of two words, transpositions counted once, up to a limit + 1."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for at, char in enumerate(left, 1):
        new = [at]
        for to, other in enumerate(right, 1):
            cost = min(row[to] + 1, new[-1] + 1, row[to - 1] + (char != other))
            if at > 1 and to > 1 and char == right[to - 2] and left[at - 2] == other:
                cost = min(cost, before[to - 2] + 1)
            new.append(cost)
        before, row = row, new
    return min(row[-1], limit + 1)


def is_misspelled(asked: str, word: str) -> bool:
    """Return whether a word is another one with a typing error."""
    if min(len(asked), len(word)) < 5 or asked[0] != word[0] or asked[-1] != word[-1]:
        return False
    limit = 2 if min(len(asked), len(word)) >= 8 else 1
    return 0 < distance(asked, word, limit) <= limit


def is_form(asked: str, value: str) -> bool:
    """Return whether a word is a form of a value, as ``japanese`` of ``japan`` (lower case)."""
    if _DEMONYMS.get(asked) == value or _DEMONYMS.get(asked.removesuffix("s")) == value:
        return True
    if len(value) < 3 or len(asked) < 4 or value[:3] != asked[:3]:
        return False
    if any(asked == value + ending for ending in _FORMS) or value == asked + "s":
        return True
    stem = value.rstrip("aeiouy")
    return len(stem) >= 3 and any(asked == stem + ending for ending in ("an", "ian", "ish", "ese"))


def numbered(table: str) -> dict[str, int]:
    """Return a table of words that have numbers."""
    return {word: int(number) for word, number in WORD_TABLES[table].items()}


_SCALES: tuple[Mapping[str, int], ...] = (numbered("sexes"), numbered("lives"), WEEKDAYS, MONTHS)
_ORDINALS = numbered("ordinals")
_PLACES = _ORDINALS | {str(number): number for number in range(1, 6)} | {
    f"{number}.0": number for number in range(1, 6)
} | {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "one": 1, "two": 2, "three": 3}  # fmt: skip
_SHORTEST_NOUN = 4


def equivalents(word: str, columns: Mapping[str, ColumnProfile]) -> Iterator[ValueMatch]:
    """Yield the values at the place of a word on the scales of the columns (lower case)."""
    wanted = [(scale, scale[word]) for scale in _SCALES if word in scale and len(word) > 1]
    for scale, place in wanted:
        for column in columns.values():
            values = (column.values or ()) if _is_on(column, scale) else ()
            for value in values:
                if scale.get(value.casefold()) == place:
                    yield ValueMatch(column.name, value, False)


def _is_on(column: ColumnProfile, scale: Mapping[str, int]) -> bool:
    values = column.values or ()
    places = [scale.get(value.casefold()) for value in values]
    known = [place for place in places if place is not None]
    is_complete = None not in places or {"male", "female"} <= {v.casefold() for v in values}
    return (
        column.kind == "text" and is_complete and len(known) > 1 and len(set(known)) == len(known)
    )


def graded(word: str, noun: str, columns: Mapping[str, ColumnProfile]) -> list[ValueMatch]:
    """Return the values of an ordinal in columns of grades: ``third class`` is the 3rd of `pclass`.

    Both words are in lower case.
    """
    place = _ORDINALS.get(word)
    if place is None or len(noun) < _SHORTEST_NOUN:
        return []
    named = [name for name in columns if name.casefold().endswith(singular(noun))]
    exact = [name for name in named if name.casefold() == singular(noun)]
    return [
        ValueMatch(name, value)
        for name in exact or named
        for value in columns[name].values or ()
        if _places(columns[name]).get(value) == place
    ]


def _places(column: ColumnProfile) -> dict[str, int]:
    """Return the places of the values of a column, if all of them are grades."""
    values = column.values or ()
    places = {value: _PLACES.get(value.casefold().split()[0]) for value in values if value.strip()}
    known = {value: place for value, place in places.items() if place is not None}
    return known if len(known) == len(values) == len(set(known.values())) else {}
