"""Follow-ups: requests that change the reading before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from taskweaver.analyst.language.atoms import (
    AggregateStep,
    Atom,
    Fn,
    Keys,
    Mark,
    Noun,
    Pick,
    Picture,
)
from taskweaver.analyst.language.checks import check_unused
from taskweaver.analyst.language.groups import (
    NUMERIC,
    as_measure,
    compared,
    conjuncts,
    kinds_for,
)
from taskweaver.analyst.language.lexicon import DIMENSION_WORDS
from taskweaver.analyst.language.names import singular
from taskweaver.analyst.language.parser import Operand, Words
from taskweaver.analyst.language.parts import Phrases, UnfitError
from taskweaver.analyst.language.ranks import by_operand, ranked
from taskweaver.analyst.language.references import (
    BARE_COUNT,
    COUNT_OF_SHOWN,
    OF_ROWS,
    has_pointer,
    is_follow_up,
    points_back,
)
from taskweaver.analyst.language.row_conditions import either
from taskweaver.analyst.language.values import Cond, conjunction
from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    Condition,
    During,
    Expression,
    GroupKey,
    Measure,
    Not,
    Rank,
    Reading,
    Rows,
    Share,
    Summary,
    TableView,
    Understood,
    columns_in,
    columns_of,
)

_MORE, _TABLES = "also too additionally add auch dazu", "table tabelle"
_BEFORE_ROWS = OF_ROWS | frozenset("where with without if when over above under below".split())
_OVERALL = re.compile(r"\b(?:overall|ever|all (?:the )?years|all time|generally)\b", re.I)
_COMPARED_TO = re.compile(r"\b(?:compared?|vergleiche?)(?: \w+)?? (?:to|with|against|mit)\b", re.I)

_LIST = re.compile(
    r"(?:list|show|display|zeige?)\b(?! (?:(?:me|mir) )?(?:only|just|nur|in|for|from|of|für)\b)",
    re.IGNORECASE,
)
_OF_SHOWN = "Ask this one whole: it may be about the rows that are shown."

Known = Summary | Rows | TableView


def is_of_part(reading: Reading | None) -> bool:
    """Return whether a reading is a list of some rows, or a number of rows of two conditions."""
    match reading:
        case Rows(where=where, rank=rank):
            return bool(rank.count != 1 if rank else where)
        case Summary(_, (Measure("count"),), (), And()):
            return True
    return False


def revise(words: Words, atoms: Sequence[Atom], previous: Reading) -> Understood:
    """Return the previous reading, changed by the phrases of a request.

    Raises:
        UnfitError: If the phrases do not change it, or cannot.
        UnclearError: If a column is not clear.
    """
    bare = BARE_COUNT.fullmatch(words.text)
    if bare and isinstance(previous, Known):
        return Understood(_counted(previous, is_each=bool(bare["each"])))
    parts = Phrases(words, atoms)
    refused = [mark.detail for _, mark in parts.all(Mark) if mark.kind == "refused"]
    if refused:
        raise UnfitError(refused)
    skipped = check_unused(parts)
    is_new = not is_follow_up(words) and _is_complete(parts, previous)
    if is_new or not isinstance(previous, Known):
        raise UnfitError(words.text)
    has_groups = isinstance(previous, Summary) and previous.keys
    if parts.has(Pick) and points_back(words.text, openings=False) and not has_groups:
        return replace(_ranked_among(parts, previous), unused=skipped)
    _require_no_value_measured(parts)
    if isinstance(previous, Summary) and _has_own_rows(parts):
        previous = replace(previous, where=None, keys=(), rank=None, names_winner=False)
    match previous:
        case Summary(keys=()) | Summary(rank=Rank()) | Rows(rank=Rank()) if _lists(parts):
            if previous.where:
                raise UnfitError((), _OF_SHOWN)
            previous = Rows(previous.source)
    reading = _changed(parts, previous)
    parts.mark("which who instead")
    parts.finish()
    if isinstance(reading, Summary) and parts.words.has(_TABLES):
        reading = replace(reading, chart=None)
    if reading == previous:
        raise UnfitError(words.text)
    return Understood(reading, (*skipped, *parts.unused), tuple(parts.notes))


def _changed(parts: Phrases, previous: Known) -> Known:
    """Return the reading before with the changes of all phrases."""
    reading = _with_conditions(parts, previous)
    if isinstance(reading, Summary) and (names := _scatter(parts, reading.measures[0])):
        return Rows(reading.source, names, reading.where, chart="scatter")
    if isinstance(reading, Summary) and isinstance(previous, Summary):
        return _revised_summary(parts, reading, reading.keys[len(previous.keys) :])
    return _revised_rows(parts, reading) if isinstance(reading, Rows) else reading


def _ranked_among(parts: Phrases, previous: Known) -> Understood:
    """Return a rank among the rows of an answer: ``which one is the cheapest``."""
    if isinstance(previous, Rows) and previous.rank and previous.rank.count:
        raise UnfitError((), _OF_SHOWN)
    found = ranked(parts)
    if not isinstance(found, Summary | Rows):
        raise UnfitError(parts.words.text)
    parts.finish()
    where = conjunction(previous.where, found.where)
    return Understood(replace(found, where=where), notes=tuple(parts.notes))


def _counted(previous: Known, *, is_each: bool) -> Known:
    """Return the number of rows of an answer, per group where that has groups."""
    match previous:
        case TableView(source, "values", (name,), where) if is_each:
            return Summary(source, (Measure("count"),), (GroupKey(name),), where)
        case Rows() | TableView() | Summary(keys=()) if is_each:
            raise UnfitError("each", "Name the groups: “per …”.")
        case Rows(source, where=where):
            return Summary(source, (Measure("count"),), where=where)
        case Summary(measures=(Measure("count" | "nunique"), *_)):
            return previous
        case Summary(source, _, keys, where):
            return Summary(source, (Measure("count"),), keys, where)
        case TableView(source, "values", (name,), where):
            return Summary(source, (Measure("nunique", Column(name)),), where=where)
        case TableView(source):
            return TableView(source, "shape")


def _require_no_value_measured(parts: Phrases) -> None:
    """Refuse ``total rain`` where rain is a value: another measure is meant than before."""
    ends = {atom.end for atom, fn in parts.all(Fn) if fn.function != "count"}
    for atom, cond in parts.all(Cond):
        is_apart = cond.is_time or parts.words.lower(atom.start) in _BEFORE_ROWS
        if atom.start in ends and not is_apart and not parts.has(Operand):
            raise UnfitError(cond.phrase, f"Name the column of numbers that {cond.phrase} has.")


def _has_own_rows(parts: Phrases) -> bool:
    """Return whether a change names all but the function: ``plot rain per month``."""
    lows = [parts.words.lower(at) for at in range(parts.words.size)]
    beside = {"plot": Keys, "compare": Cond}.get(lows[0])
    is_named = beside is not None and parts.has(beside) and parts.has(Operand)
    return is_named and not has_pointer(lows)


def _lists(parts: Phrases) -> bool:
    """Return whether rows of a value are asked for: ``list the vans``, but not ``show in May``."""
    is_value = _LIST.match(parts.words.text) and parts.has(Cond, lambda cond: not cond.is_time)
    others = map(parts.has, (Fn, Keys, Pick, Picture))
    return bool(is_value) and not (is_follow_up(parts.words) or any(others))


def _is_complete(parts: Phrases, previous: Reading) -> bool:
    """Return whether a request has a measure of its own, or is a question of yes or no."""
    is_total = isinstance(previous, Summary) and previous.measures[0].function in ("count", "sum")
    has_pick = parts.has(Pick) and not (is_total and _picks_group(parts))
    has_measure = (parts.has(Fn) or has_pick) and (parts.has(Operand) or parts.has(Noun))
    has_measure = has_measure or (parts.has(Keys) and (parts.has(Cond) or parts.has(Noun)))
    is_asked = parts.words.says(0, "is are was were do does did")
    return has_measure or is_asked or parts.words.lower(parts.words.size - 1) == "there"


def _picks_group(parts: Phrases) -> bool:
    """Return whether groups are asked for without a measure: ``which town has the fewest``."""
    is_most = parts.has(Pick, lambda pick: pick.word in ("most", "least", "fewest"))
    times = parts.scope.time_columns
    named = [one for _, one in parts.all(Operand)]
    groups = [one for one in named if set(one.names) <= {*times} or not parts.may_be_numbers(one)]
    return is_most and len(groups) == len(named) == 1 and not (parts.has(Fn) or parts.has(Noun))


def _with_conditions(parts: Phrases, previous: Known) -> Known:
    shift = parts.mark("shift")
    where = previous.where
    if shift is not None:
        where = _shifted(where, int(shift.detail))
    conds = parts.conditions()
    if conds and parts.words.lower(0) == "add":  # beside the rows, or of them?
        raise UnfitError("add")
    is_of_shown = is_of_part(previous) and bool(COUNT_OF_SHOWN.match(parts.words.text))
    if is_of_shown and (not isinstance(previous, Rows) or previous.by):
        raise UnfitError((), _OF_SHOWN)
    is_added = is_of_shown or points_back(parts.words.text, openings=False)
    if _COMPARED_TO.search(parts.words.text):
        conds = [_beside(cond, previous.where) for cond in conds]
    if not is_added and any(_is_other_kind(parts, cond) for cond in conds):
        where = conjunction(*(part for part in conjuncts(where) if not _is_kind(parts, part)))
    for cond in conds:
        new = parts.condition([cond])
        if new is not None:
            is_other = cond.is_time or (is_of_shown and cond.is_bare)
            where = _merged(where, new, is_added=is_added and not is_other)
    if conds and isinstance(previous, Summary):
        return _compared(parts, replace(previous, where=where), conds)
    return replace(previous, where=where)


def _is_other_kind(parts: Phrases, cond: Cond) -> bool:
    """Return whether a column of yes and no stands as a noun: ``dramas`` after ``comedies``."""
    low = cond.phrase.casefold()
    is_noun = singular(low) != low or parts.words.says(0, "and what how und")
    is_plain = is_noun and cond.is_bare and not cond.is_negative
    return is_plain and _is_kind(parts, cond.options[0].condition)


def _is_kind(parts: Phrases, condition: Condition) -> bool:
    """Return whether a condition is that a column of yes and no says yes or no."""
    is_value = isinstance(condition, Comparison) and condition.operator == "=="
    return is_value and all(parts.scope.no_value(name) for name in columns_in(condition))


def _beside(cond: Cond, where: Condition | None) -> Cond:
    """Return a condition with the values of the answer before, which it is compared to."""
    option = cond.options[0]
    for part in conjuncts(where):
        if columns_in(part) == {option.column} and not cond.is_negative:
            joined = replace(option, condition=either(part, option.condition))
            return replace(cond, options=(joined,), is_list=True)
    return cond


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
        raise UnfitError("year", "The last request has no single year.")
    result = conjunction(*(new or old for new, old in zip(moved, parts, strict=True)))
    if result is None:
        raise UnfitError("year")
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


def _revised_summary(parts: Phrases, reading: Summary, listed: Sequence[GroupKey]) -> Summary:
    """Return a summary with new groups, beside those of `listed` values, and other changes."""
    by = by_operand(parts, is_only=True) if reading.rank else None
    keys = parts.keys()
    if not keys and _picks_group(parts):
        group = parts.take(Operand)
        names = columns_of(parts.column_of(group) if group else None)
        keys = tuple(map(GroupKey, names))
        kept = (part for part in conjuncts(reading.where) if columns_in(part) != set(names))
        reading = replace(reading, where=conjunction(*kept))
    if keys and _OVERALL.search(parts.words.text):
        reading = _of_all_times(parts, reading)
    is_more = parts.words.has(_MORE)
    if by is not None:
        if reading.measures[0].of is None:
            raise UnfitError(by.phrase, f"Say mean or total of {by.phrase}.")
        reading = replace(
            reading, measures=(replace(reading.measures[0], of=parts.column_of(by)),), then=None
        )
    if keys:
        rank = None if reading.names_winner else reading.rank
        keys = (*reading.keys, *keys) if is_more else tuple(dict.fromkeys((*keys, *listed)))
        reading = replace(reading, keys=keys, rank=rank, names_winner=False)
    is_sum = reading.measures[0].function == "sum" and points_back(parts.words.text)
    if is_sum and parts.has(Fn, lambda fn: fn.function == "count"):
        raise UnfitError((), "Say whether rows are counted or the same is added up.")
    before = reading.measures if is_more and not reading.rank and not reading.then else ()
    reading = _with_measure(parts, reading)
    reading = replace(reading, measures=tuple(dict.fromkeys((*before, *reading.measures))))
    reading = _with_rank(parts, reading)
    return _with_step(parts, reading)


def _of_all_times(parts: Phrases, reading: Summary) -> Summary:
    """Drop the time of the answer before for ``the most overall``; refuse where it has others."""
    times = {*parts.scope.time_columns, *parts.scope.date_parts.values()}
    if parts.every(Cond) or not columns_in(And(conjuncts(reading.where))) <= times:
        raise UnfitError((), "Ask this one whole: say of which rows.")
    return replace(reading, where=None)


def _with_measure(parts: Phrases, reading: Summary) -> Summary:
    is_share = parts.has(AggregateStep) and not parts.has(Operand)  # "what share of the total"
    fns = [fn for fn in parts.take_all(Fn) if fn.function != "sum" or not is_share]
    operands = parts.take_all(Operand, lambda operand: not set(operand.names) & parts.mentioned)
    operands = operands if fns else _without_keys(parts, operands, reading)
    if not fns and not operands:
        return reading
    if any(fn.function == "count" for fn in fns):
        if operands or len(fns) > 1:
            raise UnfitError("how many")
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
                raise UnfitError(fn.function, f"Name the column of “{parts.phrases(Fn)[-1]}”.")
            if (
                isinstance(value, Column)
                and kinds_for(function)
                and parts.kind(value.name) not in (*NUMERIC, "time")
            ):
                raise UnfitError(value.name)
            found.append(replace(old, function=function, of=value, quantile=fn.quantile))
    if old.function == "correlation":
        raise UnfitError("correlation")
    return replace(reading, measures=tuple(found))


def _without_keys(parts: Phrases, operands: list[Operand], reading: Summary) -> list[Operand]:
    """Return the measures of ``the month with the most rain``, where the rain was asked for."""
    keys = {key.column for key in reading.keys} if parts.has(Pick) else set()
    others = [operand for operand in operands if keys.isdisjoint(operand.names)]
    measured = [Column(name) for operand in others for name in operand.names]
    is_new = measured and reading.measures[0].of not in measured
    if len(others) < len(operands) and is_new:
        raise UnfitError(others[0].names)
    return others


def _with_rank(parts: Phrases, reading: Summary) -> Summary:
    order, pick = parts.order(), parts.take(Pick)
    if order:
        if not reading.keys:
            raise UnfitError("sort", "There is one value; nothing can be sorted.")
        return replace(reading, rank=order)
    if pick is None:
        return reading
    _require_dimension(pick, *(measure.of for measure in reading.measures))
    if reading.keys:
        flipped = tuple(_flipped(measure, pick) for measure in reading.measures)
        is_one = pick.rank.count in {1, None}
        chart = None if is_one else reading.chart
        reading = replace(reading, rank=pick.rank, measures=flipped, chart=chart)
        return replace(reading, names_winner=is_one)
    value = reading.measures[0].of
    if value is None:
        raise UnfitError(pick.word)
    return replace(reading, measures=(as_measure(pick, value),))


def _require_dimension(pick: Pick, *values: Expression | None) -> None:
    """Refuse ``the heaviest`` where lengths were ranked, or where nothing has a weight."""
    is_dimension = bool(pick.columns) or pick.word in DIMENSION_WORDS
    if is_dimension and not any(Column(name) in values for name in pick.columns):
        raise UnfitError(pick.word, "Name the column to rank by.")


def _flipped(measure: Measure, pick: Pick) -> Measure:
    if measure.function in ("min", "max"):
        return replace(measure, function="min" if pick.ascending else "max")
    return measure


def _with_step(parts: Phrases, reading: Summary) -> Summary:
    steps = parts.take_all(AggregateStep)
    pictures = parts.take_all(Picture)
    times = {key.column for key in reading.keys}.intersection(parts.scope.time_columns)
    if parts.mark("over") and not times:
        raise UnfitError("over time", "Say the period: “per year”, “per month”.")
    if steps:
        if {step.kind for step in steps} != {"share"}:
            raise UnfitError([step.kind for step in steps])
        if reading.measures[0].function not in ("sum", "count"):
            raise UnfitError("percent", "A share is of a total or a count.")
        reading = _shared(parts, reading)
    if pictures:
        charts = [picture.chart for picture in pictures if picture.chart != "any"]
        if not reading.keys or len(charts) > 1:
            raise UnfitError("plot", "There is one value; nothing can be drawn.")
        if charts and charts[0] in ("histogram", "box", "scatter"):
            raise UnfitError(charts)
        years = parts.scope.year_columns
        is_time = any(key.unit or key.column in years for key in reading.keys)
        if reading.names_winner and reading.rank:  # the picture of a winner is that of its rivals
            rank = replace(reading.rank, count=None, nth=0)
            reading = replace(reading, rank=rank, names_winner=False)
        reading = replace(reading, chart=charts[0] if charts else "line" if is_time else "bar")
    return reading


def _shared(parts: Phrases, reading: Summary) -> Summary:
    """Return the shares of groups, or that of the rows of an answer among all of its times."""
    if reading.keys:
        return replace(reading, then=Share())
    times = set(parts.scope.time_columns)
    part = [one for one in conjuncts(reading.where) if not columns_in(one) <= times]
    if not part or not parts.words.has("total whole all everything"):
        raise UnfitError("share", "Say of which rows the share is.")
    whole = (one for one in conjuncts(reading.where) if one not in part)
    return replace(reading, where=conjunction(*whole), then=Share(conjunction(*part)))


def _scatter(parts: Phrases, correlation: Measure) -> tuple[str, ...]:
    """Return the columns of the picture of a correlation; none if no such picture is asked for."""
    names = (*columns_of(correlation.of), *columns_of(correlation.other))
    is_other = parts.has(Picture, lambda picture: picture.chart not in ("any", "scatter"))
    is_scatter = correlation.function == "correlation" and len(names) == 2 and not is_other
    return names if is_scatter and parts.take_all(Picture) else ()


def _revised_rows(parts: Phrases, reading: Rows) -> Summary | Rows:
    fns = parts.take_all(Fn)
    if len(fns) == 1 and fns[0].function == "count" and not parts.has(Operand):
        return Summary(reading.source, (Measure("count"),), parts.keys(), reading.where)
    if fns:
        raise UnfitError([fn.function for fn in fns])
    if reading.by and (by := by_operand(parts, is_only=True)):
        value, shown = parts.column_of(by), set(columns_of(reading.by))
        names = tuple(name for name in reading.columns if name not in shown)
        names = (*names, *columns_of(value)) if reading.columns else ()
        reading = replace(reading, by=value, columns=tuple(dict.fromkeys(names)))
    operands = parts.take_all(Operand, lambda operand: not set(operand.names) & parts.mentioned)
    if operands:
        values = [parts.column_of(operand) for operand in operands]
        names = tuple(value.name for value in values if isinstance(value, Column))
        kept = reading.columns if parts.words.has(_MORE) else ()
        reading = replace(reading, columns=tuple(dict.fromkeys((*kept, *names))))
    pick = parts.take(Pick)
    if pick is not None and reading.rank is not None and reading.by is not None:
        _require_dimension(pick, reading.by)
        reading = replace(reading, rank=replace(reading.rank, ascending=pick.ascending))
    elif pick is not None:  # "which one is the cheapest"
        if len(pick.columns) != 1:
            raise UnfitError(pick.word, "Name the column to rank by.")
        reading = replace(reading, by=Column(*pick.columns), rank=pick.rank)
    return reading
