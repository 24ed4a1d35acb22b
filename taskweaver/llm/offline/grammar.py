"""What was asked: a closed grammar over text in which the columns are marked."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from taskweaver.llm.offline.columns import GRAMMAR_WORDS, MARK, Marked, mark

Kind = Literal[
    "describe", "columns", "head", "tail", "sample", "rows", "distinct", "missing", "aggregate",
    "top", "filter", "correlate", "plot", "outliers", "sql", "code", "arithmetic", "files",
    "help", "unknown",
]  # fmt: skip
Chart = Literal["line", "bar", "hist", "scatter", "box", "pie", "any"]

NEEDS_COLUMNS: frozenset[Kind] = frozenset(
    {"distinct", "aggregate", "top", "filter", "correlate", "plot", "outliers"}
)
NEEDS_FILE = NEEDS_COLUMNS | {"describe", "columns", "head", "tail", "sample", "rows", "missing"}

_EXTENSIONS = "csv|tsv|txt|jsonl|ndjson|json|parquet|xlsx|xls|sqlite3|sqlite|db"
_FILE = re.compile(
    rf"[`'\"]([^`'\"\n]+\.(?:{_EXTENSIONS})(?:#[^`'\"\n]+)?)[`'\"]"
    rf"|([^\s`'\"(),;:]+\.(?:{_EXTENSIONS})(?:#\w+)?)\b",
    re.I,
)
_ADDED = re.compile(r"^files added: (.+)\.$", re.MULTILINE)
_LIST = rf"{MARK}(?:\s*(?:,|and|&|,\s*and)\s*(?:the\s+)?{MARK})*"
_FUNCTIONS = {
    "mean": r"means?|averages?|avg",
    "sum": r"sums?|totals?",
    "median": r"medians?",
    "min": r"min(?:imum)?|lowest|smallest|earliest",
    "max": r"max(?:imum)?|highest|largest|biggest|latest",
    "std": r"std|standard deviations?|variation",
    "count": r"counts?|number|how many",
    "nunique": r"distinct counts?|number of (?:distinct|unique|different)",
}
_PERIODS = {
    "D": r"day|daily|days",
    "W": r"week|weekly|weeks",
    "M": r"month|monthly|months",
    "Q": r"quarter|quarterly|quarters",
    "Y": r"year|yearly|annual|annually|years",
}
PERIOD_NAMES = {"D": "day", "W": "week", "M": "month", "Q": "quarter", "Y": "year"}
_CHARTS: dict[str, str] = {
    "hist": r"histogram|hist\b|distribution",
    "scatter": r"scatter",
    "box": r"box\s?-?plot|box chart|boxes",
    "pie": r"pie",
    "bar": r"bars?\b|column chart",
    "line": r"line (?:chart|plot|graph)|as (?:a )?line|trend|over time",
    "any": r"plot|chart|graph|draw|visuali[sz]e",
}
_OPERATORS = {
    ">=": r">=|at least|no less than",
    "<=": r"<=|at most|no more than",
    "!=": r"!=|<>|is not|isn't|not equal to",
    ">": r">|greater than|more than|larger than|higher than|over|above|exceeds|after",
    "<": r"<|less than|smaller than|lower than|under|below|before",
    "==": r"==?|equals|equal to|is|are",
}
_VALUE = r"('[^']*'|\"[^\"]*\"|[-+]?\d[\d.,:-]*\w*|[^\s,.;?!⟦]+(?:\s(?!and\b|or\b|per\b|by\b|in\b|for\b|as\b|then\b)[^\s,.;?!⟦]+)*)"


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition.

    Attributes:
        column: The column; empty for a year of a date column that is not named.
        operator: An operator of Python, or ``year``.
        value: A Python literal.
    """

    column: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for; columns carry their names, `unknown` the words that are none."""

    kind: Kind
    file: str = ""
    columns: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    period: str = ""
    filters: tuple[Filter, ...] = ()
    n: int = 0
    is_ascending: bool = False
    chart: str = ""
    text: str = ""
    unknown: tuple[str, ...] = ()


def file_in(text: str) -> str:
    """Return the data file a text names; else the first one that was added with it."""
    added = _ADDED.search(text)
    match = _FILE.search(_ADDED.sub("", text))
    if match:
        return match[1] or match[2]
    return added[1].split(", ")[0] if added else ""


def parse(text: str, columns: tuple[str, ...] = ()) -> Request:
    """Read a request.

    Args:
        text: The words of the user, or a task with its columns in back quotes.
        columns: Columns of the file, where they are known.
    """
    special = _special(text)
    if special is not None:
        return special
    file = file_in(text)
    bare = _FILE.sub(" ", _ADDED.sub("", text)).strip()
    marked = mark(bare, columns)
    asked = _read(marked)
    return replace(asked, file=file, text=bare)


def _special(text: str) -> Request | None:
    """Recognise what carries its own language: code, SQL, arithmetic."""
    bare = _ADDED.sub("", text).strip()
    code = re.search(r"```(?:python|py)?\n(.*?)```", bare, re.DOTALL) or re.search(
        r"\b(?:run|execute)\b[^:\n]{0,40}\b(?:code|python)\b[^:\n]{0,20}:\s*(.+)",
        bare,
        re.DOTALL | re.I,
    )
    if code and not re.search(r"\bsql\b", bare[: code.start() + 20], re.I):
        return Request("code", file_in(bare), text=code[1].strip())
    sql = re.search(r"\b((?:select|with)\b.+?\bfrom\b.+)", bare, re.DOTALL | re.I)
    if sql and (
        re.search(r"\bsql\b|\bquery\b", bare, re.I) or bare.lower().startswith(("select", "with"))
    ):
        return Request(
            "sql", file_in(bare[: sql.start()]) or file_in(bare), text=sql[1].strip("`\n ;")
        )
    number = re.fullmatch(
        r"(?:what(?:'s| is)|calculate|compute|how much is|evaluate)?\s*([-\d.\s()+*/%^]*\d[-\d.\s()+*/%^]*)[?=.]?",
        bare,
        re.I,
    )
    if number and re.search(r"\d\s*[-+*/%^]+\s*[\d(-]", number[1]):
        return Request("arithmetic", text=number[1].strip().replace("^", "**"))
    return None


def _read(marked: Marked) -> Request:
    """Read each part of a request, taking away what was understood."""
    text, names = f" {marked.text} ", marked.names
    text, filters = _filters(text, names)
    text, period, date = _period(text, names)
    ranked = re.search(
        r"\b(top|bottom|first|last|largest|smallest|highest|lowest|best|worst)\s+(\d+)?", text, re.I
    )
    text, by, unknown_by = _by(
        text, names, is_ranked=bool(ranked and re.match("top|bottom", ranked[1], re.I))
    )
    chart = next(
        (name for name, words in _CHARTS.items() if re.search(rf"\b(?:{words})", text, re.I)), ""
    )
    functions, unknown = _functions(text)
    used = {*by, *(f.column for f in filters), *([date] if date else [])}
    marked_names = [names[int(n)] for n in re.findall(MARK, text)]
    values = tuple(dict.fromkeys(name for name in marked_names if name not in used))
    base = Request(
        "unknown", columns=values, functions=functions, by=by, period=period, filters=filters,
        chart=chart, unknown=tuple(dict.fromkeys((*unknown, *unknown_by))),
    )  # fmt: skip
    if date:
        base = replace(base, by=(date, *(name for name in by if name != date)))
    return _kind(text, base, ranked)


def _kind(text: str, base: Request, ranked: re.Match[str] | None) -> Request:
    """Decide what kind of request the parts make."""

    def says(words: str) -> bool:
        return re.search(rf"\b(?:{words})", text, re.I) is not None

    number = re.search(r"\b(\d+)\b", text)
    n = int(number[1]) if number else 0
    is_grouped = bool(base.by or base.period)
    if says(r"outliers?|anomal(?:y|ies|ous)|unusual"):
        return replace(base, kind="outliers", functions=())
    if says(r"correlat"):
        return replace(base, kind="correlate", functions=())
    if says(r"missing|null|nan\b|empty (?:values|cells)|gaps"):
        return replace(base, kind="missing", columns=(), functions=(), unknown=())
    if ranked and (
        says(r"top|bottom|(?:largest|smallest|highest|lowest|best|worst)\s+\d+")
        or (base.by and not base.functions)
    ):
        ascending = ranked[1].lower() in {"bottom", "smallest", "lowest", "worst"}
        functions = tuple(f for f in base.functions if f not in {"min", "max"})
        return replace(base, kind="top", n=n or 5, is_ascending=ascending, functions=functions)
    if says(r"sort(?:ed)?|order(?:ed)? by|rank") and base.columns + base.by:
        columns = base.columns or base.by
        return replace(
            base,
            kind="top",
            columns=columns,
            by=(),
            n=n or 20,
            is_ascending=not says("desc|largest|highest"),
            unknown=(),
        )
    if says(r"distinct|unique|different") and not is_grouped:
        return replace(base, kind="distinct", functions=())
    if (
        says(
            r"how many (?:rows|records|lines|entries)|number of (?:rows|records|entries)|count (?:the |all )?(?:rows|records)|row count"
        )
        and not is_grouped
    ):
        return replace(
            base, kind="filter" if base.filters else "rows", functions=("count",), unknown=()
        )
    if base.functions and (base.columns or is_grouped or base.unknown):
        return replace(base, kind="aggregate")
    if base.chart:
        return replace(base, kind="plot")
    return _looking(says, base, n)


def _looking(says: object, base: Request, n: int) -> Request:
    """Recognise the requests that only look at a file."""
    assert callable(says)
    looks: tuple[tuple[Kind, str], ...] = (
        ("describe", r"describe|summar|statistics|overview|profile|explore"),
        (
            "columns",
            r"columns?\b|schema|fields|structure|types|what is in|what's in|load|open|read",
        ),
        ("tail", r"tail|last (?:\d+ )?(?:rows|lines|records)"),
        ("sample", r"sample|random rows"),
        ("head", r"head|first (?:\d+ )?(?:rows|lines|records)|show|preview|display|print|look at"),
        ("files", r"(?:list|which|what) (?:the |all )?files|ls\b"),
        (
            "help",
            r"help|what can you|who are you|hello|hi\b|hey|good (?:morning|day|evening)|thanks?",
        ),
    )
    if base.filters:
        return replace(base, kind="filter")
    if says(r"(?:list|which|what) (?:the |all |my )?files"):
        return replace(base, kind="files")
    for kind, words in looks:
        if says(words):
            return replace(base, kind=kind, n=n, functions=(), unknown=())
    if base.period or base.by:
        return replace(base, kind="aggregate", functions=base.functions or ("count",))
    return base


def _filters(text: str, names: tuple[str, ...]) -> tuple[str, tuple[Filter, ...]]:
    found: list[Filter] = []
    between = re.compile(
        rf"(?:\b(?:where|with|whose|when|if|and|for)\s+)?(?:the\s+)?{MARK}\s+(?:is\s+)?between\s+(\S+)\s+and\s+([^\s,.?]+)",
        re.I,
    )
    operators = "|".join(f"(?P<o{i}>{words})" for i, words in enumerate(_OPERATORS.values()))
    one = re.compile(
        rf"(?:\b(?:where|with|whose|when|if|and|only|for|having)\s+)?(?:the\s+)?{MARK}\s*(?:is\s+(?=over|above|more|less|at|under|below|greater|not))?"
        rf"(?:{operators})\s*{_VALUE}",
        re.I,
    )  # fmt: skip

    def take_between(match: re.Match[str]) -> str:
        column = names[int(match[1])]
        found.extend(
            [Filter(column, ">=", _literal(match[2])), Filter(column, "<=", _literal(match[3]))]
        )
        return " "

    def take(match: re.Match[str]) -> str:
        groups = match.groupdict()
        operator = next(op for i, op in enumerate(_OPERATORS) if groups[f"o{i}"])
        found.append(Filter(names[int(match[1])], operator, _literal(match.groups()[-1])))
        return " "

    text = one.sub(take, between.sub(take_between, text))
    year = re.search(
        rf"\b(?:in|during|for|only)\s+(?:the year\s+)?((?:19|20)\d\d)\b(?:\s+of\s+{MARK})?",
        text,
        re.I,
    )
    if year:
        found.append(Filter(names[int(year[2])] if year[2] else "", "year", year[1]))
        text = text.replace(year[0], " ")
    return text, tuple(found)


def _literal(value: str) -> str:
    """Return a value as a Python literal: a number where it is one, else a text."""
    value = value.strip()
    if value[:1] in {"'", '"'}:
        return repr(value.strip("'\""))
    bare = value.rstrip(".,")
    number = bare.replace(",", "")
    return number if re.fullmatch(r"[-+]?\d+(?:\.\d+)?", number) else repr(bare)


def _period(text: str, names: tuple[str, ...]) -> tuple[str, str, str]:
    """Find ``per month [of DATE]``; return the rest, the period and the date column."""
    for letter, words in _PERIODS.items():
        pattern = rf"(?:\b(?:by|per|each|every|for each|in each|grouped by|over the|,|and)\s+(?:the\s+)?)?\b(?:{words})\b(?:\s+(?:of|in|from)\s+(?:the\s+)?{MARK})?"
        match = re.search(pattern, text, re.I)
        if match and (match[0].strip().lower() not in _PERIODS_ALONE):
            date = names[int(match[1])] if match[1] else ""
            rest = text[: match.start()] + " " + text[match.end() :]
            return rest, letter, date
    return text, "", ""


_PERIODS_ALONE = {
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "months",
    "quarter",
    "quarters",
    "year",
    "years",
}


def _by(
    text: str, names: tuple[str, ...], *, is_ranked: bool
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Find ``by REGION and PRODUCT``; for a ranking, ``by`` names what is ranked by."""
    words = r"per|for each|for every|in each|across|grouped by|broken down by|split by|each|every"
    words = words if is_ranked else f"by|{words}"
    match = re.search(rf"\b(?:{words})\s+(?:the\s+)?({_LIST})", text, re.I)
    if match:
        by = tuple(names[int(n)] for n in re.findall(MARK, match[1]))
        return text[: match.start()] + " " + text[match.end() :], by, ()
    loose = re.search(rf"\b(?:{words})\s+(?:the\s+)?([^\W\d_][\w-]*)", text, re.I)
    if loose and loose[1].lower() not in GRAMMAR_WORDS:
        return text[: loose.start()] + " " + text[loose.end() :], (), (loose[1],)
    return text, (), ()


