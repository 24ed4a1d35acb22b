"""Parts of an answer whose digits are no figures: code, addresses, file names, dates, labels.

They are replaced by blanks of the same length, so that offsets stay. Each pattern is linear.
"""

from __future__ import annotations

import re

from taskweaver.session.answers.units import SUFFIX

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
