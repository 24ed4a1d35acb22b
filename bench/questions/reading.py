"""Numbers, names, days and tables, read from the text of an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pandas as pd

_NUMBER = re.compile(
    r"(?<![\w.,])[-\u2212+]?[$€£]?\d[\d,_]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?=[^\w]|$|[kKMB%](?!\w))"
)
_FENCE = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_NO_DATA = re.compile(r"^\s*(Name: |dtype: |Length: |\[\d+ rows|\|?[\s:|+-]+\|?$|$)")


@dataclass(frozen=True)
class Number:
    """A number as it is written.

    Attributes:
        value: Its value.
        decimals: Digits after the point.
        digits: Significant digits.
    """

    value: float
    decimals: int
    digits: int

    def is_close(self, wanted: float, tolerance: float) -> bool:
        """Return whether it is the wanted number, up to the tolerance or its own rounding."""
        if self.value == wanted:
            return True
        if float(wanted).is_integer() and self.decimals == 0 and abs(wanted) < 10**6:
            return False  # a count is right or wrong
        difference = abs(self.value - wanted)
        rounding = 0.5000001 * 10.0**-self.decimals
        is_rounded = (self.digits >= 3 or self.decimals >= 2) and difference <= rounding
        return is_rounded or difference <= tolerance * abs(wanted)


def _number(text: str) -> Number:
    plain = text.replace("\N{MINUS SIGN}", "-").translate(str.maketrans("", "", ",_$€£+"))
    mantissa = re.split("[eE]", plain)[0]
    decimals = len(mantissa.partition(".")[2]) if "e" not in plain.lower() else 0
    digits = len(mantissa.lstrip("-").replace(".", "").lstrip("0"))
    return Number(float(plain), decimals, digits)


def numbers(text: str) -> list[Number]:
    """Return the numbers of a text, in order."""
    return [_number(match.group()) for match in _NUMBER.finditer(text)]


def results(text: str) -> str:
    """Return the parts of an answer that hold results: fenced blocks and rows of tables."""
    fenced = "\n".join(_FENCE.findall(text))
    rows = [line for line in _FENCE.sub("", text).splitlines() if line.strip().startswith("|")]
    return "\n".join([fenced, *rows]).strip("\n")


def prose(text: str) -> str:
    """Return an answer without its results."""
    lines = _FENCE.sub("\n", text).splitlines()
    return "\n".join(line for line in lines if not line.strip().startswith("|"))


def lines(text: str) -> list[str]:
    """Return the lines of the results that hold data or headings."""
    return [line for line in results(text).splitlines() if not _NO_DATA.match(line)]


def data_lines(text: str) -> list[str]:
    """Return the lines of the results that hold a number besides the number of the row."""
    return [line for line in lines(text) if numbers(line)]


def listed(text: str) -> list[str]:
    """Return the lines of the prose that hold a number, as a list of values does."""
    return [line for line in prose(text).splitlines() if numbers(line)]


def spellings(day: pd.Timestamp) -> list[str]:
    """Return the ways a day, or the period that begins on it, is written."""
    forms = ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y", "%b %d, %Y", "%b %d %Y"]
    forms += ["%d/%m/%Y", "%d %b %Y", "%A, %d %B %Y"]
    plain = [day.strftime(form) for form in forms]
    return plain + [re.sub(r"(^| )0(\d)", r"\1\2", text) for text in plain]


def keys(part: object) -> list[str]:
    """Return the ways a key of a table is written."""
    if isinstance(part, pd.Timestamp):
        forms = ["%Y-%m", "%b %Y", "%B %Y"] if part.day == 1 else []
        if part.day == 1 and part.month == 1:
            forms.append("%Y")
        quarter = f"{part.year}Q{part.quarter} {part.year}-Q{part.quarter} Q{part.quarter}".split()
        whole = [part.strftime(form) for form in forms] + (quarter if part.month % 3 == 1 else [])
        return spellings(part) + whole
    if isinstance(part, float) and part.is_integer():
        return [str(int(part)), str(part)]
    return [str(part)]


def has_word(text: str, word: str) -> bool:
    """Return whether a word or phrase stands in a text, in any case."""
    return position(text, word) >= 0


def position(text: str, word: str) -> int:
    """Return where a word or phrase begins in a text, in any case; -1 if nowhere."""
    found = _pattern(word).search(text)
    return found.start() if found else -1


@cache
def _pattern(word: str) -> re.Pattern[str]:
    """Return what finds a word: there are more than `re` keeps, and compiling them takes long."""
    return re.compile(rf"(?<![\w]){re.escape(word)}(?![\w])", re.IGNORECASE)
