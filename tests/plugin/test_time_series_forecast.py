"""The plugin that forecasts: what it finds in series that are known, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from shipped import make

from taskweaver.plugin import Plugin


@pytest.fixture
def drawing(context: Any) -> Plugin:
    return make("time_series_forecast", context, max_points=1500)


@pytest.fixture
def forecast(drawing: Plugin, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """The plugin without the drawing of its chart, which takes longer than all else."""
    monkeypatch.setattr(Figure, "savefig", lambda _, file, **__: file.write(b"drawn"))
    return drawing


def noise(scale: float, count: int) -> np.ndarray:
    return np.random.default_rng(11).normal(0, scale, count)


def series(freq: str, count: int, season: int, start: str = "2022-01-03") -> pd.DataFrame:
    at = np.arange(count)
    values = 50 + 0.05 * at + 10 * np.sin(2 * np.pi * at / season) + noise(1, count)
    return pd.DataFrame({"t": pd.date_range(start, periods=count, freq=freq), "v": values})


@pytest.mark.parametrize(
    ("freq", "count", "season", "step"),
    [
        ("D", 140, 7, "7 days"), ("B", 120, 5, "5 working days"), ("ME", 72, 12, "12 months"),
        ("QS", 40, 4, "4 quarters"), ("h", 400, 24, "24 hours"), ("W", 260, 52, "52 weeks"),
        ("15min", 500, 96, "96 steps of 15 minutes"),
    ],
)  # fmt: skip
def test_the_usual_steps_and_seasons_are_found(
    forecast: Plugin, freq: str, count: int, season: int, step: str
) -> None:
    df = series(freq, count, season)
    known, future = df.head(count - season), df.tail(season)
    result, description = forecast(known.sample(frac=1, random_state=2), "t", "v")
    assert f"season of {step}" in description
    assert len(result) == min(season, len(known) // 4, 60)
    future = future.head(len(result))
    assert result["time"].tolist() == future["t"].tolist()
    actual = future["v"].to_numpy()
    assert np.abs(result["forecast"] - actual).mean() < 3
    assert ((result["lower"] <= actual) & (actual <= result["upper"])).mean() > 0.7


def test_a_trend_without_season_goes_on(drawing: Plugin, context: Any) -> None:
    at = np.arange(60)
    df = pd.DataFrame({"year": 1950 + at, "v": 3.0 * at + noise(0.5, 60)})
    result, description = drawing(df, "year", "v", 5)
    assert "no season was found" in description
    assert result["time"].tolist() == [2010, 2011, 2012, 2013, 2014]
    assert np.abs(result["forecast"] - 3.0 * np.arange(60, 65)).max() < 5
    assert result["upper"].sub(result["lower"]).is_monotonic_increasing
    (chart,) = context.artifacts
    assert chart.path.read_bytes().startswith(b"\x89PNG")


def test_noise_is_called_what_it_is(forecast: Plugin) -> None:
    walk = pd.DataFrame({"t": range(300), "v": np.random.default_rng(5).normal(0, 1, 300)})
    result, description = forecast(walk, "t", "v", 10)
    assert "no season was found" in description
    assert "starting points" in description
    assert result["lower"].max() < 0 < result["upper"].min()
    flat = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=20), "v": 4})
    assert forecast(flat, "t", "v", 3)[0]["forecast"].tolist() == pytest.approx([4, 4, 4])


def test_growing_seasons_are_followed(forecast: Plugin) -> None:
    at = np.arange(96)
    values = 100 * 1.01**at * (1 + 0.4 * np.sin(at * np.pi / 6))
    df = pd.DataFrame({"t": pd.date_range("2015-01-31", periods=96, freq="ME"), "v": values})
    result, description = forecast(df.head(84), "t", "v", 12)
    assert "multiplicative Holt-Winters" in description
    assert result["forecast"].to_numpy() == pytest.approx(values[84:], rel=0.1)
    assert result["time"].dt.is_month_end.all()


def test_gaps_and_doubles_and_what_is_missing_are_told(forecast: Plugin) -> None:
    df = series("D", 140, 7)
    df = pd.concat([df.drop(index=[20, 21, 50]), df.tail(2)])
    df["t"] = df["t"].astype(str)
    df.loc[5, "v"] = np.nan
    df.loc[6, "t"] = None
    _, description = forecast(df, "t", "v")
    assert "2 rows without a time or a value were left out" in description
    assert "2 rows shared their time with another" in description
    assert "5 of 140 days had no value and were interpolated" in description
    assert "season of 7 days" in description


def test_a_long_series_is_cut_and_that_is_told(forecast: Plugin) -> None:
    _, description = forecast(series("h", 20_000, 24), "t", "v")
    assert "Only the last 1,500 of 20,000 points were used." in description
    assert "season of 24 hours" in description


@pytest.mark.parametrize("freq", ["h", "D"])
def test_clocks_that_change_do_not_matter(drawing: Plugin, freq: str) -> None:
    season = 24 if freq == "h" else 7
    df = series(freq, 300, season, "2024-03-20")
    df["t"] = df["t"].dt.tz_localize("Europe/Berlin", ambiguous=True, nonexistent="shift_forward")
    df = df.drop_duplicates("t")
    result, description = drawing(df, "t", "v", 2)
    assert f"season of {season}" in description
    assert str(result["time"].dt.tz) == "Europe/Berlin"
    df = series("MS", 48, 12)
    df["t"] = df["t"].dt.to_period("M")
    assert "season of 12 months" in drawing(df, "t", "v")[1], "periods as a type are times"


def test_times_that_jitter_and_weeks_of_four_are_regular(forecast: Plugin) -> None:
    df = series("h", 100, 24)
    df["t"] += pd.to_timedelta(np.random.default_rng(11).uniform(-100, 100, 100), unit="s")
    assert len(forecast(df, "t", "v", 4)[0]) == 4
    result, _ = forecast(series("28D", 40, 13), "t", "v", 2)
    assert (result["time"].diff().dropna() == pd.Timedelta(days=28)).all()


@pytest.mark.parametrize(
    ("df", "problem"),
    [
        (pd.DataFrame({"t": [1, 2], "v": [1.0, 2.0]}), "at least 8 different times .* are 2"),
        (pd.DataFrame({"t": range(9), "v": ["x"] * 9}), "'v' is not numeric; it holds 'x'"),
        (pd.DataFrame({"t": range(9), "v": [True] * 9}), "not numeric"),
        (pd.DataFrame({"t": ["soon"] * 9, "v": range(9)}), "'t' does not hold times"),
        (pd.DataFrame({"x": range(9), "v": range(9)}), "no column 't'; the columns are: x, v"),
        (pd.DataFrame([[1, 2, 3]], columns=["t", "t", "v"]), "Two columns are 't'"),
        (pd.DataFrame({"t": 2.0 ** np.arange(20), "v": range(20)}), "no regular step"),
        (pd.DataFrame({"t": [*range(9), 100], "v": range(10)}), "too irregular .*: 91 of 101"),
    ],
)
def test_what_cannot_be_forecast_is_explained(
    forecast: Plugin, df: pd.DataFrame, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        forecast(df, "t", "v")


def test_periods_that_make_no_sense_are_refused(forecast: Plugin) -> None:
    for periods in (0, -1, 1.5, True, "3", 1000):
        with pytest.raises(ValueError, match="periods"):
            forecast(series("D", 30, 7), "t", "v", periods)


def test_events_at_any_time_are_no_series(forecast: Plugin) -> None:
    seconds = np.cumsum(np.random.default_rng(11).exponential(1000, 200))
    df = pd.DataFrame({"t": pd.Timestamp("2024") + pd.to_timedelta(seconds, unit="s"), "v": 1.0})
    with pytest.raises(ValueError, match=r"no regular step.*resample"):
        forecast(df, "t", "v")
