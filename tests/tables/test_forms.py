"""Numbers and dates that a locale writes come back as they were."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import written
from sizes import examples

from taskweaver.tables.reading import load

AMOUNTS = st.lists(
    st.decimals(min_value=-10_000_000, max_value=10_000_000, places=2).map(float),
    min_size=3,
    max_size=30,
)
DAYS = st.lists(
    st.dates(datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)), min_size=3, max_size=30
)


def read(text: str) -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        frame = load(written(Path(folder), text)).frame
    assert isinstance(frame, pd.DataFrame)
    return frame


@settings(max_examples=examples(60))
@given(AMOUNTS, st.sampled_from([(",", "."), (".", ","), ("'", "."), (" ", ","), ("", ",")]))
def test_amounts_of_a_locale(values: list[float], marks: tuple[str, str]) -> None:
    texts = [f"{value:,.2f}".translate(str.maketrans(",.", "TD")) for value in values]
    texts = [text.replace("T", marks[0]).replace("D", marks[1]) for text in texts]
    frame = read("name;v\n" + "".join(f"x;{text}\n" for text in texts))
    assert frame.v.tolist() == values


@settings(max_examples=examples(60))
@given(DAYS, st.sampled_from(["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y-%m-%d", "%b %d %Y"]))
def test_days_of_a_locale(days: list[datetime.date], form: str) -> None:
    shows_order = any(day.day > 12 for day in days) or "/" not in form
    frame = read("d,v\n" + "".join(f"{day.strftime(form)},1\n" for day in days))
    if shows_order:
        assert frame.d.tolist() == [pd.Timestamp(day) for day in days]
    else:
        assert len(set(frame.d)) == len(set(days))
