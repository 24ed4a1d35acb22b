"""Rows that are no records: totals and subtotals, notes, rows of units, repeated headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

from taskweaver.tables.evidence.numerals import numeral

_WORDS = frozenset(
    "total totals subtotal subtotals sub-total sous-total grand overall all sum sums world gesamt"
    " summe gesamtsumme zwischensumme teilsumme insgesamt gesamtergebnis ergebnis alle somme"
    " ensemble suma todos totale totali subtotale totaal subtotaal eindtotaal totalt summa razem"
    " ogółem toplam итого всего подытог".split()
)
_WEAK = frozenset("grand overall all world alle ensemble suma sum ergebnis".split())
"""Words that name a total alone or beside another one of `_WORDS`, at the edge of a table."""
_ENDS = ("合計", "小計", "合计", "小计", "总计", "總計", "総計", "计")
_NOTE = re.compile(
    r"\W+|\W*(?:(?:foot)?notes?|sources?|quellen?)\W*"
    r"|\W*(?:(?:data )?sources?|(?:foot)?notes?|quellen?|anmerkung(?:en)?|hinweise?|stand|remarks?"
    r"|fuentes?|fonte|notas?|remarques?|bron|as of|(?:last )?updated?|ex?ported|generated"
    r"|источник|примечани[ея]|資料|出典|来源|注)\b[^:\uff1a]{0,30}[:\uff1a].*"
    r"|[*†‡§©¹²³⁴] ?[^\W\d].*|[(\[]?[\da-z]{1,2}[)\]] .*",
    re.IGNORECASE | re.DOTALL,
)
_UNIT = re.compile(
    r"[(\[].*[)\]]|[%‰€$£¥°].*|in .*|[kcm]?[gmlt][²³23]?|usd|eur|gbp"
    r"|(?:unit|thousand|million|person)s?|einheit(?:en)?",
    re.IGNORECASE,
)
_MOST_LOOKED, _MOST_LABELS, _MOST_NOTES, _MORE_WORDS = 100_000, 1_000, 50, 3
_TOLERANCE = 1e-3
"""Part of a total by which a sum of rounded numbers may differ from the total."""


def notes_of(frame: Any) -> tuple[dict[int, str], list[str]]:
    """Map rows of notes, units and repeated headers to their texts; add phrases of doubt.

    Notes are looked for above and below the records. A note is alone in its row, and shows by its
    first words, by an empty row or a total beside itself, or by many more words than its column.
    """
    count, names = len(frame), list(map(str, frame.columns))
    first = frame.iloc[-_MOST_LOOKED:, 0].astype(str).str.strip("\ufeff")
    found = {
        row: "repeated header"
        for row in first.index[first == names[0]]
        if list(map(str, frame.iloc[row, 1:])) == names[1:]
    }
    if count > 1 and _are_units(frame.iloc[0].dropna().astype(str), frame.iloc[1:_MOST_LABELS]):
        found[0] = ", ".join(frame.iloc[0].dropna().astype(str))
    records = frame.head(_MOST_LABELS)
    records = records[records.count(axis=1) > 1]
    unclear: list[str] = []
    for step in (1, -1):
        rows = [*range(count)[::step]][:_MOST_NOTES] if len(names) > 1 else []
        for row, inner in pairwise(rows):
            cells = frame.iloc[row].dropna().astype(str)
            kind = _kind_of(cells, frame.iloc[inner].dropna().astype(str), records)
            if row not in found and kind != "note":
                doubt = f"{', '.join(cells)!r}, alone in a row, may be a note, and was kept"
                unclear += [doubt] if kind == "doubt" else []
                break
            found.setdefault(row, ", ".join(cells) or "empty")
    return found, unclear


def _kind_of(cells: Any, beside: Any, records: Any) -> Literal["note", "doubt", "record"]:
    """Return what a row is by its cells, those of the row before it on the way in, and records."""
    if cells.empty:
        return "note"
    if len(cells) > 1:
        is_cut = len(cells) < len(records.columns) and ":" in cells.iloc[0]
        return "note" if is_cut and _NOTE.match(", ".join(cells)) else "record"
    (text,) = cells
    if numeral(text):
        return "record"
    is_apart = beside.empty or any(map(_words_of_total, beside))
    is_note = is_apart or _NOTE.fullmatch(text) or _is_odd(text, records[cells.index[0]])
    return "note" if is_note else "doubt"


def _are_units(cells: Any, records: Any) -> bool:
    """Return whether the cells of a row are units of columns that hold numbers below."""
    return bool(len(cells)) and all(
        _UNIT.fullmatch(text) and all(map(numeral, records[name].dropna().astype(str)))
        for name, text in cells.items()
    )


def _is_odd(text: str, values: Any) -> bool:
    """Return whether a text has many more words than its column, which may hold numbers."""
    others = values.dropna().astype(str)
    numbers = sum(map(bool, map(numeral, others)))
    is_of_numbers = len(others) > 1 and numbers >= len(others) - 1
    most = 0 if is_of_numbers else max((len(other.split()) for other in others), default=0)
    return len(text.split()) > most + (2 if is_of_numbers else _MORE_WORDS)


def labels_of(frame: Any) -> dict[int, str]:
    """Map rows to a text in them that may name a total."""
    found: dict[int, str] = {}
    looked = frame.iloc[-_MOST_LOOKED:].select_dtypes(exclude="number")
    for name in looked:
        values = looked[name].dropna().map(str)
        labels = [value for value in values.unique() if _words_of_total(value)]
        found |= values[values.isin(labels)].to_dict()
    edges = {0, len(frame) - 1}
    found = {row: text for row, text in found.items() if row in edges or _is_plain(text)}
    return found if len(found) <= _MOST_LABELS else {}


def _is_plain(label: str) -> bool:
    """Return whether a word of a label means nothing but a total, unlike `all` or `world`."""
    return not _WEAK.issuperset(word for word in _words_of_total(label) if word in _WORDS)


def _words_of_total(text: str) -> list[str]:
    """Return the words of a text of which the first or the last may name a total; else none."""
    words = text.casefold().strip(" :*").split()
    ends = {*words[:1], *words[-1:]}
    is_total = ends & (_WORDS - _WEAK) or (words and words[-1].endswith(_ENDS))
    return words if is_total or (words and _WORDS.issuperset(words)) else []


def _name_of(label: str) -> str:
    """Return the words of a label that do not say that it is one of a total."""
    words = _words_of_total(label)
    return " ".join(w for w in words if w not in _WORDS and not w.endswith(_ENDS))


def totals_of(frame: Any, labels: Mapping[int, str]) -> tuple[dict[int, str], list[str]]:
    """Select the labels of rows that are sums of other rows; add phrases on the other labels.

    A total is the sum of all other rows, of the records between it and another label, or of the
    records with the same texts. At most half of its numbers are no sums, for example means. The sum
    of a single record has no name but that of a total, or one that is a text of a record.
    """
    import numpy as np
    import pandas as pd

    numbers = frame.select_dtypes("number", exclude="timedelta").to_numpy(float, na_value=np.nan)
    texts = frame.select_dtypes(exclude="number")
    plain = texts.map(str)
    plain = plain.mask(texts.isna() | plain.isin(set(labels.values())))
    columns = [plain.iloc[:, at] for at in range(plain.shape[1])]  # quick, unlike transposed texts
    codes = np.array([pd.factorize(column)[0] for column in columns])
    is_record = ~frame.index.isin(labels)
    values = np.c_[np.nan_to_num(numbers), np.ones(len(frame))]
    until = np.vstack([values[:1] * 0, (values * is_record[:, None]).cumsum(axis=0)])
    ends = np.array([0, *sorted(labels), len(frame)])
    is_given = values[is_record, :-1].any(axis=0)
    counts = dict.fromkeys(labels, 0.0)
    for row in labels:
        alike = is_record & ((codes == codes[:, [row]]) | (codes[:, [row]] < 0)).all(axis=0)
        near = [until[row] - until[ends[ends <= row]], until[ends[ends > row]] - until[row]]
        whole = [values.sum(axis=0) - values[row]] if row in {0, len(frame) - 1} else []
        sums = np.vstack([*near, *whole, values[alike].sum(axis=0)])
        is_sum = np.isclose(sums[:, :-1], numbers[row], rtol=_TOLERANCE)
        is_most = 2 * is_sum.sum(axis=1) >= np.isfinite(numbers[row]).sum()
        is_total = is_most & (is_sum & is_given).any(axis=1)
        counts[row] = sums[is_total, -1].max(initial=0)
    is_any = max(counts.values()) > 1
    names = {"", *(text.casefold() for one in columns for text in one[is_record].dropna().unique())}
    found = {
        row: label
        for row, label in labels.items()
        if is_any and counts[row] > (_name_of(label) not in names)
    }
    kept = {label for row, label in labels.items() if row in {0, len(frame) - 1} - found.keys()}
    return found, [
        f"{label!r} may name a total, is no sum of other rows by its numbers, and was kept"
        for label in sorted(kept)
        if _WORDS.issuperset(_words_of_total(label))
    ]
