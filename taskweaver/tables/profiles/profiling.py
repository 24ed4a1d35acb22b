"""Profiles of tables: kinds, ranges and values of columns, and the matches of a request's words."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from taskweaver.tables.files.profile import ColumnProfile, Kind, TableId, TableProfile
from taskweaver.tables.profiles.matching import ValueFinder
from taskweaver.tables.profiles.profile_text import profile_text
from taskweaver.utils.text import folded

MOST_VALUES = 30
_LONGEST_VALUE = 80
_MOST_DISTINCT, _SPELLINGS_CHARS = 20_000, 1_500


@dataclass(frozen=True, slots=True, repr=False)
class FileProfile:
    """Profiles of the tables of a file; prints as lines that a program reads back.

    Attributes:
        find: The request whose words were looked up.
        matches_only: Whether the columns are not printed.
    """

    tables: tuple[TableProfile, ...]
    find: str
    matches_only: bool = False

    def __repr__(self) -> str:
        return profile_text(self.tables, self.find, matches_only=self.matches_only)


def profiled(frame: Any, file: str, part: str, find: str) -> TableProfile:
    """Return the profile of a table; the words of a request are looked up in text columns."""
    finder = ValueFinder(find)
    columns = tuple(_column(str(name), frame[name], finder) for name in frame.columns)
    return TableProfile(TableId(file, part), len(frame), columns, finder.found)


def _column(name: str, series: Any, finder: ValueFinder) -> ColumnProfile:
    kind = kind_of(series)
    present = series.dropna()
    missing = len(series) - len(present)
    if kind in {"text", "flag"}:
        spellings = spellings_of(present)
        try:
            distinct = list(map(str, present.replace(spellings).unique().tolist()))
        except TypeError:  # lists and dictionaries
            distinct = [str(value) for value in present.astype(str).unique()]
        if kind == "text":
            finder.look(name, distinct)
        is_short = len(distinct) <= MOST_VALUES and all(len(v) <= _LONGEST_VALUE for v in distinct)
        values = tuple(sorted(distinct)) if is_short else None
        return ColumnProfile(name, kind, len(distinct), missing, "", "", values, spellings)
    low, high = (_text(present.min()), _text(present.max())) if len(present) else ("", "")
    if kind == "time" and low.endswith("T00:00:00") and high.endswith("T00:00:00"):
        low, high = low[:10], high[:10]
    if kind == "integer":
        low, high = low.removesuffix(".0"), high.removesuffix(".0")
    return ColumnProfile(name, kind, int(present.nunique()), missing, low, high)


def spellings_of(present: Any) -> dict[str, str]:
    """Map spellings of values to the most frequent one, where case, blanks or accents differ.

    A column with more of them than a profile has room for is left as it is.
    """
    try:
        counts = present.value_counts()
    except TypeError:  # lists and dictionaries
        return {}
    groups: dict[str, list[str]] = {}
    if len(counts) <= _MOST_DISTINCT:
        for value, _ in sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))):
            if isinstance(value, str) and value.strip():
                groups.setdefault(folded(value), []).append(value)
    is_key = 2 * len(counts) > len(present)
    found = {
        value: " ".join(group[0].split())
        for group in groups.values()
        if len(group) > 1 and _is_one(group, is_key=is_key)
        for value in group
        if value != " ".join(group[0].split())
    }
    return found if sum(map(len, [*found, *found.values()])) <= _SPELLINGS_CHARS else {}


def _is_one(spellings: Collection[str], *, is_key: bool) -> bool:
    """Return whether spellings are one value: in keys such as ``aB1`` and ``Ab1`` case has meaning.

    Of a column that repeats its values, one spelling may have capitals inside, as ``iPhone``.
    """
    plain = {" ".join(unicodedata.normalize("NFKC", text).split()) for text in spellings}
    odd = [
        text
        for text in plain
        if any(
            word not in {word.lower(), word.upper(), word.capitalize()}
            or (is_key and not word.isalpha())
            for word in re.findall(r"\w+", text)
        )
    ]
    return len(plain) == 1 or len(odd) <= (not is_key)


def kind_of(series: Any) -> Kind:
    """Return the kind of a column: number, integer, time, text or flag."""
    import pandas as pd

    types = pd.api.types
    if types.is_bool_dtype(series.dtype):
        return "flag"
    if types.is_datetime64_any_dtype(series.dtype):
        return "time"
    if types.is_integer_dtype(series.dtype):
        return "integer"
    if types.is_float_dtype(series.dtype):
        present = series.dropna()
        is_whole = len(present) < len(series) and len(present) and bool((present % 1 == 0).all())
        return "integer" if is_whole else "number"
    return "text"


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value.item() if hasattr(value, "item") else value)
