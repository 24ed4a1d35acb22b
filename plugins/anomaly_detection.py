"""Anomalies in a series over time, by one of two methods.

``3sigma`` marks values more than three standard deviations from the mean of the whole column.
``local_median`` marks values far from the rolling median, by the rolling median absolute deviation
(MAD). Median and MAD do not move when a few values are wild, which mean and standard deviation do.
1.4826 times the MAD estimates the standard deviation of normal values, as do 1.2533 times the mean
absolute deviation.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from taskweaver.plugin import Plugin, register_plugin, test_plugin

MAD_TO_SIGMA = 1.4826
MEAN_TO_SIGMA = 1.2533
SIGMAS = 3
METHODS = ("3sigma", "local_median")


@register_plugin
class AnomalyDetection(Plugin):
    """Adds the column ``Is_Anomaly`` to a table."""

    def __call__(
        self, df: pd.DataFrame, time_col_name: str, value_col_name: str, method: str = METHODS[0]
    ) -> tuple[pd.DataFrame, str]:
        """Mark the rows whose value is unusual.

        Args:
            df: The table; it is not changed.
            time_col_name: Column of times.
            value_col_name: Numeric column.
            method: ``3sigma`` compares with the mean of all values, ``local_median`` with the
                median of the neighbours in time.

        Returns:
            The table sorted by time with ``Is_Anomaly``, and a description.

        Raises:
            ValueError: If a column is missing, or not of the kind it must be, or there is no
                method of that name.
        """
        _check_columns(df, time_col_name, value_col_name)
        if method not in METHODS:
            raise ValueError(f"The method must be one of {', '.join(METHODS)}, not {method!r}.")
        times = _as_times(df[time_col_name], time_col_name)
        order = times.sort_values(kind="stable", na_position="last").index
        result = df.reset_index(drop=True).loc[order]
        values = _as_numbers(result[value_col_name], value_col_name)
        if method == "local_median":
            # A row without a time has no neighbours in time.
            values = values.where(times.loc[order].notna())
            window = max(int(self.config.get("window", 25)), 3)
            is_far = _is_far_from_neighbours(
                values, window, float(self.config.get("threshold", 5.0))
            )
        else:
            is_far = _is_far_from_mean(values)
        result["Is_Anomaly"] = is_far
        result = result.reset_index(drop=True)
        looked_at = int(values.notna().sum())
        description = _describe(result, time_col_name, value_col_name, looked_at, method)
        self.log("info", description)
        return result, description


def _check_columns(df: object, *names: str) -> None:
    if not isinstance(df, pd.DataFrame):
        raise ValueError(f"anomaly_detection needs a DataFrame, not {type(df).__name__}.")
    for name in names:
        found = int((df.columns == name).sum())
        if found != 1:
            columns = ", ".join(map(str, df.columns))
            problem = f"There is no column {name!r}" if not found else f"Two columns are {name!r}"
            raise ValueError(f"{problem}; the columns are: {columns}.")


def _as_times(column: pd.Series, name: str) -> pd.Series:
    column = column.reset_index(drop=True)
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column
    times = pd.to_datetime(column, errors="coerce", format="mixed", utc=True)
    unreadable = column[times.isna() & column.notna()]
    if len(unreadable) * 2 > len(column):
        raise ValueError(
            f"Column {name!r} does not hold times; {unreadable.iloc[0]!r} cannot be read as one."
        )
    return times


def _as_numbers(column: pd.Series, name: str) -> pd.Series:
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    numbers = pd.to_numeric(column, errors="coerce")
    bad = column[numbers.isna() & column.notna()]
    if not is_number and (len(bad) or pd.api.types.is_bool_dtype(column)):
        example = bad.iloc[0] if len(bad) else column.iloc[0]
        raise ValueError(f"Column {name!r} is not numeric; it holds {example!r}.")
    return numbers.astype("float64").replace([np.inf, -np.inf], np.nan)


def _is_far_from_mean(values: pd.Series) -> np.ndarray:
    distance = (values - values.mean()).abs()
    return (distance > SIGMAS * values.std()).to_numpy(dtype=bool)


def _is_far_from_neighbours(values: pd.Series, window: int, threshold: float) -> np.ndarray:
    known = values.dropna()
    rolling = {"window": window, "center": True, "min_periods": 1}
    distance = (known - known.rolling(**rolling).median()).abs()
    # Where neighbours hardly differ the local spread says nothing; that of the whole series does.
    # A series that is flat for its most part has none of either, and then the mean counts.
    usual = MAD_TO_SIGMA * distance.median() or MEAN_TO_SIGMA * distance.mean()
    spread = MAD_TO_SIGMA * distance.rolling(**rolling).median()
    far = distance > threshold * spread.clip(lower=usual)
    return far.reindex(values.index, fill_value=False).to_numpy(dtype=bool)


def _describe(
    df: pd.DataFrame, time_name: str, value_name: str, looked_at: int, method: str
) -> str:
    found = df[df["Is_Anomaly"]]
    unusual = {
        "3sigma": f"more than {SIGMAS} standard deviations from their mean",
        "local_median": "unusual for their time",
    }[method]
    text = f"{len(found)} of {looked_at} values of {value_name} are {unusual}."
    left_out = len(df) - looked_at
    if left_out:
        missing = "a value" if method == "3sigma" else "a value or a time"
        text += f" {left_out} rows without {missing} were not looked at."
    if len(found):
        examples = found.head(5)
        pairs = zip(examples[time_name], examples[value_name], strict=True)
        text += " The first: " + "; ".join(f"{time}: {value}" for time, value in pairs) + "."
    return text


def _series(count: int) -> pd.DataFrame:
    days = pd.date_range("2024-01-01", periods=count, freq="D")
    steps = np.arange(count)
    return pd.DataFrame({"day": days, "value": 100 + 10 * np.sin(steps / 7) + steps % 3})


@test_plugin(name="a spike is found", description="One wild value in a wave is the only anomaly.")
def test_a_spike_is_found(plugin: Plugin) -> None:
    """One wild value in a wave is the only anomaly."""
    df = _series(200)
    df.loc[77, "value"] = 500.0
    result, description = plugin(df.sample(frac=1.0, random_state=1), "day", "value")
    assert result.index[result["Is_Anomaly"]].tolist() == [77], description


@test_plugin(name="a local spike is found", description="A value usual elsewhere is unusual here.")
def test_a_local_spike_is_found(plugin: Plugin) -> None:
    """A value that is usual elsewhere in the wave is unusual among its neighbours."""
    df = _series(200)
    df.loc[77, "value"] = 125.0
    result, description = plugin(df, "day", "value", method="local_median")
    assert result.index[result["Is_Anomaly"]].tolist() == [77], description


@test_plugin(name="a calm series has none", description="A smooth wave holds no anomaly.")
def test_a_calm_series_has_none(plugin: Plugin) -> None:
    """A smooth wave holds no anomaly."""
    for method in METHODS:
        result, description = plugin(_series(200), "day", "value", method)
        assert not result["Is_Anomaly"].any(), description
