"""Rows of totals at the end of a table, which would count twice in every sum."""

from __future__ import annotations

import re
from typing import Any

_LABELS = frozenset(
    "total|totals|grand total|sum|sum total|overall|gesamt|gesamtsumme|insgesamt|summe|somme|"
    "total general|total général|suma|suma total|totale|totaal|итого|всего|合計|总计".split("|")
)
_FEWEST_ROWS = 3
_DIGIT = re.compile(r"\d")


def total_label(frame: Any) -> str:
    """Return the label of the last row if it holds totals; empty if it does not.

    The label is the first value of the row, occurs nowhere else in its column, and numbers stand
    behind it.
    """
    if len(frame) < _FEWEST_ROWS or not len(frame.columns):
        return ""
    last = frame.iloc[-1]
    places = [place for place, is_missing in enumerate(last.isna()) if not is_missing]
    if not places or not isinstance(last.iloc[places[0]], str):
        return ""
    label = last.iloc[places[0]].strip()
    has_numbers = any(_DIGIT.search(str(last.iloc[place])) for place in places[1:])
    if label.casefold().rstrip(":") not in _LABELS or not has_numbers:
        return ""
    is_single = (frame.iloc[:, places[0]] == last.iloc[places[0]]).sum() == 1
    return label if is_single else ""
