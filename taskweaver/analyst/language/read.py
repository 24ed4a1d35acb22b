"""Reading of a request against the tables it may be about, alone or as a change of the last one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from taskweaver.analyst.language.atoms import (
    AggregateStep,
    Atom,
    Fn,
    Mark,
    Noun,
    Pick,
    Picture,
)
from taskweaver.analyst.language.checks import check_unused
from taskweaver.analyst.language.compose import compose
from taskweaver.analyst.language.cover import covers
from taskweaver.analyst.language.groups import NUMERIC, as_measure, compared, kinds_for
from taskweaver.analyst.language.lexicon import (
    LEXICON,
    Token,
    is_unspaced,
    literal_spans,
    tokenize,
)
from taskweaver.analyst.language.parser import Operand, Words
from taskweaver.analyst.language.parts import Phrases, UnclearError, UnfitError
from taskweaver.analyst.language.scope import DataScope
from taskweaver.analyst.language.values import Cond, conjunction
from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    Condition,
    During,
    Expression,
    Measure,
    Not,
    NotUnderstood,
    Outcome,
    Rank,
    Reading,
    Rows,
    Share,
    Summary,
    TableView,
    Unclear,
    Understood,
    columns_in,
)
from taskweaver.tables.files.mentions import Mention

_OPENINGS = frozenset(
    "and as now only same also just but ok okay instead then without except excluding per by with "
    "plot und et y nur maintenant ahora".split()
)
_SEVERAL = frozenset("them those these their".split())
_PRONOUNS = _SEVERAL | frozenset("it its that this same instead".split())
_CONTINUED = frozenset("and but only same instead then und oder y et nur".split())
_BEFORE_THAT = frozenset(
    "plot sort show draw make of in for do visualise visualize order chart about graph  is rank "
    "give as than and split break only list repeat".split()
)


def is_follow_up(words: Words) -> bool:
    """Return whether a request points to the one before."""
    first = words.lower(0)
    if first in _OPENINGS or (first in ("what", "how") and words.lower(1) == "about"):
        return True
    return any(_points_back(words, at) for at in range(words.size))


def points_back(text: str, *, openings: bool = True) -> bool:
    """Return whether a request is about the rows of an answer before, or begins as its change."""
    words = re.findall(r"\w+", text.casefold())
    begins = words[:1] and (words[0] in _CONTINUED or words[1:2] == ["about"])
    return not _SEVERAL.isdisjoint(words) or (openings and bool(begins))


def _points_back(words: Words, at: int) -> bool:
    low = words.lower(at)
    if low not in _PRONOUNS:
        return False
    if low in ("that", "this", "it", "its", "these", "those"):
        return words.lower(at - 1) in _BEFORE_THAT
    return True


def revise(words: Words, atoms: Sequence[Atom], previous: Reading) -> Understood:
    """Return the previous reading, changed by the phrases of a request.

    Raises:
        UnfitError: If the phrases do not change it, or cannot.
        UnclearError: If a column is not clear.
    """
    parts = Phrases(words, atoms)
    refused = [mark.detail for _, mark in parts.all(Mark) if mark.kind == "refused"]
    if refused:
        raise UnfitError(refused)
    skipped = check_unused(parts)
    if not is_follow_up(words) and _is_complete(parts):
        raise UnfitError((words.text,))
    if not isinstance(previous, Summary | Rows | TableView):
        raise UnfitError((words.text,))
    reading = _with_conditions(parts, previous)
    if isinstance(reading, Summary):
        reading = _revised_summary(parts, reading)
    elif isinstance(reading, Rows):
        reading = _revised_rows(parts, reading)
    parts.mark("which", "who", "instead")
    parts.finish()
    if reading == previous:
        raise UnfitError((words.text,))
    return Understood(reading, (*skipped, *parts.unused), tuple(parts.notes))


def _is_complete(parts: Phrases) -> bool:
    """Return whether a request has a measure of its own, or is a question of yes or no."""
    has_measure = parts.has(Fn) and (parts.has(Operand) or parts.has(Noun))
    return has_measure or parts.words.lower(0) in ("is", "are", "was", "were", "do", "does", "did")


Known = Summary | Rows | TableView


def _with_conditions(parts: Phrases, previous: Known) -> Known:
    shift = parts.mark("shift")
    where = previous.where
    if shift is not None:
        where = _shifted(where, int(shift.detail))
    conds = parts.conditions()
    is_added = points_back(parts.words.text, openings=False)
    for cond in conds:
        new = parts.condition([cond])
        if new is not None:
            where = _merged(where, new, is_added=is_added and not cond.is_time)
    if conds and isinstance(previous, Summary):
        return _compared(parts, replace(previous, where=where), conds)
    return replace(previous, where=where)


def _compared(parts: Phrases, reading: Summary, conds: Sequence[Cond]) -> Summary:
    keys = tuple(dict.fromkeys((*reading.keys, *compared(parts, conds, reading.measures))))
    return replace(reading, keys=keys)


def _merged(where: Condition | None, new: Condition, *, is_added: bool) -> Condition | None:
    """Return a condition with a new part, which replaces the parts about the same column."""
    old = where.parts if isinstance(where, And) else (where,) if where is not None else ()
    columns = columns_in(new)
    if is_added:
        return conjunction(*old, new)
    kept = [
        part
        for part in old
        if not columns_in(part) & columns or (_excludes(part) and _excludes(new))
    ]
    return conjunction(*kept, new)


def _excludes(condition: Condition) -> bool:
    is_unequal = isinstance(condition, Comparison) and condition.operator == "!="
    return is_unequal or isinstance(condition, Not)


def _shifted(where: Condition | None, years: int) -> Condition:
    """Return a condition with its year moved."""
    parts = where.parts if isinstance(where, And) else (where,) if where is not None else ()
    moved = [_moved(part, years) for part in parts]
    changed = [at for at, part in enumerate(moved) if part is not None]
    if len(changed) != 1:
        raise UnfitError(("year",), "The last request has no single year.")
    result = conjunction(*(new or old for new, old in zip(moved, parts, strict=True)))
    if result is None:
        raise UnfitError(("year",))
    return result


def _moved(part: Condition, years: int) -> Condition | None:
    if isinstance(part, During) and part.start[4:] == part.end[4:] == "-01-01":
        start, end = int(part.start[:4]) + years, int(part.end[:4]) + years
        if int(part.end[:4]) - int(part.start[:4]) == 1:
            return During(part.column, f"{start:04}-01-01", f"{end:04}-01-01")
    is_year = isinstance(part, Comparison) and part.operator == "==" and type(part.right) is int
    if is_year and isinstance(part, Comparison) and isinstance(part.right, int):
        return replace(part, right=part.right + years) if 1000 <= part.right <= 2200 else None
    return None


def _revised_summary(parts: Phrases, reading: Summary) -> Summary:
    keys = parts.keys()
    if keys:
        is_more = any(
            parts.words.lower(at) in ("also", "too", "additionally")
            for at in range(parts.words.size)
        )
        rank = None if reading.names_winner else reading.rank
        keys = (*reading.keys, *keys) if is_more else keys
        reading = replace(reading, keys=keys, rank=rank, names_winner=False)
    reading = _with_measure(parts, reading)
    reading = _with_rank(parts, reading)
    return _with_step(parts, reading)


def _with_measure(parts: Phrases, reading: Summary) -> Summary:
    fns = parts.take_all(Fn)
    operands = parts.take_all(Operand, lambda operand: not set(operand.names) & parts.mentioned)
    if not fns and not operands:
        return reading
    if any(fn.function == "count" for fn in fns):
        if operands or len(fns) > 1:
            raise UnfitError(("how many",))
        return replace(reading, measures=(Measure("count"),))
    old = reading.measures[0]
    if old.function == "count" and not fns and not parts.has(Pick):
        raise UnfitError(operands[0].names, "Say which value is meant: the mean, the total.")
    found = []
    for fn in fns or [Fn(old.function, old.quantile)]:
        function = "max" if fn.function == "count" else fn.function
        values = [parts.column_of(operand, kinds=kinds_for(function)) for operand in operands]
        wanted: list[Expression | None] = [*values] or [old.of]
        for value in wanted:
            if value is None:
                raise UnfitError((fn.function,), f"Name the column of the {fn.function}.")
            if (
                isinstance(value, Column)
                and kinds_for(function)
                and parts.kind(value.name) not in (*NUMERIC, "time")
            ):
                raise UnfitError((value.name,))
            found.append(replace(old, function=function, of=value, quantile=fn.quantile))
    if old.function == "correlation":
        raise UnfitError(("correlation",))
    return replace(reading, measures=tuple(found))


def _with_rank(parts: Phrases, reading: Summary) -> Summary:
    direction = parts.mark("asc", "desc")
    is_sorted = parts.mark("sort") is not None or direction is not None
    pick = parts.take(Pick)
    if is_sorted:
        if not reading.keys:
            raise UnfitError(("sort",), "There is one value; nothing can be sorted.")
        return replace(reading, rank=Rank(direction is None or direction.kind == "asc"))
    if pick is None:
        return reading
    if reading.keys:
        flipped = tuple(_flipped(measure, pick) for measure in reading.measures)
        is_one = pick.rank.count in {1, None}
        return replace(reading, rank=pick.rank, measures=flipped, names_winner=is_one)
    value = reading.measures[0].of
    if value is None:
        raise UnfitError((pick.word,))
    return replace(reading, measures=(as_measure(pick, value),))


def _flipped(measure: Measure, pick: Pick) -> Measure:
    if measure.function in ("min", "max"):
        return replace(measure, function="min" if pick.ascending else "max")
    return measure


def _with_step(parts: Phrases, reading: Summary) -> Summary:
    steps = parts.take_all(AggregateStep)
    pictures = parts.take_all(Picture)
    parts.mark("over")
    if steps:
        if {step.kind for step in steps} != {"share"} or not reading.keys:
            raise UnfitError([step.kind for step in steps])
        if reading.measures[0].function not in ("sum", "count"):
            raise UnfitError(("percent",), "A share is of a total or a count.")
        reading = replace(reading, then=Share())
    if pictures:
        charts = [picture.chart for picture in pictures if picture.chart != "any"]
        if not reading.keys or len(charts) > 1:
            raise UnfitError(("plot",), "There is one value; nothing can be drawn.")
        if charts and charts[0] in ("histogram", "box", "scatter"):
            raise UnfitError(charts)
        is_time = any(key.unit for key in reading.keys)
        if reading.names_winner and reading.rank:  # the picture of a winner is that of its rivals
            rank = replace(reading.rank, count=None, nth=0)
            reading = replace(reading, rank=rank, names_winner=False)
        reading = replace(reading, chart=charts[0] if charts else "line" if is_time else "bar")
    return reading


def _revised_rows(parts: Phrases, reading: Rows) -> Summary | Rows:
    fns = parts.take_all(Fn)
    if len(fns) == 1 and fns[0].function == "count" and not parts.has(Operand):
        return Summary(reading.source, (Measure("count"),), (), reading.where)
    if fns:
        raise UnfitError([fn.function for fn in fns])
    operands = parts.take_all(Operand, lambda operand: not set(operand.names) & parts.mentioned)
    if operands:
        values = [parts.column_of(operand) for operand in operands]
        names = tuple(value.name for value in values if isinstance(value, Column))
        reading = replace(reading, columns=names)
    pick = parts.take(Pick)
    if pick is not None and reading.rank is not None and reading.by is not None:
        reading = replace(reading, rank=replace(reading.rank, ascending=pick.ascending))
    elif pick is not None:
        raise UnfitError((pick.word,))
    return reading


MAX_WORDS = 200
_CLOSE = 0.25


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """Outcome of reading a request against one scope, and its cost."""

    scope: DataScope
    outcome: Understood | Unclear | NotUnderstood
    cost: float
    words: Words = field(repr=False)


def read(
    text: str,
    scope: DataScope,
    mentions: Sequence[Mention],
    previous: Reading | None = None,
) -> ReadingResult:
    """Read a request against a scope; of a previous reading, the request changes a part."""
    words = Words(text, _tokens(text, scope, mentions), scope)
    unfit: UnfitError | None = None
    for cost, atoms in covers(words):
        try:
            reading = revise(words, atoms, previous) if previous else compose(words, atoms)
            return ReadingResult(scope, reading, cost, words)
        except UnclearError as error:
            return ReadingResult(scope, error.unclear, cost, words)
        except UnfitError as error:
            unfit = unfit or error
    found = unfit or UnfitError((text,))
    outcome = NotUnderstood(found.words, found.reason)
    return ReadingResult(scope, outcome, 1000.0 + len(found.words), words)


def _tokens(text: str, scope: DataScope, mentions: Sequence[Mention]) -> list[Token]:
    literals = literal_spans(text, scope.literals)
    files = [(mention.start, mention.end) for mention in mentions if mention.is_certain]
    nouns = [
        (mention.start, mention.end)
        for mention in mentions
        if not mention.is_certain and " " in text[mention.start : mention.end]
    ]
    known = (*LEXICON, *scope.literals) if is_unspaced(text) else ()
    return tokenize(text, literals, [*files, *nouns], known)


def best(
    results: Sequence[ReadingResult], preferred: Sequence[DataScope]
) -> Outcome | ReadingResult:
    """Return the best of several results; a question if two are equally good."""
    good = [result for result in results if isinstance(result.outcome, Understood)]
    liked = [result for result in good if result.scope in preferred and not _unused(result)]
    good = sorted(liked or good, key=lambda result: result.cost)
    if good:
        close = [result for result in good if result.cost <= good[0].cost + _CLOSE]
        return good[0] if len(close) == 1 else _which_table([result.scope for result in close])
    unclear = [result for result in results if isinstance(result.outcome, Unclear)]
    if unclear:
        liked = [result for result in unclear if result.scope in preferred]
        return min(liked or unclear, key=lambda result: result.cost)
    return min(results, key=lambda result: result.cost)


def _unused(result: ReadingResult) -> tuple[str, ...]:
    """Return the unused words of a reading: with some, it is not liked more than others."""
    return result.outcome.unused if isinstance(result.outcome, Understood) else ()


def _which_table(scopes: Sequence[DataScope]) -> Unclear:
    ids = [scope.source.tables[0] for scope in scopes]
    files = list(dict.fromkeys(id.file for id in ids))
    names = files if len(files) == len(ids) else [id.part or id.file for id in ids]
    quoted = [f"`{name}`" for name in names]
    kind = "file" if names == files else "table"
    return Unclear(f"Which {kind}: {', '.join(quoted[:-1])} or {quoted[-1]}?", "", tuple(names))
