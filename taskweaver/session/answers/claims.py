"""Numbers of an answer that are figures, and so have to stand in an outcome.

Parts whose digits are no figures (code, addresses, file names, dates, labels) are replaced by
blanks of the same length, so that offsets stay. Each pattern is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from taskweaver.session.answers.numbers import Number, Reading, numbers_in
from taskweaver.session.answers.units import (
    LETTER,
    PERCENT,
    SUFFIX,
    scale_of_heading,
    scale_of_remark,
    scales,
)

_PROGRAMS = "python|py|sql|bash|sh|shell|r|toml|javascript|js|ts|html|xml|diff|console"
_FENCE = re.compile(
    rf"^(?P<fence>`{{3,}}|~{{3,}})[ \t]*(?:{_PROGRAMS})\b[^\n]*\n.*?(?:^(?P=fence)|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_SPAN = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_ESCAPE = re.compile(r"\\(?=[%$])")
_ONLY_NUMBER = re.compile(
    r"(?:[\w .]{1,40}[=:≈])?[\s$€£¥₹<>≤≥~≈+\-−]*"  # noqa: RUF001
    r"\d[\d.,'_\s]*(?:[eE][+-]?\d+)?\s*(?P<rest>.*)"
)
_MONTHS = (
    "jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch|s)?|märz|apr(?:il)?|ma[yi]|jun[ei]?|jul[yi]?"
    "|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
    "|janvier|février|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
    "|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_LABELS = (
    "step|section|table|figure|fig|chapter|question|option|note|part|version|release|round|cell"
    "|item|no|nr|number|point|rule|example|appendix|equation|eq|python|pandas|numpy|page|iso|http"
)
_NAMES = (
    "Highway|Interstate|Autobahn|Route|Room|Flight|Gate|Model|Boeing|Airbus|Peugeot|Windows|Office"
    "|S&P|Fortune|Formula|Agenda|Chapter|Area"
)
_THRESHOLD = r"0?\.(?:05|01|005|001|0001)(?![.,]?\d|[ ]?%)"
_LEVEL = rf"(?:{_THRESHOLD}|0?\.1\b|(?:0\.1|1|5|10)[ ]?%)"
_SURE = r"(?:80|9\d)(?:\.\d)?[ ]?(?:%|percent)"
_WINDOWS = "top|first|last|bottom|next|previous|past|final|trailing|rolling"
_PATTERNS = (
    r"https?://\S{1,2000}",
    r"<[a-z/!][^<>\n]{0,500}>",
    # Numbers of lists and headings, and what a heading or label counts.
    r"^[ \t]*(?:>[ \t]*)?(?:[-*+][ \t]+)?(?:\*\*)?\(?\d{1,3}(?:[.)]|\.\*\*)(?=[ \t*]|$)",
    r"^#{1,6}[ \t]+(?:\*\*)?\d{1,3}(?:\.\d{1,3}){0,4}[.):]?(?=\s)",
    rf"\b(?:{_LABELS})\.?[ \t]*#?\d{{1,4}}(?:\.\d{{1,4}}){{0,3}}\b(?![.,]?\d|%)",
    r"#\d{1,6}\b",
    r"\[\d{1,2}\](?!\()",  # of a reference
    # Paths, file names and identifiers.
    r"(?<![\w.])[\w~.-]{0,100}/[\w./~-]{0,200}[A-Za-z_][\w./~-]{0,100}",
    r"\b\w[\w-]{0,100}\.[A-Za-z]\w{1,5}\b",
    r"(?<!\w)_{1,2}(?=[\d$€£+-])|(?<=[\d%])_{1,2}(?!\w)",  # signs of emphasis
    r"\b(?=[\w-]{0,80}[^\W\d_])[\w-]{0,80}_[\w-]{0,80}\b",
    r"\b(?=[\da-f]{0,40}[a-f])(?=[a-f]{0,40}\d)[\da-f]{8,64}\b",
    # Telephone numbers, identifiers and parts of them, names of roads, models and products.
    r"(?:\+\d{1,3}[ -](?:\(\d{1,4}\)[ ]?)?|\(\d{3}\)[ ]?)(?=[ \d()/-]{0,12}\d{3})"
    r"(?:\d[ ()/-]{0,2}){6,12}\d\b"
    r"|\b\d{3}-0\d{3}\b",
    r"\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b",
    r"\b(?:end(?:s|ing)?[ ](?:in|with)|digits[ ](?:are|is))[ ][\"'`]?[\da-f]{4}\b"
    r"(?![.,]?\d|[ ]?%)",
    rf"(?-i:\b(?:{_NAMES})[ ]\d{{1,4}}\b)(?![.,:]?\d|[ ]?%)",
    # Dates, times, versions, addresses.
    r"\b\d{1,3}(?:\.\d{1,3}){3}:\d{2,5}\b",
    r"\b\d{4}-\d{1,2}(?:-\d{1,2})?(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?Z?\b",
    r"\b\d{1,4}(?:/\d{1,2}/|\.\d{1,2}\.)\d{2,4}\b",
    r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?!\d)(?:[ \t]?[ap]\.?m\b)?",
    r"\b(?:utc|gmt)[+-]\d{1,2}\b",
    r"\b(?:vom|am|bis|zum|seit)[ ]\d{1,2}\.\d{1,2}\.(?!\d)",
    r"\b\d(?:\.|er|e|ème)[ ](?:quartal|halbjahr|trimestre|semestre)\b",
    r"(?<!\w)['’]\d{2}\b(?!['’]|[.,]?\d)",  # noqa: RUF001 - '24
    r"\b\d{1,2}[ \t]?[ap]\.?m\b\.?",
    r"\b(?!\d{1,3}(?:\.\d{3})+(?!\.?\d))\d{1,4}(?:\.\d{1,4}){2,3}\b",
    r"\b\d{6,20}-\d{4,20}(?:-\w{1,40})?\b",
    r"\b[1-4]D\b",
    r"\b[A-Za-z]{1,40}(?:-\d{1,6}){1,4}\b(?![.,%]?\d|%)",
    r"\^\d+\b|\b24/7\b",
    r"\b(?:50{m}50|60{m}40|70{m}30|75{m}25|80{m}20|85{m}15|90{m}10|95{m}5)\b%?".replace(
        "{m}", "[ ]?%?[ ]?[/-][ ]?"
    ),
    r"(?<![\d/.])(?:0[1-9]|1[0-2])/(?:19|20)\d{2}\b(?![/.]?\d)",
    r"\d{1,4}[年月日号时分]",
    r"(?<![\d./])\d/\d{1,2}\b(?![/\d.])",
    # Denominators, the ends of scales, and constants of the calendar.
    r"\bper[ ](?:10{1,2}|10{0,2}(?:[.,]?000){1,2})\b(?![.,]?\d)",
    r"(?:(?<=\d/)|(?<=\d[ ]/[ ])|(?<=\d[ ]out[ ]of[ ]))(?:5|10|100)\b(?![.,/]?\d)",
    r"(?:(?<=\d[ ]of[ ])|(?<=\d[ ]in[ ]))100\b(?![.,/]?\d)",
    r"(?:(?<=\d:)|(?<=\d[ ]:[ ])|(?<=\d[ ]to[ ]))1\b(?![.,:]?\d|[ ]?%)",
    r"\b(?:12[ ]months|52[ ]weeks|365[ ]days|24[ ]hours|60[ ](?:minutes|seconds))\b",
    # Dates in words, parts of years.
    rf"\b(?:{_MONTHS})\.?[ \t-]{{1,2}}\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[ \t]+\d{{4}}\b)?"
    r"(?![.,]\d|[ ]?%)",
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?\.?[ \t-](?:of[ \t])?(?:{_MONTHS})\b(?:,?[ \t]+\d{{4}}\b)?",
    r"\b(?:[QHW]|CW|FY|KW)[ \t]?\d{1,4}(?:[ \t/-]+(?:FY)?\d{4}|['’/]\d{2})?\b",  # noqa: RUF001
    r"\b(?:19|20)\d{2}(?:/\d{2}|s|er)\b",
    r"\b\d{1,6}(?:st|nd|rd|th)\b",
    # Descriptions: a 12-month mean, a 95 % interval, p < 0.05.
    r"\b\d{1,3}-(?=[A-Za-z])(?!(?:to|and)\b)[A-Za-z]+",
    r"\b\d{1,3}[ ](?:day|week|month|year|hour|minute)\b",
    rf"\b{_SURE}[ -](?:confidence|confident|ci\b|credible|prediction)",
    rf"\b(?:α|alpha|significance level|significance threshold)\s?(?:=|of|is|:)\s?{_LEVEL}",  # noqa: RUF001
    rf"(?<![\w.]){_LEVEL}[ -](?:significance|level|threshold)",
    rf"(?:<|>|≤|≥|<=|>=|\bthan|\bbelow|\babove)\s{{0,2}}(?:the\s)?{_THRESHOLD}",
    r"\b100\s?%",
    rf"\b(?:{_WINDOWS})[ -]\d{{1,3}}\b(?![.,]?\d|[ ]?%)",
)
_NO_FIGURE = tuple(re.compile(pattern, re.MULTILINE | re.IGNORECASE) for pattern in _PATTERNS)


def without_non_figures(text: str) -> str:
    """Return a text of the same length in which digits that are no figures are blanks."""
    text = _FENCE.sub(_blank, text)
    text = _SPAN.sub(_blank_span, text)
    text = _ESCAPE.sub(" ", text)
    for pattern in _NO_FIGURE:
        text = pattern.sub(_blank, text)
    return text


def _blank(match: re.Match[str]) -> str:
    return "".join(char if char in "\n|" else " " for char in match[0])


def _blank_span(match: re.Match[str]) -> str:
    """Keep a code span that is nothing but a number with its unit."""
    only = _ONLY_NUMBER.fullmatch(match[1])
    rest = only["rest"].strip() if only is not None else "-"
    is_number = not rest or SUFFIX.fullmatch(rest) is not None
    return f" {match[1]} " if is_number else _blank(match)


MAX_CHARS = 100_000
MAX_CLAIMS = 2_000

Direction = Literal["exact", "about", "over", "under"]
"""How the words before a number qualify it."""

_BEFORE_CHARS = 24
_SMALL = 10
_EXACT = 1 << 52
_YEARS = range(1900, 2101)
_ABOUT = (
    "about|around|roughly|approximately|approx\\.?|circa|ca\\.?|some|nearly|almost|~|≈|from|between"
    "|etwa|rund|ungefähr|von|zwischen"
)
_OVER = "just over|over|more than|above|at least|exceeds|exceeding|greater than|>=?|≥|über|mehr als"
_UNDER = "just under|under|less than|below|at most|up to|fewer than|<=?|≤|unter|knapp|weniger als"
_QUALIFIED = re.compile(
    r"(?:(?<![A-Za-z])|(?=[~≈<>≤≥]))"
    rf"(?:(?P<over>{_OVER})|(?P<under>{_UNDER})|(?P<about>{_ABOUT}))\s*[$€£¥₹(*]*\Z",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\s*(?:to|and|-|–|—|bis)\s*[$€£¥₹*]*", re.IGNORECASE)  # noqa: RUF001
_NEXT_WORD = re.compile(r"[\s*)]{0,3}(?P<word>[^\W\d_]+)")
_TIME_WORD = re.compile(
    r"(?:\b(?:in|since|until|till|through|during|before|after|year|years|fy|fiscal|vs\.?|versus|jan\w*|feb\w*|mar\w*|apr\w*|may|june?|july?|aug\w*|sep\w*"
    r"|oct\w*|nov\w*|dec\w*|spring|summer|autumn|winter|im|seit|jahr)|[-–—/,(])\s*\**\Z",  # noqa: RUF001
    re.IGNORECASE,
)
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-{2,}[-:|\s]*\Z")
_ALPHA_AROUND = re.compile(LETTER)
_HALF = 0.5
_OF_HUNDRED = re.compile(r"\s(?:out\s)?(?:of|in|von|sur)\s(?:every\s)?100\b(?![.,]?\d)")
_BARE_POINTS = {"point", "points"}
_POINTS = {"percentage point", "percentage points", "pp", "pps", *_BARE_POINTS}
_SHARE = re.compile(r"%|\bper ?cent")
_NEAR = 40


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure of an answer.

    Attributes:
        text: The figure as written, with sign, currency and unit.
        sign: -1 or 1 as written, 0 where there is no sign.
        readings: The values it can mean, the likeliest first.
        direction: How the words before it qualify it.
        parts: Claims that hold in its place if it is a list of numbers.
        unit: Its unit as written, or the word behind it.
        plain: The values of its digits alone.
    """

    text: str
    sign: int
    readings: tuple[Reading, ...]
    direction: Direction
    parts: tuple[Claim, ...] = ()
    unit: str = ""
    plain: tuple[Reading, ...] = ()

    @property
    def is_points(self) -> bool:
        """Whether it is a difference of percentages."""
        return self.unit.lower() in _POINTS

    def bounds(self, reading: Reading) -> tuple[float, float]:
        """Return the least and the greatest value that is shown as a reading."""
        value, step = reading.value, reading.step
        if isinstance(value, int) and value >= _EXACT:
            return value, value  # half a step would be lost in a binary fraction
        if self.direction == "over":
            return value, value + step
        if self.direction == "under":
            return value - step, value
        half = step * _HALF
        return value - half, value + half


