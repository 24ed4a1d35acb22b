"""Forecasts of a regular series by exponential smoothing, chosen by backtests.

Every method forecasts from many starting points in the last part of the series, with parameters
fitted to the values before that part. Naive forecasts compete as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Forecaster = Callable[[Array, npt.NDArray[np.int64], int], Array]
"""From values, starting points and a number of steps: one row of forecasts per starting point.

A forecast from point `t` knows the values before `t`; parameters know those before the first."""

MAX_ORIGINS = 60
_ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95)
_BETAS = (0.0, 0.05, 0.2, 0.5)
_GAMMAS = (0.05, 0.2, 0.5)
_PHIS = (0.8, 0.9, 0.98)
_Z95 = 1.96


@dataclass(frozen=True, slots=True)
class Backtest:
    """A method and the method's errors in the past.

    Attributes:
        name: Usual name of the method.
        forecast: The method.
        errors: Forecast minus value, by starting point (rows) and distance (columns); NaN beyond
            the end of the series.
        actual: The values the errors are about.
    """

    name: str
    forecast: Forecaster
    errors: Array
    actual: Array

    @property
    def mae(self) -> float:
        """The mean absolute error, in the unit of the values."""
        return float(np.nanmean(np.abs(self.errors)))

    @property
    def mape(self) -> float | None:
        """The mean absolute error in percent of the values; None unless all are above zero."""
        if not np.nanmin(self.actual) > 0:
            return None
        return float(100 * np.nanmean(np.abs(self.errors) / self.actual))


def find_season(values: Array, candidates: Sequence[int]) -> int | None:
    """Return the plausible season at which the series resembles itself most.

    Candidates are in steps; only those that fit in thrice are looked at.
    """
    steps = np.arange(len(values))
    rest = values - np.polyval(np.polyfit(steps, values, 1), steps)
    total = float(rest @ rest)
    if total <= 1e-12 * float(values @ values):
        return None

    def alike(lag: int) -> float:
        per_pair = float(rest[lag:] @ rest[:-lag]) / (len(rest) - lag)
        return per_pair / total * len(rest)

    least = max(0.3, 2 / np.sqrt(len(rest)))
    found = {lag: alike(lag) for lag in candidates if 2 <= lag <= len(rest) // 3}
    # A slow wave resembles itself at every short distance: a season is a peak among its like.
    peaks = {
        lag: r
        for lag, r in found.items()
        if r > least and r > max(alike(lag - max(lag // 4, 1)), alike(lag + max(lag // 4, 1)))
    }
    best = max(peaks, key=lambda lag: peaks[lag], default=None)
    # What comes back every week also does every second: the shorter of two that are alike.
    while best is not None:
        shorter = [lag for lag in peaks if lag <= 0.6 * best and peaks[lag] >= peaks[best] - 0.1]
        if not shorter:
            break
        best = max(shorter, key=lambda lag: peaks[lag])
    return best


def backtests(values: Array, season: int | None, periods: int) -> tuple[Backtest, Backtest]:
    """Try every method on the last part of the series.

    There are at least 8 values, and three seasons; `season` and `periods` are in steps.

    Returns:
        The method with the smallest mean absolute error, and the best of the naive ones.
    """
    count = len(values)
    first = max(count - max(periods, season or 0, count // 4), 2 * (season or 2), count // 2)
    origins = np.unique(np.linspace(first, count - 1, MAX_ORIGINS).astype(np.int64))
    ahead = origins[:, None] + np.arange(min(periods, count - first))
    actual = np.where(ahead < count, values[np.minimum(ahead, count - 1)], np.nan)

    def test(name: str, method: Forecaster) -> Backtest:
        forecasts = method(values, origins, ahead.shape[1])
        forecasts = np.where(np.isfinite(forecasts), forecasts, np.inf)
        return Backtest(name, method, forecasts - actual, actual)

    naive = [test("the last value", _naive(1))]
    if season:
        naive.append(test("the last season", _naive(season)))
    tests = [*naive, test("exponential smoothing with a damped trend", _smoothing(None))]
    if season:
        tests.append(test("additive Holt-Winters smoothing", _smoothing(season)))
        if values.min() > 0:
            tests.append(test("multiplicative Holt-Winters smoothing", _on_logarithms(season)))
    return min(tests, key=lambda t: t.mae), min(naive, key=lambda t: t.mae)


def interval(errors: Array, periods: int) -> Array:
    """Return half the width of a 95 % interval at each distance, from errors of a backtest.

    It never shrinks with distance, and beyond the last distance tested grows with its root.
    """
    known = np.sum(~np.isnan(errors), axis=0)
    spread = np.sqrt(np.nanmean(errors**2, axis=0)) * _student(np.maximum(known - 1, 3))
    reach = np.maximum.accumulate(spread)
    beyond = np.arange(len(reach) + 1, periods + 1) / len(reach)
    return np.concatenate([reach[:periods], reach[-1] * np.sqrt(beyond)])


def _student(freedom: npt.NDArray[np.int64]) -> Array:
    """Approximate the 97.5 % quantile of Student's t (Cornish-Fisher), from 3 degrees on."""
    z = _Z95
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom.astype(np.float64) ** 2)
    return z + (z**3 + z) / (4 * freedom) + second


