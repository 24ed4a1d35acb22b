"""Descriptions of files: the request in people's words, prose, and three questions to go on with.

English and German wordings are read as a whole, after the mention of the file: nothing of such a
request may be left over, so that a request for anything else is never taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

from taskweaver.analyst.language.names import counts_rows
from taskweaver.analyst.readings import Reading
from taskweaver.analyst.wording.requests import shown_kind
from taskweaver.memory.suggestions import Suggestion
from taskweaver.tables.files.mentions import Mention
from taskweaver.tables.files.profile import ColumnProfile, TableProfile
from taskweaver.utils.text import counted

_THE = r"(?:the |this |that |these |my |our |your |all (?:the )?)?"
_DER = r"(?:der |die |das |den |dem |des |eine? |diese[rsmn]? |meine[rsmn]? |deine[rsmn]? )?"
_FILE_NOUNS = (
    r"(?:data ?sets?|data ?files?|files?|data|tables?|spreadsheets?|workbooks?|databases?|csv)"
)
_FILE_NOUNS_GERMAN = r"(?:dateien|datei|daten|datensatz(?:es)?|datensätze|tabellen?|mappe)"
_IT = re.compile(
    rf"\b(?:(?:{_THE}(?:csv |excel |json )?{_FILE_NOUNS}|{_DER}{_FILE_NOUNS_GERMAN}) )?"
    rf"(?:file_named_here)\b|\b{_THE}{_FILE_NOUNS}\b|\b{_DER}{_FILE_NOUNS_GERMAN}\b"
)
_POLITE = (
    r"(?:(?:please|hi|hello|hey|so|ok(?:ay)?|now|then|bitte|hallo|und|"
    r"(?:can|could|would) you|i(?: would|'d) like to(?: see| know)?|i want to (?:see|know)|"
    r"kannst du|könntest du) )*"
)
_OVERVIEW = (
    r"(?:overview|summary|description|introduction|idea|feel|feeling|sense|look|profile|contents?|"
    r"überblick|übersicht|zusammenfassung|beschreibung|inhalt)"
)
_BRIEF = r"(?:(?:quick|short|brief|general|basic|first|kurzen?|groben?|kurze|grobe) )?"
_REQUESTS = [
    r"what(?:'s| is| are|s)(?: there)? (?:in|inside|within|on)(?: it)?",
    r"what do (?:you|we|i) (?:have|see|know)(?: (?:in|about|of))?(?: it| here| there)?",
    r"what does it (?:contain|hold|have|include|show|cover|look like|say|tell(?: me| us)?|mean)",
    r"what(?:'s| is|s) it(?: all)?(?: about)?",
    r"what(?:'s| is|s) (?:this|that)(?: about)?",
    r"what (?:is|are|was) it(?: all)? about",
    r"what (?:kind|sort|type)s? of (?:it|information|things) (?:is|are) (?:it|this|that|there|here)"
    r"(?: in it)?",
    r"what (?:it|information|info)(?: (?:is|are))?(?: (?:this|that|there|here|in it|it))+",
    r"(?:tell|teach) (?:me|us) (?:something |more |a bit |everything |all )?(?:about|of) it",
    r"(?:describe|explain|summari[sz]e|profile|introduce|outline|explore|inspect|analy[sz]e|examine"
    r"|show|open|present|display|view|see)(?: (?:me|us))?(?: what(?:'s| is) in)?(?: it)",
    r"(?:let'?s |let me )?(?:look|have a look|take a look) (?:at|into) it",
    rf"(?:(?:give|show|get|make|write) )?(?:(?:me|us) )?(?:an? |the )?{_BRIEF}{_OVERVIEW}"
    r"(?: (?:of|about|for|on|in|into))?(?: (?:what is in )?it)?",
    r"(?:help|let) (?:me|us)(?: to)? understand it",
    r"what (?:can|could|should) (?:i|we|you)"
    r" (?:ask|tell(?: me| us)?|do|learn|find(?: out)?|say|know|see)(?: you)?"
    r"(?: (?:about|with|from|of|in|here))?(?: it)?",
    r"what questions can (?:i|we) ask(?: you)?(?: (?:about|of))?(?: it)?",
    r"how (?:does|do) it look(?: like)?",
    r"was (?:ist|sind|steht|steckt|gibt es|enthält|enthalten|befindet sich|haben wir|hast du)"
    r"(?: (?:alles|denn|so|da|hier))*(?: (?:in|drin|darin|drinnen))?(?: (?:it|drin|enthalten))*",
    r"was (?:ist|sind) (?:das|dies)(?: für)?(?: it)?",
    r"was für it(?: (?:ist|sind|haben|gibt|hast) (?:das|dies|wir|es|du|hier))?",
    r"(?:worum|um was) (?:geht|handelt)(?: es| sich| 's)*(?: (?:hier|in|bei))?(?: it)?",
    r"(?:beschreib|erklär|zeig|analysier|untersuch|öffne|präsentier)e?(?: (?:mir|uns))?(?: mal)?"
    r"(?: it)",
    r"(?:fass|fasse) (?:mir )?it zusammen",
    r"(?:erzähl|sag)e? (?:mir|uns) (?:etwas|was|mehr|alles) (?:über|von|zu) it",
    rf"(?:gib|gebe|zeig|zeige) (?:mir|uns) (?:einen?|den|die|das) {_BRIEF}{_OVERVIEW}"
    r"(?: (?:über|von|zu|in))?(?: it)?",
    r"was (?:kann|könnte) ich(?: (?:dich|hier|damit|alles))*(?: (?:über|zu|mit))?(?: it)?"
    r" (?:fragen|machen|tun|erfahren)",
    r"wie (?:sieht|sehen) it aus",
]
_ENDING = (
    r"(?: (?:please|bitte|all about|there|to me|for me|briefly|kurz|with this|with it"
    r"|in (?:plain|simple|a few|your own|my) (?:words|terms|english|language)))*"
)
_REQUEST = rf"{_POLITE}(?:{'|'.join(_REQUESTS)}){_ENDING}"
_MOST_GROUPS, _MOST_NUMBERS, _MOST_VALUES, _MOST_NAMED, _QUESTIONS = 6, 8, 5, 8, 3
FEW, _FEWEST = 60, 3
_KEY_NAME = re.compile(
    r"(?:^|_|\b)(?:id|key|index|no|nr|code|unnamed.*|lat(?:itude)?|lon(?:gitude)?)$", re.IGNORECASE
)
_ADDS_UP = re.compile(
    r"amount|sales|revenue|turnover|quantity|qty|units|count|total|cost|profit|deaths|betrag|umsatz"
    r"|menge|anzahl|summe",
    re.IGNORECASE,
)
_TELLING = re.compile(
    rf"{_ADDS_UP.pattern}|price|value|income|salary|wage|score|rating|preis|wert|gehalt|population",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Za-z]\w*(?: [A-Za-z]\w*)*")


def asks_about(text: str, mentions: Sequence[Mention]) -> bool:
    """Return whether a request asks what is in a file, and nothing else."""
    for mention in sorted(mentions, key=lambda mention: -mention.start):
        text = f"{text[: mention.start]} file_named_here {text[mention.end :]}"
    words = " ".join(re.sub(r"[^\w']+", " ", text.casefold().replace("\u2019", "'")).split())
    said = " ".join(_IT.sub("it", words).split())
    said = re.sub(r"\bit(?: (?:and|und) it)+\b", "it", said)
    said = re.sub(r"\b(?:in|of|von) it it\b", "it", said)
    return re.fullmatch(_REQUEST, said) is not None


def in_prose(table: TableProfile) -> str:
    """Return what is in a table: rows, columns by kind, and what is missing or odd."""
    name = f"`{table.id.file}`" + (f", table `{table.id.part}`," if table.id.part else "")
    size = (
        f"{counted(table.rows, 'row')} and {counted(len(table.columns) + table.hidden, 'column')}"
    )
    lead = f"{name} has {size}{_one_row_for_each(table)}."
    lines = [
        _line("Times", [c for c in table.columns if c.kind == "time"], _span, _MOST_NUMBERS),
        _line("Groups", _groups(table), _values, _MOST_GROUPS),
        _line("Numbers", _of(table, "integer", "number"), _span, _MOST_NUMBERS),
        _line("Texts", _texts(table), _count, _MOST_GROUPS),
        _line(
            "Missing", [c for c in table.columns if c.missing and c.distinct], _missing, _MOST_NAMED
        ),
        _line("Empty", [c for c in table.columns if not c.distinct], lambda _: "", _MOST_NAMED),
        _line("Always the same", _constant(table), lambda _: "", _MOST_NAMED),
        _line("More than one spelling", [c for c in table.columns if c.spellings], _respelled, 3),
    ]
    return "\n".join([lead, "", *filter(None, lines)])


def questions(
    table: TableProfile, read: Callable[[str], Reading | None], where: str = ""
) -> tuple[Suggestion, ...]:
    """Return up to three questions about a table that can be answered.

    Args:
        table: The table.
        read: Returns the reading of a request; None for none.
        where: Words that name the table, where others could be meant.
    """
    found: dict[str, Suggestion] = {}
    for kind, template in _candidates(table):
        if kind in found:
            continue
        text = template.removesuffix("?") + where + "?" * template.endswith("?")
        reading = read(text)
        if reading is not None:
            found[kind] = Suggestion(text, shown_kind(reading))
        if len(found) == _QUESTIONS:
            break
    return tuple(found.values())


def _candidates(table: TableProfile) -> Iterator[tuple[str, str]]:
    """Yield kinds of questions with a question, the most telling first."""
    groups = sorted(
        (column for column in _groups(table) if column.distinct > 1),
        key=lambda column: abs(column.distinct - 5),
    )
    found = measures(table)
    times = [c for c in table.columns if c.kind == "time" and c.distinct > 1]
    for measure, group in product(found, groups):
        yield "mean", f"What is the mean {_word(measure)} per {_word(group)}?"
    for measure, time in product(found, times):
        yield "trend", f"Plot the {_how(measure)} {_word(measure)} per {_unit(time)}"
    for measure, group in product(found[1:], groups[1:] or groups):
        yield "top", f"Which {_word(group)} has the highest {_how(measure)} {_word(measure)}?"
    for group in groups:
        yield "rows", f"How many rows are there per {_word(group)}?"
    for first, second in pairwise(found):
        yield "relation", f"What is the correlation of {_word(first)} and {_word(second)}?"
    for measure in found:
        yield "histogram", f"Plot a histogram of {_word(measure)}"
    yield from (("one", f"What is the mean {_word(measure)}?") for measure in found)
    yield "sample", "Show the first 5 rows"
    yield "missing", "How many values are missing per column?"
    yield "columns", "List the columns"


def _how(column: ColumnProfile) -> str:
    return "total" if _ADDS_UP.search(column.name) else "mean"


def _unit(column: ColumnProfile) -> str:
    """Return the period that gives a line some points and not too many."""
    return "year" if column.low[:3] != column.high[:3] else "month"


def measures(table: TableProfile) -> list[ColumnProfile]:
    """Return the columns whose mean says something, the most telling first."""
    found = [c for c in _of(table, "number", "integer") if _is_measure(c, table)]
    return sorted(found, key=lambda column: (not _TELLING.search(column.name), -column.distinct))


def _is_measure(column: ColumnProfile, table: TableProfile) -> bool:
    """Return whether a mean says something: the column holds no row number, key, flag or year."""
    is_year = re.fullmatch(r"years?|jahre?", column.name, re.IGNORECASE) is not None
    has_few = column.distinct < _FEWEST
    return not (
        counts_rows(column, table.rows) or is_year or has_few or _KEY_NAME.search(column.name)
    )


def _one_row_for_each(table: TableProfile) -> str:
    unique = [
        column
        for column in table.columns
        if column.distinct == table.rows > 1 and not column.missing and column.kind == "text"
    ]
    return f", one row for each `{unique[0].name}`" if unique else ""


def _of(table: TableProfile, *kinds: str) -> list[ColumnProfile]:
    return [column for column in table.columns if column.kind in kinds]


def _groups(table: TableProfile) -> list[ColumnProfile]:
    return [
        column
        for column in _of(table, "text", "flag")
        if column.values is not None and 1 < column.distinct <= FEW and column.distinct < table.rows
    ]


def _texts(table: TableProfile) -> list[ColumnProfile]:
    groups = {column.name for column in _groups(table)}
    return [c for c in _of(table, "text") if c.name not in groups and c.distinct > 1]


def _constant(table: TableProfile) -> list[ColumnProfile]:
    is_same = [c for c in table.columns if c.distinct == 1 and not c.missing]
    return is_same if table.rows > 1 else []


def _line(
    title: str, columns: Sequence[ColumnProfile], fact: Callable[[ColumnProfile], str], most: int
) -> str:
    """Return a line of the description; empty for no columns."""
    if not columns:
        return ""
    shown = [" ".join(filter(None, [f"`{c.name}`", fact(c)])) for c in columns[:most]]
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return f"- {title}: {', '.join(shown)}{more}"


def _span(column: ColumnProfile) -> str:
    return f"{column.low} to {column.high}" if column.low != column.high else column.low


def _values(column: ColumnProfile) -> str:
    values = column.values or ()
    more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
    return f"({', '.join(values[:_MOST_VALUES])}{more})"


def _count(column: ColumnProfile) -> str:
    return f"({counted(column.distinct, 'different text')})"


def _missing(column: ColumnProfile) -> str:
    return str(column.missing)


def _respelled(column: ColumnProfile) -> str:
    spelling, value = next(iter(column.spellings.items()))
    return f"({spelling} for {value})"


def _word(column: ColumnProfile) -> str:
    """Return a column's name as a request has it: in back quotes where it is no plain word."""
    return column.name if _PLAIN.fullmatch(column.name) else f"`{column.name}`"