def _functions(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find functions, and words after them that should be columns and are none."""
    places = {}
    unknown = []
    for name, words in _FUNCTIONS.items():
        match = re.search(rf"\b(?:{words})\b", text, re.I)
        if match:
            places[name] = match.start()
            rest = re.match(
                r"\s+(?:of\s+|value of\s+|values of\s+)?(?:the\s+|all\s+|each\s+)*([^\W\d_][\w-]*)",
                text[match.end() :],
            )
            word = rest[1] if rest else ""
            is_of = bool(rest and re.match(r"\s+(?:value\s+|values\s+)?of\b", rest[0]))
            if word and (is_of or word.lower() not in GRAMMAR_WORDS) and _is_noun(word):
                unknown.append(word)
    if "nunique" in places:
        places.pop("count", None)
    return tuple(sorted(places, key=lambda name: places[name])), tuple(unknown)


def _is_noun(word: str) -> bool:
    return word.lower() not in {
        "and", "or", "for", "from", "per", "by", "in", "the", "where", "with", "of", "rows", "row", "records",
        "it", "as", "is", "are", "values", "value", "data", "file", "column", "columns", "entries", "orders",
        "on", "to", "over", "then", "please", "each", "every", "chart", "plot", "mean", "median", "sum",
        "min", "max", "minimum", "maximum", "average", "std", "total",
    }  # fmt: skip


def merge(previous: Request, new: Request) -> Request:
    """Return the previous request changed by what a follow-up says."""
    return replace(
        previous,
        kind="aggregate"
        if new.functions or (new.by and previous.kind not in {"plot", "top"})
        else previous.kind,
        columns=new.columns or previous.columns,
        functions=new.functions or previous.functions,
        by=new.by
        or (
            (previous.by[:1] if new.period and previous.period else ())
            if new.period
            else previous.by
        ),
        period=new.period if new.by or new.period else previous.period,
        filters=(*previous.filters, *new.filters),
        n=new.n or previous.n,
        chart=new.chart or previous.chart,
        unknown=new.unknown,
        text=new.text,
    )


FOLLOW_UP = re.compile(
    r"^\W*(?:and|now|same|also|only|just|instead|then|what about|how about|ok|but)\b|\b(?:it|that|this|them|the same|instead)\b",
    re.I,
)