def _naive(season: int) -> Forecaster:
    def forecast(values: Array, origins: npt.NDArray[np.int64], periods: int) -> Array:
        forecasts: Array = values[origins[:, None] - season + np.arange(periods) % season]
        return forecasts

    return forecast


def _on_logarithms(season: int) -> Forecaster:
    smooth = _smoothing(season)

    def forecast(values: Array, origins: npt.NDArray[np.int64], periods: int) -> Array:
        forecasts: Array = np.exp(smooth(np.log(values), origins, periods))
        return forecasts

    return forecast


def _smoothing(season: int | None) -> Forecaster:
    """Return smoothing with a damped trend and, where there is a season, additive seasons."""
    gammas = _GAMMAS if season else (0.0,)
    choices = np.array(list(product(_ALPHAS, _BETAS, gammas, _PHIS)))

    def forecast(values: Array, origins: npt.NDArray[np.int64], periods: int) -> Array:
        training = values[: origins[0]]
        best = choices[np.argmin(_squared_errors(training, season, choices))]
        damping = np.cumsum(best[3] ** np.arange(1, periods + 1))
        wanted = set(origins.tolist())
        rows = []
        for t, state in enumerate(_states(values[: origins[-1]], season, best[None, :])):
            if t in wanted:
                cycle = state.seasons[(t + np.arange(periods)) % len(state.seasons), 0]
                rows.append(state.level[0] + damping * state.trend[0] + cycle)
        return np.array(rows)

    return forecast


@dataclass(slots=True)
class _State:
    """State of the smoothing before a value, for several choices of parameters side by side."""

    level: Array
    trend: Array
    seasons: Array
    expected: Array


def _states(values: Array, season: int | None, choices: Array) -> Iterator[_State]:
    """Yield the state before each value, and last the state after all values."""
    alpha, beta, gamma, phi = choices.T
    cycle = season or 1
    level, trend, seasons = _start(values, season)
    state = _State(
        np.full(len(choices), level),
        np.full(len(choices), trend),
        np.repeat(seasons[:, None], len(choices), axis=1),
        np.zeros(len(choices)),
    )
    for t in range(len(values) + 1):
        base = state.level + phi * state.trend
        state.expected = base + state.seasons[t % cycle]
        yield state
        if t < len(values):
            error = values[t] - state.expected
            state.level = base + alpha * error
            state.trend = phi * state.trend + alpha * beta * error
            state.seasons[t % cycle] += gamma * (1 - alpha) * error


def _start(values: Array, season: int | None) -> tuple[float, float, Array]:
    """Guess level, trend and seasons from the first two seasons, or the first values."""
    if not season:
        few = min(len(values), 5)
        trend = float(values[few - 1] - values[0]) / max(few - 1, 1)
        return float(values[0]) - trend, trend, np.zeros(1)
    one, two = values[:season], values[season : 2 * season]
    trend = float(two.mean() - one.mean()) / season
    slope = trend * (np.arange(season) - (season - 1) / 2)
    seasons = ((one - one.mean() - slope) + (two - two.mean() - slope)) / 2
    return float(one.mean()) - trend * (season + 1) / 2, trend, seasons


def _squared_errors(values: Array, season: int | None, choices: Array) -> Array:
    """Return the sum of the squared errors one step ahead, for each choice of parameters."""
    total = np.zeros(len(choices))
    for value, state in zip(values, _states(values, season, choices), strict=False):
        total += (value - state.expected) ** 2
    return np.where(np.isfinite(total), total, np.inf)
