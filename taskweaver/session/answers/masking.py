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
_ONLY_NUMBER = re.compile(
    r"(?:[\w .]{1,40}[=:≈])?[\s$€£¥₹<>≤≥~≈+\-−]*"  # noqa: RUF001
    r"\d[\d.,'_\s]*(?:[eE][+-]?\d+)?\s*(?P<rest>.*)"
)
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_LABELS = (
    "step|section|table|figure|fig|chapter|question|option|note|part|version|release|round|cell"
    "|item|no|nr|number|point|rule|example|appendix|equation|eq|python|pandas|numpy|page"
)
_PATTERNS = (
    r"https?://\S{1,2000}",
    r"<[a-z/!][^<>\n]{0,500}>",
    # Numbers of lists and headings, and what a heading or label counts.
    r"^[ \t]*(?:>[ \t]*)?(?:[-*+][ \t]+)?(?:\*\*)?\(?\d{1,3}(?:[.)]|\.\*\*)(?=[ \t*]|$)",
    r"^#{1,6}[ \t]+(?:\*\*)?\d{1,3}(?:\.\d{1,3}){0,4}[.):]?(?=\s)",
    rf"\b(?:{_LABELS})\.?[ \t]*#?\d{{1,4}}(?:\.\d{{1,4}}){{0,3}}\b(?!%)",
    r"#\d{1,6}\b",
    # Paths, file names and identifiers.
    r"(?<![\w.])[\w~.-]{0,100}/[\w./~-]{0,200}[A-Za-z_][\w./~-]{0,100}",
    r"\b\w[\w-]{0,100}\.[A-Za-z]\w{1,5}\b",
    r"\b[\w-]{0,80}_[\w-]{0,80}\b",
    r"\b(?=[\da-f]{0,40}[a-f])(?=[a-f]{0,40}\d)[\da-f]{8,64}\b",
    # Dates, times, versions, addresses.
    r"\b\d{4}-\d{1,2}(?:-\d{1,2})?(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?Z?\b",
    r"\b\d{1,4}(?:/\d{1,2}/|\.\d{1,2}\.)\d{2,4}\b",
    r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:[ \t]?[ap]\.?m\b)?",
    r"\b\d{1,2}[ \t]?[ap]\.?m\b\.?",
    r"\b(?!\d{1,3}(?:\.\d{3})+(?!\.?\d))\d{1,4}(?:\.\d{1,4}){2,3}\b",
    r"\b\d{6,20}-\d{4,20}(?:-\w{1,40})?\b",
    r"\b[1-4]D\b",
    r"\b[A-Za-z]{1,40}-\d{1,6}\b(?![.,%]?\d|%)",
    r"\^\d+\b|\b24/7\b",
    r"\b(?:50/50|60/40|70/30|75/25|80/20|85/15|90/10|95/5)\b",
    r"\d{1,4}[年月日号时分]",
    r"(?<![\d./])\d/\d{1,2}\b(?![/\d.])",
    rf"\b(?:{_MONTHS})\.?[ \t-]{{1,2}}\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[ \t]+\d{{4}}\b)?(?![.,]\d)",
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?\.?[ \t-](?:of[ \t])?(?:{_MONTHS})\b(?:,?[ \t]+\d{{4}}\b)?",
    r"\b(?:[QHW]|CW|FY|KW)[ \t]?\d{1,4}(?:[ \t/-]+(?:FY)?\d{4})?\b",
    r"\b(?:19|20)\d{2}(?:/\d{2}|s|er)\b",
    r"\b\d{1,6}(?:st|nd|rd|th)\b",
    # Descriptions: a 12-month mean, a 95 % interval, p < 0.05.
    r"\b\d{1,3}-(?=[A-Za-z])(?!(?:to|and)\b)[A-Za-z]+",
    r"\b\d{2}(?:\.\d)?[ ]?(?:%|percent)[ -](?:confidence|ci\b|credible|prediction|significance"
    r"|level)",
    r"\b(?:[Pp](?:-?value)?s?|α|alpha)\s{0,2}(?:is\s)?(?:<|≤|<=|less than|below|=|>)\s{0,2}"  # noqa: RUF001
    r"0?\.(?:1|05|01|005|001|0001)\b(?!\d)",
    r"\b100\s?%",
    r"\b(?:top|first|last|bottom|next|previous)[ -]\d{1,3}\b(?!%)",
)
_NO_FIGURE = tuple(re.compile(pattern, re.MULTILINE | re.IGNORECASE) for pattern in _PATTERNS)


def without_non_figures(text: str) -> str:
    """Return a text of the same length in which digits that are no figures are blanks."""
    text = _FENCE.sub(_blank, text)
    text = _SPAN.sub(_blank_span, text)
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
