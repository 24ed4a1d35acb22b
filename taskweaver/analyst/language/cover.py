"""The phrases that may begin at each token of a request, and the cheapest ways to cover it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taskweaver.analyst.language.atoms import (
    AggregateStep,
    Atom,
    Content,
    Dimension,
    Fn,
    Look,
    Mark,
    Noun,
    Pick,
    Picture,
    judged,
    key_phrases,
)
from taskweaver.analyst.language.comparisons import dimensions
from taskweaver.analyst.language.lexicon import (
    DIMENSION_WORDS,
    LEXICON,
    Sense,
    is_comparative,
    is_superlative,
)
from taskweaver.analyst.language.names import meanings, singular
from taskweaver.analyst.language.parser import INHABITANTS, Words, operands
from taskweaver.analyst.language.row_conditions import Conditions
from taskweaver.analyst.language.values import flags

_BEAM = 28
_FILLER, _UNUSED = 0.05, 4.0
_FUNCTIONS = {
    "firstquartile": Fn("percentile", 0.25),
    "thirdquartile": Fn("percentile", 0.75),
    "leastmode": Fn("mode", is_least=True),
    "earliest": Fn("min", is_time=True),
    "latest": Fn("max", is_time=True),
}
"""Words for functions that are no name of one."""
_MARKS = frozenset(
    "which who when sort dir each more others much over against files refused everything percolumn"
    " shift between instead combined link".split()
)
_VERBS = "is are was were have has had do does did came come work works live lives"
_DEEDS = frozenset(
    "make build cover visit work use read check stand question play plays played".split()
)
"""Words of a request that are also names of columns, as the make of a car."""
_DURATIONS = frozenset("time times duration durations lap laps zeit zeiten".split())
_OBJECTS = "a an the me us it this that these my one sure"


def covers(words: Words) -> list[tuple[float, tuple[Atom, ...]]]:
    """Return the cheapest ways to cover a request with phrases, in order of cost."""
    conditions = Conditions(words)
    beams: list[list[tuple[float, tuple[Atom, ...]]]] = [[] for _ in range(words.size + 1)]
    beams[0] = [(0.0, ())]
    for at in range(words.size):
        if not beams[at]:
            continue
        best = sorted(beams[at], key=lambda entry: entry[0])[:_BEAM]
        beams[at] = []
        for atom in _atoms(words, conditions, at):
            for cost, atoms in best:
                beams[atom.end].append((cost + atom.cost, (*atoms, atom)))
    return sorted(beams[-1], key=lambda entry: entry[0])[:_BEAM]


def _atoms(words: Words, conditions: Conditions, at: int) -> list[Atom]:
    best: dict[tuple[int, Content], Atom] = {}
    for end, content, cost in _contents(words, conditions, at):
        key = (end, content)
        if key not in best or cost < best[key].cost:
            best[key] = Atom(at, end, content, cost)
    return list(best.values())


Found = tuple[int, Content, float]


def _contents(words: Words, conditions: Conditions, at: int) -> Iterator[Found]:
    for end, cond, cost in conditions.at(at):
        yield end, cond, 1.0 + cost
    for end, operand, cost in operands(words, at):
        is_column = "column" in (words.lower(at - 1), words.lower(end))
        yield end, operand, (0.5 if is_column else 1.0) + cost
    yield at + 1, Mark("unused", words.tokens[at].text), _UNUSED
    if words.is_name(at):
        return
    yield from key_phrases(words, at)
    yield from _functions(words, at)
    yield from _picks(words, at)
    yield from judged(words, at)
    yield from _dimension(words, at)
    yield from _steps(words, at)
    yield from _looks(words, at)
    yield from _nouns(words, at)
    yield from _marks(words, at)
    part = words.scope.source.tables[0].part
    is_part = part and words.tokens[at].text.casefold() == part.casefold()
    if words.tokens[at].kind == "file" or is_part:
        yield at + 1, Mark("filler", "file"), _FILLER


def _functions(words: Words, at: int) -> Iterator[Found]:
    for end, sense in words.of_kind(at, "fn"):
        if sense.detail == "percentile":
            quantile = _quantile(words, words.skip(end, "of"))
            if quantile is not None:
                yield words.skip(end, "of") + 1, Fn("percentile", quantile), 1.0
        else:
            plain = Fn(sense.detail)  # type: ignore[arg-type]
            yield end, _FUNCTIONS.get(sense.detail, plain), 1.0
    yield from _percentiles(words, at)


def _percentiles(words: Words, at: int) -> Iterator[Found]:
    """Yield ``90th percentile``, and the first of ``25th and 75th percentile``."""
    quantile = _quantile(words, at)
    if quantile is None:
        return
    place = words.skip(at + 1, "% percent")
    for end, sense in words.of_kind(place, "fn"):
        if sense.detail == "percentile":
            yield end, Fn("percentile", quantile), 0.9
    joined = words.skip(place, "and , &")
    if joined > place and _quantile(words, joined) is not None:
        yield at + 1, Fn("percentile", quantile), 1.0


def _quantile(words: Words, at: int) -> float | None:
    match = re.fullmatch(r"(\d{1,2}(?:\.\d+)?)(?:st|nd|rd|th|\s?%)?|p(\d{1,2})", words.lower(at))
    if match is None:
        return None
    value = float(match[1] or match[2])
    if "." in words.lower(at) and value < 1:
        return value
    return value / 100 if 0 < value < 100 else None


def _picks(words: Words, at: int) -> Iterator[Found]:
    count = _count(words, at)
    start = at if count is None else at + 1
    nth = 0
    for stop, sense in words.of_kind(start, "ordinal"):
        nth, start = int(sense.detail), stop
    for stop, sense in words.of_kind(start, "sup"):
        ascending = sense.detail == "min"
        after = _count(words, stop) if count is None else None
        end = stop if after is None else stop + 1
        yield end, Pick(ascending, count or after, nth, (), words.lower(stop - 1)), 1.0
        for last, sign, columns in dimensions(words, stop):
            if words.says(stop - 1, "most least"):
                lower = ascending != (sign == "-")
                yield last, Pick(lower, count, nth, columns, words.raw(stop - 1, last)), 1.0
    if is_superlative(words.lower(start)):
        for last, sign, columns in dimensions(words, start):
            yield last, Pick(sign == "-", count, nth, columns, words.lower(start)), 1.0
    yield from _undimensioned(words, start, count, nth)
    if count is None and not nth:
        yield from _tops(words, at)


def _undimensioned(words: Words, at: int, count: int | None, nth: int) -> Iterator[Found]:
    """Yield a superlative where no column has its dimension by name: the fastest time."""
    low = words.lower(at)
    stated = DIMENSION_WORDS.get(low, ()) if is_superlative(low) else ()
    signs, names = {sign for _, sign in stated}, {name for name, _ in stated}
    if len(signs) != 1 or "age" in names or any(True for _ in dimensions(words, at)):
        return
    is_speed = "speed" in names
    if not is_speed or _names_duration(words):
        ascending = (signs == {"-"}) != is_speed  # the fastest time is the shortest
        yield at + 1, Pick(ascending, count, nth, (), low), 1.1


def _names_duration(words: Words) -> bool:
    """Return whether a request names a duration: ``the fastest time``."""
    return not _DURATIONS.isdisjoint(map(words.lower, range(words.size)))


def _tops(words: Words, at: int) -> Iterator[Found]:
    for stop, sense in words.of_kind(at, "rank"):
        number = _count(words, stop)
        end = stop if number is None else stop + 1
        if sense.detail in ("top", "bottom") and (number or words.says(at, "top bottom")):
            following = words.lower(end)
            is_one = not number and bool(following) and singular(following) == following
            count = None if is_one else number or 5
            yield end, Pick(sense.detail == "bottom", count, 0, (), "top"), 1.0
        if sense.detail in ("first", "last"):
            view: Look = Look("head" if sense.detail == "first" else "tail", number or 0)
            for last, _ in words.of_kind(end, "row"):
                yield last, view, 0.8
            if words.says(at, "head tail"):
                yield end, view, 1.0
            for last, noun, _ in _nouns(words, end):
                if isinstance(noun, Noun) and noun.kind == "file" and number:
                    yield last, view, 0.9


def _count(words: Words, at: int) -> int | None:
    value = words.number(at)
    token = words.tokens[at] if at < words.size else None
    if value is None or token is None or token.is_percent or value != int(value):
        return None
    return int(value) if 1 <= value <= 10_000 else None


def _dimension(words: Words, at: int) -> Iterator[Found]:
    for end, sign, columns in dimensions(words, at):
        low = words.lower(at)
        if is_superlative(low):
            continue
        is_more = is_comparative(low) or words.says(at - 1, "more less")
        yield end, Dimension(columns, sign == "-", is_more, words.lower(at)), 1.0


def _steps(words: Words, at: int) -> Iterator[Found]:
    is_how_much = words.lower(at) == "how" and words.lower(at + 1) == "much"
    after = words.lower(at + 2)
    if is_how_much and is_comparative(after):
        yield at + 2, AggregateStep("diff"), 1.0
    if words.says(at, "rate rates quote") and any(True for _ in flags(words, at - 1)):
        yield at + 1, AggregateStep("share"), 1.0
    for end, sense in words.of_kind(at, "share diff cumulative"):
        yield end, AggregateStep(sense.kind, sense.detail), 1.0  # type: ignore[arg-type]
    for end, sense in words.of_kind(at, "change"):
        yield end, AggregateStep("change", sense.detail + _direction(words, at)), 1.0
    for end, sense in words.of_kind(at, "step"):
        yield end, AggregateStep("change", "", sense.detail), 1.0


def _looks(words: Words, at: int) -> Iterator[Found]:
    for end, sense in words.of_kind(at, "chart"):
        yield end, Picture(sense.detail), 0.5 if end > at + 1 else 1.0  # type: ignore[arg-type]
    for end, sense in words.of_kind(at, "view"):
        if sense.detail == "sample":
            last = next((found.end for found in words.of_kind(end, "row")), end)
            yield last, Look("sample"), 1.0
        else:
            yield end, Look(sense.detail), 1.0  # type: ignore[arg-type]
    count = _count(words, at)
    if count is None:
        return
    start = words.skip(at + 1, "random sample example")
    for end, _ in words.of_kind(start, "row"):
        if start > at + 1:
            yield end, Look("sample", count), 0.8
        elif words.says(at - 1, "show me give display print see list"):
            yield end, Look("head", count), 0.9


def _direction(words: Words, at: int) -> str:
    low = words.lower(at)
    if low in "drop drops decrease fall decline".split():
        return " down"
    return " up" if low in "increase rise gain gains jump".split() else ""


def _nouns(words: Words, at: int) -> Iterator[Found]:
    low = words.lower(at)
    if not low:
        return
    is_elsewhere = singular(low) in words.scope.other_nouns - words.scope.nouns
    for end, sense in words.of_kind(at, "row person thing"):
        is_column = sense.kind != "row" and any(
            found.end == end and found.ref.distance < 3 + (low in INHABITANTS)
            for found in words.columns(at)
        )
        is_value = words.values(at) and not words.is_noun(at)
        is_taken = is_column or is_elsewhere or is_value
        if not is_taken and _fits_file(words, sense.kind, low):
            yield end, Noun(sense.kind, low), 0.5  # type: ignore[arg-type]
    is_file = words.scope.is_row(low)
    if is_file and not _is_other(words, at):
        yield at + 1, Noun("file", low), 0.4
    for end, sense in words.of_kind(at, "unit"):
        yield end, Noun("unit", low, sense.detail), 0.7


def _is_group_count(words: Words, at: int) -> bool:
    """Return whether a number counts groups: ``the 3 customers with the largest ...``."""
    count = _count(words, at)
    if count is None or count > 1000 or at + 1 >= words.size:
        return False
    is_plural = words.lower(at + 1).endswith("s") or count == 1
    return is_plural and bool(words.columns(at + 1) or next(_nouns(words, at + 1), None))


def _is_relative(words: Words, at: int) -> bool:
    """Return whether ``who`` or ``which`` goes on with the noun before it."""
    low = words.lower(at - 1)
    is_noun = words.is_kind(at - 1, "row person thing") or words.scope.is_row(low)
    return at > 0 and (
        is_noun
        or low in "those ones in on for".split()
        or bool(words.columns(at - 1) or words.values(at - 1))
    )


def _fits_file(words: Words, kind: str, noun: str) -> bool:
    """Return whether a noun can stand for the rows of a file that is named after its rows."""
    if words.scope.nouns & meanings(noun):
        return True
    named = {
        sense.kind: name
        for name in words.scope.nouns
        for sense in LEXICON.get(name, ())
        if sense.kind in ("thing", "person")
    }
    if kind == "row" or not named:
        return True
    return kind == "person" and "person" in named


def _is_other(words: Words, at: int) -> bool:
    """Return whether a noun is also a value or the name of a column."""
    named = any(found.end == at + 1 and found.ref.distance < 2 for found in words.columns(at))
    return named or bool(words.values(at))


def _is_initials(words: Words, at: int) -> bool:
    """Return whether a pronoun is written as initials, as ``IT`` for a department."""
    text = words.tokens[at].text
    return text in ("IT", "US", "ME", "HE") and not words.text.isupper()


def _marks(words: Words, at: int) -> Iterator[Found]:
    if words.says(at, "than als"):
        yield at + 1, Mark("than"), 0.7
    if _is_group_count(words, at):
        yield at + 1, Mark("count", str(_count(words, at))), 0.8
    for end, sense in words.senses(at):
        if sense.kind in _MARKS:
            yield from _marks_of(words, at, end, sense)
        elif sense.kind == "filler" and not (
            end == at + 1 and (_is_word_of_data(words, at) or _is_initials(words, at))
        ):
            is_verb = words.says(at, _VERBS) and end == at + 1
            yield end, Mark("verb" if is_verb else "filler", words.lower(at)), _FILLER
        elif sense.kind == "number":
            yield end, Mark("filler", "number"), _FILLER
        elif sense.kind == "by" and words.says(at, "by nach"):
            yield end, Mark("by"), 0.7
        elif sense.kind == "and" and words.lower(at) != "than":
            yield end, Mark("filler", "and"), 0.1


def _is_word_of_data(words: Words, at: int) -> bool:
    low = words.lower(at)
    if low in _DEEDS and low in {name.casefold() for name in words.scope.columns}:
        return not words.says(at + 1, _OBJECTS) if at else words.lower(at + 1) == "of"
    if low == "die" and words.lower(at + 1) in ("", "?"):  # no article ends a request
        return True
    others = words.scope.other_nouns - words.scope.nouns
    is_deed = any(low == noun + ending for noun in others for ending in ("ed", "d"))
    return words.is_value(at) or words.may_be_value(at) or is_deed


def _marks_of(words: Words, at: int, end: int, sense: Sense) -> Iterator[Found]:
    if sense.kind == "refused":
        yield end, Mark("refused", words.raw(at, end)), 1.3
        return
    kind = sense.detail if sense.kind == "dir" else sense.kind
    yield end, Mark(kind, sense.detail), 0.6
    is_when = kind == "when" and at > 0 and words.columns(words.skip(at + 1, "the its"))
    is_relative = kind in ("which", "who") and end == at + 1 and _is_relative(words, at)
    if is_when or is_relative:
        yield end, Mark("filler", words.lower(at)), _FILLER
