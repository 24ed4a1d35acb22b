"""The plugin that describes tables: what it says, and which tables it survives."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browser import chromium_tab
from shipped import make
from sizes import some

from taskweaver.plugin import Plugin


@dataclass
class Profiler:
    """The plugin, and the report it wrote last."""

    plugin: Plugin
    ctx: Any

    def __call__(self, df: pd.DataFrame, *args: Any) -> tuple[pd.DataFrame, str]:
        summary, description = self.plugin(df, *args)
        return summary.set_index("column"), description

    @property
    def page(self) -> str:
        artifact = self.ctx.artifacts[-1]
        assert artifact.type == "html"
        return str(artifact.path.read_text("utf-8"))


@pytest.fixture
def profile(context: Any) -> Profiler:
    return Profiler(make("table_profile", context, sample_rows=500), context)


def test_numbers_are_measured(profile: Profiler) -> None:
    values = [0, 0, 1, 2, 3, 4, 5, 100, None, np.inf]
    summary, description = profile(pd.DataFrame({"n": values}))
    row = summary.loc["n"]
    assert (row["kind"], row["count"], row["missing"], row["missing_pct"]) == ("number", 9, 1, 10)
    assert (row["min"], row["median"], row["max"], row["mean"]) == (0, 2.5, 100, 14.375)
    assert (row["zeros"], row["outliers"], row["distinct"]) == (2, 1, 8)
    assert "1 infinite" in row["notes"]
    assert "1 outlier (" in description


def test_texts_are_measured(profile: Profiler) -> None:
    values = ["Bonn", "Bonn", "Ulm", "  ", None]
    row = profile(pd.DataFrame({"c": values}))[0].loc["c"]
    assert (row["kind"], row["distinct"], row["top"], row["top_count"]) == ("text", 3, "Bonn", 2)
    assert (row["length_min"], row["length_max"], row["length_mean"]) == (2, 4, 3.2)
    assert row["notes"] == "1 blank text"
    row = profile(pd.DataFrame({"m": [1, "a", "b", None]}))[0].loc["m"]
    assert row["notes"] == "mixed types: str 2, int 1"


@pytest.mark.parametrize("convert", [pd.to_datetime, lambda days: [*map(date.fromisoformat, days)]])
def test_times_are_measured(profile: Profiler, convert: Any) -> None:
    days = convert(["2024-01-02", "2024-01-01", "2024-01-03", "2024-01-09"])
    row = profile(pd.DataFrame({"day": days}))[0].loc["day"]
    assert (row["kind"], row["first"]) == ("time", "2024-01-01 00:00:00")
    assert (row["last"], row["largest_gap"]) == ("2024-01-09 00:00:00", "6 days 00:00:00")
    assert "1 gap wider than the usual step of 1 days" in row["notes"]


def test_what_is_odd_about_a_table_is_told(profile: Profiler) -> None:
    steps = np.arange(20.0)
    texts = {"same": "x", "price": "1.234,50 €", "zip": "01234", "day": "2024-01-31"}
    df = pd.DataFrame({"a": steps, "b": -2 * steps, **texts})
    summary, description = profile(pd.concat([df, df.head(3)]))
    assert "3 rows repeat an earlier one." in description
    assert "Highly correlated: a and b (-1.00)." in description
    assert summary.loc["same", "notes"] == "constant"
    assert "numbers as text" in summary.loc["price", "notes"]
    assert "numbers" not in summary.loc["zip", "notes"]
    assert "holds times as text" in summary.loc["day", "notes"]


@pytest.mark.parametrize(
    "df",
    [
        pd.DataFrame(),
        pd.DataFrame(index=range(3)),
        pd.DataFrame({"a": [None, None], "b": [np.nan, np.nan], "c": pd.NaT}),
        pd.DataFrame([[1, "x"], [2, "y"]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("x", 1), ("x", 2)])),
        pd.DataFrame({"l": [[1], [1], {"k": 2}], "t": [(1,), (1, [2]), None]}),
        pd.DataFrame({"m": [1, "a", None, 2.5, b"x", object]}),
        pd.DataFrame({"d": [Decimal("1.5"), None], "z": [1 + 2j, 3j], "big": [10**400, -1]}),
        pd.DataFrame({"wide": [1e308, -1e308, 1e308], "tiny": [5e-324, 0, 0]}),
        pd.DataFrame({"i": pd.array([1, None, 3], "Int64"), "f": pd.array([True, None, False])}),
        pd.DataFrame({"c": pd.Categorical(["a", None, "b"], ["a", "b", "unused"])}),
        pd.DataFrame({"p": pd.period_range("2024-01", periods=3, freq="M")}),
        pd.DataFrame({"t": pd.to_datetime(["2024-01-01", None]).tz_localize("Europe/Berlin")}),
        pd.DataFrame({"s": ["\ud800", "\x00", "ä" * 5000]}, dtype=object),
        pd.DataFrame({"a": [1, 2, 3]}, index=[7, 7, 7]),
        pd.DataFrame(np.ones((3, 250))),
    ],
    ids=lambda df: "-".join(map(str, df.columns[:3])) or f"{len(df)} rows",
)
def test_any_table_can_be_described(profile: Profiler, df: pd.DataFrame) -> None:
    before = df.copy(deep=True)
    summary, description = profile(df)
    assert len(summary) == df.shape[1]
    assert summary.index.is_unique
    assert summary["distinct"].notna().all()
    assert re.match(rf"{len(df)} rows? and {df.shape[1]} columns?\.", description)
    assert profile.page.rstrip().endswith("</html>")
    pd.testing.assert_frame_equal(df, before)


def test_the_report_holds_nothing_that_runs(profile: Profiler) -> None:
    bad = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&{0}"
    profile(pd.DataFrame({bad: [bad, "b"], "n": [1.0, 2.0], "l": [[bad], [bad]]}), bad)
    tags, attributes = set[str](), set[str]()

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.add(tag)
            attributes.update(name for name, _ in attrs)

    Tags().feed(profile.page)
    assert tags.isdisjoint({"script", "img", "a", "iframe", "link"})
    assert not {name for name in attributes if name.startswith("on") or name == "src"}
    assert "<svg" in profile.page
    assert "&lt;script&gt;" in profile.page


def test_the_report_fits_its_window_in_light_and_dark(profile: Profiler) -> None:
    words = ["Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch", "Ulm"]
    profile(pd.DataFrame({"town": words, "n" * 59: [1.5, 2.5]}))
    with chromium_tab() as tab:
        for width, mode in itertools.product((400, 1280), ("light", "dark")):
            tab.view(width, mode)
            tab.load(profile.ctx.artifacts[-1].path)
            assert tab.extent() == (width, 0, 0)
            assert min(map(tab.contrast, ("h1", "dd", "dt", "td", "small"))) > 4.5
            ground = tab.value("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(22, 24, 26)") is (mode == "dark")
            assert tab.value("document.querySelector('h1').getBoundingClientRect().left") >= 16


@pytest.mark.parametrize("rows", some([100_000, 1_000_000], 1))
def test_a_large_table_is_sampled_and_that_is_told(profile: Profiler, rows: int) -> None:
    rng = np.random.default_rng(1)
    times = pd.date_range("2000-01-01", periods=rows, freq="min")
    values = {"value": rng.normal(size=rows), "city": rng.choice(["Bonn", "Ulm"], rows)}
    df = pd.DataFrame({"id": np.arange(rows), "when": times, **values})
    summary, description = profile(df)
    assert summary.loc["id", "distinct"] == rows
    assert summary.loc["value", "count"] == rows
    assert "random sample of 500 rows" in description
    with pytest.raises(ValueError, match="needs a DataFrame, not list"):
        profile.plugin([1])