def claims_in(answer: str) -> list[Claim]:
    """Return the figures of an answer, in order; of a very long one those of its beginning."""
    text = without_non_figures(answer[:MAX_CHARS])
    tables = _Tables(text)
    remark = scale_of_remark(text)
    claims: list[Claim] = []
    direction: Direction = "exact"
    is_second = False
    for number, following in pairwise([*numbers_in(text), None]):
        if number is None:
            break
        direction = direction if is_second else _direction(text, number)
        is_second = following is not None and _is_range(text, number, following)
        if _is_figure(text, number, tables):
            is_share = _OF_HUNDRED.match(answer, number.end) is not None
            factors = (PERCENT,) if is_share else tables.scale_at(number.start) or remark
            if is_second and following is not None:
                factors = factors or scales(following.unit)  # 10-15 %
            claims.append(_claim(text, number, direction, factors))
            if len(claims) >= MAX_CLAIMS:
                break
    return claims


def _is_range(text: str, first: Number, second: Number) -> bool:
    return _RANGE.fullmatch(text, first.end, second.start) is not None


def _claim(text: str, number: Number, direction: Direction, factors: Sequence[float]) -> Claim:
    readings = number.readings
    if not number.unit:
        readings += tuple(Reading(r.value * f, r.step * f) for r in readings for f in factors)
    if direction != "exact":
        readings = tuple(_rounded(text, number, reading) for reading in readings)
    start = _with_prefix(text, number)
    parts = tuple(_parts(text, number))
    shown = " ".join(text[start : number.end].split())
    word = _NEXT_WORD.match(text, number.end)
    unit = number.unit or (word["word"] if word is not None else "")
    if unit in _BARE_POINTS and not _SHARE.search(text, max(start - _NEAR, 0), number.end + _NEAR):
        unit = ""
    return Claim(shown, number.sign, readings, direction, parts, unit, number.plain)


