"""Numerals and words that are codes: texts that a conversion would merge, change or drop."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any

MISSING = frozenset(
    "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan"
    "|null|".split("|")
)
"""Texts that readers of pandas take for missing values."""
_CODES = (
    "sku|article|artikel|version|build|release|revision|chapter|section|clause|serial|barcode|code"
)
_NAMES_CODES = re.compile(
    rf"(?:.* )?(?:{_CODES}|id|key|no|nr)|.* (?:number|num)|.*(?:nummer|[a-z]nr)", re.IGNORECASE
)
_IS_MEASURE = re.compile(r"\b(?:per|price|cost|amount|mean|average)\b", re.IGNORECASE)
WHOLE = re.compile(r"[-+]?\d+")
"""Texts that are integers."""
_EXACT, _LARGEST = 2**53, 2**63
_POWER = re.compile(r"\d+[eE]\d+")
_CODE = re.compile(r"[A-Z][A-Z0-9]{0,4}")
_ANSWERS = {"YES", "NO", "TRUE", "FALSE"}
_MOST_LEVELS, _MOST_CHARS = 30, 60


def names_codes(column: str) -> bool:
    """Return whether a column's name marks its numerals as codes, for example article numbers."""
    words = re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", " ", column).strip()
    return _NAMES_CODES.fullmatch(words) is not None and not _IS_MEASURE.search(words)


def code_reason(column: str, numerals: Iterable[str]) -> tuple[str, str]:
    """Return why a column of plain numerals stays text, and which spellings of a number it merges.

    Numerals of a measure may differ in the zeros at their ends (``1.50``, ``1.5``). Those of a
    code may not, and none may differ in a power (``1E5``, ``100000``) or in its value.
    """
    texts = [numeral.strip() for numeral in numerals]
    as_number = int if all(map(WHOLE.fullmatch, texts)) else float
    is_code, merged = names_codes(column), ""
    found: dict[float, str] = {}
    for text in texts:
        number = as_number(text)
        if abs(number) >= _EXACT and not _is_exact(text, number):
            return f"{in_quotes(text)} has more digits than a number holds", ""
        if is_code and text != repr(number):
            return f"{in_quotes(text)} would become {number!r}", ""
        other = found.setdefault(number, text)
        if other != text and not math.isnan(number):
            pair = f"{in_quotes(other)} and {in_quotes(text)}"
            if _POWER.fullmatch(text) or _POWER.fullmatch(other) or Decimal(text) != Decimal(other):
                return f"{pair} would become one number", ""
            merged = merged or f"{pair} are one number"
    return "", merged


def _is_exact(text: str, number: float) -> bool:
    if isinstance(number, int):
        return -_LARGEST <= number < _LARGEST
    if math.isinf(number):
        return not text[-1:].isdigit()
    return not WHOLE.fullmatch(text) or int(number) == int(text)


def kept_words(
    codes: Collection[int], levels: Collection[int], words: Mapping[int, set[str]]
) -> list[str]:
    """Return the words for missing values that are values in the text columns of a file.

    ``NA`` is one beside other codes, and ``None`` beside other levels if missing values are written
    in another way. A word that stands for a missing value in any other column is none.

    Args:
        codes: Places of columns that lack values, and whose other values are codes.
        levels: Places of columns whose other values are levels.
        words: Words for missing values in all columns that have any.
    """
    kept = []
    for word, likely in (("NA", codes), ("None", levels)):
        holders = [place for place, found in words.items() if word in found]
        has_other = any(found - {word} for found in words.values())
        if holders and all(place in likely for place in holders) and (word == "NA" or has_other):
            kept.append(word)
    return kept


def are_codes(values: Collection[Any]) -> bool:
    """Return whether distinct values are codes in capital letters, such as `DE` and `FR`."""
    is_of_codes = all(_CODE.fullmatch(str(value)) for value in values)
    return is_of_codes and sum(len(str(value)) > 1 for value in {*values} - _ANSWERS) > 1


def are_levels(values: Collection[Any]) -> bool:
    """Return whether distinct values are a few words that begin with a capital letter."""
    return 1 < len(values) <= _MOST_LEVELS and all(str(value)[:1].isupper() for value in values)


def in_quotes(text: str) -> str:
    """Return a value of the file in a line, in quotes."""
    return repr(text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}...")
