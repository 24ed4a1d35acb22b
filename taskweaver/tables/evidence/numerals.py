"""Evidence for the form of numbers in a column of texts: separators, currencies, percent signs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MARKERS = frozenset(
    "- -- --- \u2013 \u2014 ? ?? . .. ... n/a na nan null none nil missing unknown #n/a".split()
)
"""Texts that stand for a missing value where the rest of the column is numeric; lower case."""
TextCounts = Sequence[tuple[str, int]]
"""Distinct texts of a column, and how often each occurs."""
BLANKS = "\u00a0\u202f\u2009 "
_CURRENCIES = "$€£¥₹₩₽¢"
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|kr"
_AFFIX = rf"(?:[{_CURRENCIES}%]|(?:{_CODES})(?![A-Za-z]))"
_FORM = re.compile(
    rf"\s*(?P<open>\()?(?P<sign>[-+\u2212])?\s*(?P<before>{_AFFIX})?\s*(?P<sign2>[-+\u2212])?"
    rf"(?P<body>[0-9][0-9.,'\u2019{BLANKS}]*?|\.[0-9]+)(?P<power>[eE][-+]?[0-9]+)?"
    rf"\s*(?P<after>{_AFFIX})?(?P<close>\))?\s*"
)
_GROUPS = re.compile(
    rf"\d{{1,3}}(?:(?P<mark>[.,'\u2019{BLANKS}])\d{{3}})(?:(?P=mark)\d{{3}})*"
    r"|\d{1,2},(?:\d{2},)+\d{3}"
)
"""Digits in groups of three, or as in India: ``1,23,456``."""


def is_marker(text: str) -> bool:
    """Return whether a text may stand for a missing value."""
    return text.strip().casefold() in MARKERS


def total_of(texts: TextCounts) -> int:
    """Return how often some texts occur together."""
    return sum(count for _, count in texts)


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number as it is written.

    Attributes:
        decimal: Its decimal separator; empty without one.
        thousands: Its thousands separator; empty without one.
        is_unclear: Whether the one separator in it, which is then in `thousands`, may be a
            decimal separator as well: ``1,234``.
        unit: Currency or percent sign; empty without one.
        is_accounting: Whether it is negative by parentheses or the sign U+2212.
    """

    decimal: str = ""
    thousands: str = ""
    is_unclear: bool = False
    unit: str = ""
    is_accounting: bool = False


def numeral(text: str) -> Numeral | None:
    """Return the form of a text that is a number; None for another text."""
    found = _FORM.fullmatch(text)
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    if (found["before"] and found["after"]) or (found["sign"] and found["sign2"]):
        return None
    unit = found["before"] or found["after"] or ""
    is_accounting = bool(found["open"]) or "\u2212" in text
    separators = _separators(found["body"])
    if separators is None:
        return None
    return Numeral(*separators, unit, is_accounting)


def _separators(body: str) -> tuple[str, str, bool] | None:
    """Return decimal and thousands separator of digits, and whether they are unclear."""
    marks = [char for char in body if not char.isdigit()]
    if not marks:
        return "", "", False
    last = marks[-1]
    whole, _, fraction = body.rpartition(last)
    is_fraction = body.startswith("0") and last in ".,"
    if len(set(marks)) == 1 and not is_fraction and (groups := _GROUPS.fullmatch(body)):
        is_unclear = len(marks) == 1 and last in ".,"
        return "", last, is_unclear
    if last not in ".," or marks.count(last) > 1 or not fraction.isdigit():
        return None
    if len(marks) == 1:
        return (last, "", False) if whole.isdigit() or not whole else None
    groups = _GROUPS.fullmatch(whole)
    return (last, marks[0], False) if groups and marks[0] != last else None


@dataclass(frozen=True, slots=True)
class NumberForm:
    """Form of the numbers of a column.

    Attributes:
        thousands: Thousands separators that occur.
        units: Currencies and percent signs that occur.
        has_accounting: Whether some are negative by parentheses or U+2212.
        is_guess: Whether no value shows which separator is decimal.
        markers: Texts taken for missing values.
        others: Texts that are no numbers of this form.
    """

    decimal: str
    thousands: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    has_accounting: bool = False
    is_guess: bool = False
    markers: TextCounts = ()
    others: TextCounts = ()
    total: int = 0

    @property
    def share(self) -> float:
        """Share of numbers among the texts that are no marker."""
        present = self.total - total_of(self.markers)
        return (present - total_of(self.others)) / present if present else 0.0

    @property
    def remove(self) -> tuple[str, ...]:
        """Texts to remove before the decimal separator is replaced."""
        marks = tuple(mark for mark in self.thousands if mark not in BLANKS)
        has_blanks = bool(self.units) or len(marks) < len(self.thousands)
        return (*self.units, *marks, *([" "] if has_blanks else ()))


def number_form(texts: TextCounts, likely_decimal: str = "") -> NumberForm:
    """Return the form that reads most of a column's texts.

    `likely_decimal` is the decimal separator of other columns of the file; empty for unknown.
    """
    forms: list[tuple[str, int, Numeral]] = []
    markers: Counter[str] = Counter()
    others: Counter[str] = Counter()
    total = 0
    for text, count in texts:
        total += count
        if is_marker(text) or not text.strip():
            markers[text] += count
        elif (found := numeral(text)) is not None:
            forms.append((text, count, found))
        else:
            others[text] += count
    decimal, is_guess = _decimal([(count, form) for _, count, form in forms], likely_decimal)
    kept = []
    for text, count, form in forms:
        if fits(form, decimal):
            kept.append(form)
        else:
            others[text] += count
    thousands = sorted({form.thousands for form in kept if form.thousands not in {"", decimal}})
    return NumberForm(
        decimal,
        tuple(thousands),
        tuple(sorted({form.unit for form in kept if form.unit})),
        any(form.is_accounting for form in kept),
        is_guess,
        tuple(markers.most_common()),
        tuple(others.most_common()),
        total,
    )


def fits(form: Numeral, decimal: str) -> bool:
    """Return whether a number can be read with a decimal separator."""
    if form.decimal:
        return form.decimal == decimal
    return form.thousands != decimal or form.is_unclear


def _decimal(forms: Sequence[tuple[int, Numeral]], likely: str) -> tuple[str, bool]:
    """Return the decimal separator of a column, and whether it is a guess."""
    votes: Counter[str] = Counter()
    for count, form in forms:
        if form.decimal:
            votes[form.decimal] += count
        elif form.thousands in {".", ","} and not form.is_unclear:
            votes["," if form.thousands == "." else "."] += count
    if votes:
        return votes.most_common(1)[0][0], False
    is_unclear = any(form.is_unclear for _, form in forms)
    return likely or ".", is_unclear and not likely