def _parts(text: str, number: Number) -> Iterator[Claim]:
    for start, end in number.parts:
        for part in numbers_in(text[start:end]):
            yield Claim(text[start:end], 0, part.readings, "exact")


def _with_prefix(text: str, number: Number) -> int:
    """Return where a number begins with its currency, and with its sign if it has one."""
    start = number.start
    while start > 0 and text[start - 1] in ("$€£¥₹-−+" if number.sign else "$€£¥₹"):  # noqa: RUF001
        start -= 1
    return start


def _rounded(text: str, number: Number, reading: Reading) -> Reading:
    """Take the zeros at the end of a qualified integer for rounding: "about 9,000"."""
    is_whole = number.plain[0].step == 1 if number.unit else reading.step >= 1
    if not is_whole:
        return reading
    digits = re.sub(r"\D", "", text[number.start : number.digits_end])
    zeros = len(digits) - len(digits.rstrip("0"))
    return replace(reading, step=reading.step * 10.0**zeros) if zeros < len(digits) else reading


def _direction(text: str, number: Number) -> Direction:
    match = _QUALIFIED.search(text[max(number.start - _BEFORE_CHARS, 0) : number.start])
    if match is None:
        return "exact"
    return "over" if match["over"] else "under" if match["under"] else "about"


def _is_figure(text: str, number: Number, tables: _Tables) -> bool:
    before = text[number.start - 1] if number.start else " "
    after = text[number.end] if number.end < len(text) else " "
    if _ALPHA_AROUND.match(before) or _ALPHA_AROUND.match(after):
        return False
    if not number.is_integer or number.sign or before in "$€£¥₹":
        return True
    value = int(number.readings[0].value)
    word = _NEXT_WORD.match(text, number.end)
    follows = word["word"] if word is not None else ""
    if value <= _SMALL:
        return not follows and not tables.is_first_cell(number.start)
    if value in _YEARS:
        context = text[max(number.start - _BEFORE_CHARS, 0) : number.start]
        is_counted = follows.islower() and follows.endswith("s") and follows not in _NO_NOUNS
        return is_counted and _TIME_WORD.search(context) is None
    return not tables.is_numbering(number.start)


