"""Conditions in a text: ``where Region is North``, ``Count > 10``, ``in 2024``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from taskweaver.llm.offline.columns import MARK

_NUMBER = r"(?=\s*['\"\d$€+-])"  # "over 50", but "over time"
_OPERATORS = {
    ">=": r">=|at least|no less than",
    "<=": r"<=|at most|no more than",
    "!=": r"!=|<>|is not|isn't|not equal to",
    ">": rf">|(?:greater than|more than|larger than|higher than|over|above|exceeds|after){_NUMBER}",
    "<": rf"<|(?:less than|smaller than|lower than|under|below|before){_NUMBER}",
    "==": r"==?|equals|equal to|is|are",
}
_STOP = r"(?:and|or|per|by|in|for|as|then)\b"
_VALUE = (
    r"('[^']*'|\"[^\"]*\"|[-+]?\d[\d.,:-]*\w*"
    rf"|[^\s,.;?!⟦]+(?:\s(?!{_STOP})[^\s,.;?!⟦]+)*)"
)


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


def take_filters(text: str, names: tuple[str, ...]) -> tuple[str, tuple[Filter, ...]]:
    """Find conditions; return the rest of the text, and the conditions."""
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
