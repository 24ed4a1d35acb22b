"""What was asked: a closed grammar over text in which the columns are marked."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from taskweaver.llm.offline.columns import GRAMMAR_WORDS, MARK, Marked, mark
from taskweaver.llm.offline.conditions import Filter, take_filters

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
    rf"`([^`\n]+\.(?:{_EXTENSIONS})(?:#[^`\n]+)?)`"
    rf"|\"([^\"\n]+\.(?:{_EXTENSIONS})(?:#[^\"\n]+)?)\""
    rf"|(?<!\w)'([^'\n]+\.(?:{_EXTENSIONS})(?:#[^'\n]+)?)'"
    rf"|([^\s`\"(),;:]+\.(?:{_EXTENSIONS})(?:#\w+)?)\b",
    re.I,
)
_ADDED = re.compile(r"^files (?:added|changed)[^:\n]*: (.+)\.$", re.MULTILINE)
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
    words = _ADDED.sub("", text)
    spoken = [name for name in (added[1].split(", ") if added else ()) if name in words]
    if spoken:
        return spoken[0]
    match = _FILE.search(words)
    if match:
        return next(group for group in match.groups() if group)
    return added[1].split(", ")[0] if added else ""


def names_file(name: str) -> str:
    """Return a pattern that finds a file's name where it is not the end of a longer one."""
    return rf"(?<!\w)(?<!\w')(?<!\w[.-]){re.escape(name)}(?!\w)"


def parse(text: str, columns: tuple[str, ...] = (), files: tuple[str, ...] = ()) -> Request:
    """Read a request.

    Args:
        text: The words of the user, or a task with its columns in back quotes.
        columns: Columns of the file, where they are known.
        files: Files that are known; words of their names are no columns.
    """
    special = _special(text)
    if special is not None:
        return special
    file = file_in(text)
    words = _ADDED.sub("", text)
    for name in sorted({file, *files} - {""}, key=len, reverse=True):
        words = re.sub(rf"([`'\"]?){names_file(name)}\1", " ", words)
    bare = _FILE.sub(" ", words).strip()
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
    if code and not re.search(r"\bsql\b", bare[: code.start(1)], re.I):
        return Request("code", file_in(bare), text=code[1].strip())
    sql = re.search(r"\b((?:select|with)\b.+?\bfrom\b.+)", bare, re.DOTALL | re.I)
    if sql and (
        re.search(r"\bsql\b|\bquery\b", bare, re.I) or bare.lower().startswith(("select", "with"))
    ):
        return Request(
            "sql", file_in(bare[: sql.start()]) or file_in(bare), text=sql[1].strip("`\n ;")
        )
    number = re.fullmatch(
        r"(?:what(?:'s| is)|calculate|compute|how much is|evaluate)?"
        r"\s*([-\d.\s()+*/%^]*\d[-\d.\s()+*/%^]*)[?=.]?",
        bare,
        re.I,
    )
    if number and re.search(r"\d\s*[-+*/%^]+\s*[\d(-]", number[1]):
        return Request("arithmetic", text=number[1].strip().replace("^", "**"))
    return None


def _read(marked: Marked) -> Request:
    """Read each part of a request, taking away what was understood."""
    text, names = f" {marked.text} ", marked.names
    text, filters = take_filters(text, names)
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
    number = re.search(r"\b(\d+)\b", text)
    n = int(number[1]) if number else 0
    special = _relating(text, base) or _ranking(text, base, ranked, n) or _counting(text, base)
    if special is not None:
        return special
    if base.functions and (base.columns or base.by or base.period or base.unknown):
        return replace(base, kind="aggregate")
    if base.chart:
        return replace(base, kind="plot")
    return _looking(text, base, n)


def _says(text: str, words: str) -> bool:
    return re.search(rf"\b(?:{words})", text, re.I) is not None


def _relating(text: str, base: Request) -> Request | None:
    if _says(text, r"outliers?|anomal(?:y|ies|ous)|unusual"):
        return replace(base, kind="outliers", functions=())
    if _says(text, r"correlat"):
        return replace(base, kind="correlate", functions=())
    if _says(text, r"missing|null|nan\b|empty (?:values|cells)|gaps"):
        return replace(base, kind="missing", columns=(), functions=(), unknown=())
    return None


def _ranking(text: str, base: Request, ranked: re.Match[str] | None, n: int) -> Request | None:
    is_numbered = r"top|bottom|(?:largest|smallest|highest|lowest|best|worst)\s+\d+"
    if ranked and (_says(text, is_numbered) or (base.by and not base.functions)):
        ascending = ranked[1].lower() in {"bottom", "smallest", "lowest", "worst"}
        functions = tuple(f for f in base.functions if f not in {"min", "max"})
        return replace(base, kind="top", n=n or 5, is_ascending=ascending, functions=functions)
    if _says(text, r"sort(?:ed)?|order(?:ed)? by|rank") and base.columns + base.by:
        columns = base.columns or base.by
        ascending = not _says(text, "desc|largest|highest")
        base = replace(base, columns=columns, by=(), unknown=(), is_ascending=ascending)
        return replace(base, kind="top", n=n or 20)
    return None


def _counting(text: str, base: Request) -> Request | None:
    if base.by or base.period:
        return None
    if _says(text, r"distinct|unique|different"):
        return replace(base, kind="distinct", functions=())
    rows = r"(?:rows|records|lines|entries)"
    if _says(text, rf"how many {rows}|number of {rows}|count (?:the |all )?{rows}|row count"):
        kind: Kind = "filter" if base.filters else "rows"
        return replace(base, kind=kind, functions=("count",), unknown=())
    return None


def _looking(text: str, base: Request, n: int) -> Request:
    """Recognise the requests that only look at a file."""
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
    if _says(text, r"(?:list|which|what) (?:the |all |my )?files"):
        return replace(base, kind="files")
    for kind, words in looks:
        if _says(text, words):
            return replace(base, kind=kind, n=n, functions=(), unknown=())
    if base.period or base.by:
        return replace(base, kind="aggregate")
    return base


def _period(text: str, names: tuple[str, ...]) -> tuple[str, str, str]:
    """Find ``per month [of DATE]``; return the rest, the period and the date column."""
    for letter, words in _PERIODS.items():
        before = r"\b(?:by|per|each|every|for each|in each|grouped by|over the|,|and)\s+(?:the\s+)?"
        after = rf"\s+(?:of|in|from)\s+(?:the\s+)?{MARK}"
        pattern = rf"(?:{before})?\b(?:{words})\b(?:{after})?"
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


_NO_NOUNS = frozenset(
    """
    and or for from per by in the where with of rows row records it as is are values value data file
    column columns entries orders on to over then please each every chart plot mean median sum min
    max minimum maximum average std total
    """.split()
)


def _is_noun(word: str) -> bool:
    return word.lower() not in _NO_NOUNS


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
    r"^\W*(?:and|now|same|also|only|just|instead|then|what about|how about|ok|but)\b"
    r"|\b(?:it|that|this|them|the same|instead)\b",
    re.I,
)
"""How words begin, or what they point to, that go on from the request before."""