_NO_NOUNS = frozenset(
    {"is", "was", "has", "as", "this", "its", "sales", "results", "rises", "falls"}
)


class _Tables:
    """The Markdown tables of a text: headings that scale a column, first columns that count."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._scales: dict[int, list[tuple[float, ...]]] = {}
        if "|" not in text:
            return
        start, headings, header = 0, "", ""
        for line in text.splitlines(keepends=True):
            is_row = "|" in line
            if is_row and _TABLE_RULE.match(line.rstrip("\n")):
                headings = header
            elif not is_row:
                headings = ""
            if headings:
                cells = headings.strip().strip("|").split("|")
                self._scales[start] = [scale_of_heading(cell) for cell in cells]
            header = line
            start += len(line)

    def _cell(self, at: int) -> tuple[int, int] | None:
        """Return where the line of an offset begins, and the number of its cell."""
        start = self._text.rfind("\n", 0, at) + 1
        if start not in self._scales:
            return None
        line = self._text[start:at].lstrip()
        return start, line.removeprefix("|").count("|")

    def scale_at(self, at: int) -> tuple[float, ...]:
        """Return the factors the heading above an offset announces."""
        found = self._cell(at)
        if found is None:
            return ()
        start, cell = found
        scales = self._scales[start]
        return scales[cell] if cell < len(scales) else ()

    def is_first_cell(self, at: int) -> bool:
        """Return whether an offset lies in the first cell of a table's row."""
        found = self._cell(at)
        return found is not None and found[1] == 0

    def is_numbering(self, at: int) -> bool:
        """Return whether an offset lies in a first cell that holds a short integer alone."""
        if not self.is_first_cell(at):
            return False
        end = self._text.find("|", at)
        return self._text[at:end].strip().isdigit() and len(self._text[at:end].strip()) <= 3
