"""A forecast by exponential smoothing, honest about how well it would have done before.

The series is put on a grid of equal steps; `taskweaver.plugin.library.smoothing` forecasts it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from taskweaver.plugin import Plugin, register_plugin, test_plugin
from taskweaver.plugin.library.smoothing import Backtest, backtests, find_season, interval

MIN_POINTS = 8
MAX_MISSING = 0.4
DAY_S = 86_400.0
# Steps of the calendar: name, least and most days, months, seasons in steps.
_CALENDAR: tuple[tuple[str, int, int, int, tuple[int, ...]], ...] = (
    ("months", 28, 31, 1, (12,)),
    ("quarters", 90, 92, 3, (4,)),
    ("years", 365, 366, 12, ()),
)


@dataclass(frozen=True)
class Grid:
    """The regular times of a series.

    Attributes:
        step: What lies between two of them, as people say it.
        seasons: Lengths of season that are plausible, in steps.
        ahead: Gives the times of that many steps after the last.
    """

    step: str
    seasons: tuple[int, ...]
    ahead: Callable[[int], Any]


@register_plugin
class TimeSeriesForecast(Plugin):
    """Forecasts a series and draws it."""

    def __call__(
        self, df: pd.DataFrame, time_col_name: str, value_col_name: str, periods: int | None = None
    ) -> tuple[pd.DataFrame, str]:
        """Forecast a series.

        Args:
            df: The table; it is not changed.
            time_col_name: Column of times.
            value_col_name: Numeric column.
            periods: Steps ahead; None takes a season, or a few steps.

        Returns:
            The times ahead with ``forecast``, ``lower`` and ``upper``, and a description.

        Raises:
            ValueError: If a column is missing or of the wrong kind, or the series is too short or
                too irregular to be forecast.
        """
        _check_columns(df, time_col_name, value_col_name)
        series, notes = _clean(df[time_col_name], df[value_col_name])
        values, grid = _regular(series, notes)
        limit = max(int(self.config.get("max_points", 5000)), 50)
        if len(values) > limit:
            notes.append(f"Only the last {limit:,} of {len(values):,} points were used.")
            values = values[-limit:]
        with np.errstate(all="ignore"):
            season = find_season(values, grid.seasons)
            periods = _periods(periods, len(values), season)
            best, naive = backtests(values, season, periods)
            future = best.forecast(values, np.array([len(values)]), periods)[0]
            reach = interval(best.errors, periods)
        ahead = {"forecast": future, "lower": future - reach, "upper": future + reach}
        forecast = pd.DataFrame({"time": grid.ahead(periods), **ahead})
        facts = _describe(value_col_name, forecast, (len(values), grid.step, season), (best, naive))
        description = " ".join([*facts, *notes])
        chart = _chart(str(value_col_name), series.iloc[-limit:], forecast)
        name = f"forecast of {value_col_name}"
        self.ctx.add_artifact(name, "forecast.png", "image", chart, description)
        self.log("info", description)
        return forecast, description


def _check_columns(df: object, *names: str) -> None:
    if not isinstance(df, pd.DataFrame):
        raise ValueError(f"time_series_forecast needs a DataFrame, not {type(df).__name__}.")
    for name in names:
        found = int((df.columns == name).sum())
        if found != 1:
            columns = ", ".join(map(str, df.columns))
            problem = f"There is no column {name!r}" if not found else f"Two columns are {name!r}"
            raise ValueError(f"{problem}; the columns are: {columns}.")


def _clean(times: pd.Series, values: pd.Series) -> tuple[pd.Series, list[str]]:
    """Return the values by time, one each, and notes on what was done to get there."""
    numbers = pd.to_numeric(values, errors="coerce")
    bad = values[numbers.isna() & values.notna()]
    kinds = pd.api.types
    if len(bad) or kinds.is_bool_dtype(values) or kinds.is_datetime64_any_dtype(values):
        example = bad.iloc[0] if len(bad) else values.iloc[0]
        raise ValueError(f"Column {values.name!r} is not numeric; it holds {example!r}.")
    numbers = numbers.astype("float64").replace([np.inf, -np.inf], np.nan)
    series = pd.Series(numbers.to_numpy(), index=pd.Index(_as_times(times)))
    known = series[series.index.notna() & series.notna()]
    notes = []
    if len(known) < len(series):
        notes.append(f"{len(series) - len(known):,} rows without a time or a value were left out.")
    merged = known.groupby(level=0).mean()
    if len(merged) < len(known):
        notes.append(
            f"{len(known) - len(merged):,} rows shared their time with another; means were taken."
        )
    if len(merged) < MIN_POINTS:
        raise ValueError(
            f"A forecast needs at least {MIN_POINTS} different times with a value; "
            f"there are {len(merged)}."
        )
    return merged, notes


def _as_times(column: pd.Series) -> pd.Series:
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp()
    if pd.api.types.is_numeric_dtype(column):
        return column.astype("float64").replace([np.inf, -np.inf], np.nan)
    try:
        times = pd.to_datetime(column, errors="coerce", format="mixed")
    except ValueError:  # several time zones
        times = pd.to_datetime(column, errors="coerce", format="mixed", utc=True)
    unreadable = column[times.isna() & column.notna()]
    if len(unreadable) * 2 > len(column):
        raise ValueError(
            f"Column {column.name!r} does not hold times; {unreadable.iloc[0]!r} cannot be read "
            "as one."
        )
    return times


def _regular(series: pd.Series, notes: list[str]) -> tuple[np.ndarray, Grid]:
    """Put a series on a grid of equal steps; what is missing between is interpolated."""
    index = series.index
    if isinstance(index, pd.DatetimeIndex):
        at, grid = _calendar(index)
    else:
        at = _positions(index.to_numpy(), "sort it and number its rows")
        step, last = float(np.median(np.diff(index.to_numpy()))), float(index[-1])
        is_whole = step.is_integer() and last.is_integer()
        kind = "int64" if is_whole else "float64"
        seasons = tuple(range(2, min(len(series) // 3, 400) + 1))
        grid = Grid(f"steps of {step:g}", seasons, _after(last, step, kind))
    count = int(at[-1]) + 1
    missing = count - len(np.unique(at))
    if missing > MAX_MISSING * count:
        raise ValueError(
            f"The series is too irregular to be forecast: {missing:,} of {count:,} {grid.step} "
            "have no value. Aggregate it to longer steps first, such as "
            "df.resample('MS', on=time).sum()."
        )
    if missing:
        notes.append(f"{missing:,} of {count:,} {grid.step} had no value and were interpolated.")
    if len(np.unique(at)) < len(at):
        notes.append(f"Values that fall into the same of the {grid.step} were averaged.")
    known = pd.Series(series.to_numpy()).groupby(at).mean()
    values = np.interp(np.arange(count), known.index.to_numpy(), known.to_numpy())
    return values, grid


def _after(last: Any, step: Any, kind: str | None = None) -> Callable[[int], Any]:
    def ahead(count: int) -> Any:
        times = [last + step * number for number in range(1, count + 1)]
        return np.array(times).astype(kind) if kind else pd.DatetimeIndex(times)

    return ahead


def _calendar(index: pd.DatetimeIndex) -> tuple[np.ndarray, Grid]:
    """Find the step of times: months, quarters and years by the calendar, others by the clock."""
    local = index.tz_localize(None)
    gaps = np.diff(local.to_numpy("datetime64[s]").astype("float64")) / DAY_S
    days = float(np.median(gaps))
    for name, least, most, months, seasons in _CALENDAR:
        # Equal gaps are no months, but every four weeks or every thirty days.
        if least <= days <= most and gaps.min() < gaps.max():
            return _months(local, months), Grid(name, seasons, _months_after(index, months))
    is_daily = bool((local == local.normalize()).all()) and days == 1
    if is_daily and len(local) >= 10 and not (local.day_of_week >= 5).any():
        at = np.busday_count(local[0].date(), local.to_numpy("datetime64[D]"))
        return at, Grid("working days", (5,), _after(index[-1], pd.offsets.BusinessDay()))
    # Days are days also when the clocks change; below that the time that passes counts.
    by_days = days >= 1 and days.is_integer()
    clock = local if by_days or index.tz is None else index.tz_convert("UTC").tz_localize(None)
    seconds = clock.to_numpy("datetime64[ms]").astype("float64") / 1000
    at = _positions(seconds, "aggregate it first, such as df.resample('D', on=time).sum()")
    step_s = float(np.median(np.diff(seconds)))
    step = pd.DateOffset(days=int(days)) if by_days else pd.Timedelta(seconds=step_s)
    return at, Grid(_step_name(step_s), _usual_seasons(step_s), _after(index[-1], step))


def _months(local: pd.DatetimeIndex, months: int) -> np.ndarray:
    """Number times by months; quarters and years may begin in any, so the last one counts."""
    count = (local.year * 12 + local.month - 1).to_numpy()
    at = (count - count[-1] % months + months // 2) // months
    return at - at[0]


def _months_after(index: pd.DatetimeIndex, months: int) -> Callable[[int], Any]:
    at_end = bool(index.is_month_end.all())

    def ahead(count: int) -> Any:
        times = [index[-1] + pd.DateOffset(months=months * n) for n in range(1, count + 1)]
        return pd.DatetimeIndex([t + pd.offsets.MonthEnd(0) for t in times] if at_end else times)

    return ahead


def _positions(points: np.ndarray, advice: str) -> np.ndarray:
    """Number points by their usual step; jitter of a tenth is fine and does not add up."""
    gaps = np.diff(points)
    steps = gaps / np.median(gaps)
    whole = np.maximum(np.round(steps), 1)
    if np.mean(np.abs(steps - whole) <= 0.1 * whole) < 0.9:
        raise ValueError(f"The series has no regular step and cannot be forecast: {advice}.")
    return np.concatenate([[0], np.cumsum(whole)]).astype("int64")


def _step_name(step_s: float) -> str:
    for name, size in (("weeks", 7 * DAY_S), ("days", DAY_S), ("hours", 3600.0), ("minutes", 60.0)):
        if step_s == size:
            return name
        if step_s > size and step_s % size == 0:
            return f"steps of {step_s / size:g} {name}"
    return f"steps of {step_s:g} seconds"


def _usual_seasons(step_s: float) -> tuple[int, ...]:
    spans = (3600.0, DAY_S, 7 * DAY_S, 365 * DAY_S)
    counts = [round(span / step_s) for span in spans if span / step_s >= 2]
    if step_s == 7 * DAY_S:
        counts = [52]
    return tuple(count for count in counts if count <= 2000)


def _periods(periods: int | None, count: int, season: int | None) -> int:
    if periods is None:
        return min(season or 12, max(count // 4, 1), 60)
    if isinstance(periods, bool) or not isinstance(periods, int | np.integer) or periods < 1:
        raise ValueError(f"periods must be a whole number from 1 on, not {periods!r}.")
    if periods > count:
        raise ValueError(
            f"{periods:,} periods are more than the {count:,} points known; ask for fewer."
        )
    return int(periods)


def _describe(
    name: str,
    forecast: pd.DataFrame,
    series: tuple[int, str, int | None],
    methods: tuple[Backtest, Backtest],
) -> list[str]:
    (count, step, season), (best, naive) = series, methods
    origins, distance = best.errors.shape
    first, last = (str(t).removesuffix(" 00:00:00") for t in forecast["time"].iloc[[0, -1]])
    verdict = f"the best naive forecast, {naive.name}, by {_error(naive)}"
    if best is naive:
        verdict = "no method did better than this naive one, so expect little of it"
    return [
        f"{len(forecast)} {step} of {name} ahead, {first} to {last}, from {count:,} points.",
        f"Method: {best.name}; "
        + (f"season of {season} {step}." if season else "no season was found."),
        f"In a backtest on the last part ({origins} starting points, up to {distance} ahead) it "
        f"missed by {_error(best)} on average; {verdict}.",
        "The 95 % interval comes from these errors.",
    ]


def _error(test: Backtest) -> str:
    percent = "" if test.mape is None else f" ({test.mape:.1f} %)"
    return f"{test.mae:.4g}{percent}"


def _chart(name: str, series: pd.Series, forecast: pd.DataFrame) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    shown = series.iloc[-max(5 * len(forecast), 200) :]
    axes.plot(shown.index, shown.to_numpy(), color="#444", linewidth=1, label="known")
    axes.plot(forecast["time"], forecast["forecast"], color="#c0392b", label="forecast")
    axes.fill_between(
        forecast["time"], forecast["lower"], forecast["upper"], color="#c0392b", alpha=0.18,
        label="95 % interval",
    )  # fmt: skip
    axes.set_title(name.replace("$", r"\$"))
    axes.legend()
    axes.tick_params(axis="x", rotation=30)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()


def _sales(count: int) -> pd.DataFrame:
    months = pd.date_range("2015-01-01", periods=count, freq="MS")
    at = np.arange(count)
    noise = np.random.default_rng(4).normal(0, 2, count)
    return pd.DataFrame({"month": months, "sales": 100 + at + 20 * np.sin(at * np.pi / 6) + noise})


@test_plugin(name="a season is continued", description="The year goes on where it would have.")
def test_a_season_is_continued(plugin: Plugin) -> None:
    """The year goes on where it would have."""
    df = _sales(96)
    forecast, description = plugin(df.head(84), "month", "sales", 12)
    assert "season of 12 months" in description
    missed = (forecast["forecast"] - df["sales"].tail(12).to_numpy()).abs()
    assert missed.mean() < 6, description
    assert forecast["time"].tolist() == df["month"].tail(12).tolist()


@test_plugin(name="few values are refused", description="Five values are no series to forecast.")
def test_few_values_are_refused(plugin: Plugin) -> None:
    """Five values are no series to forecast."""
    try:
        plugin(_sales(5), "month", "sales")
    except ValueError:
        return
    raise AssertionError("a forecast was made")
