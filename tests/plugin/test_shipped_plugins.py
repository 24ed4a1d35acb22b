"""The plugins in the top-level folder, called as the kernel calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from shipped import REGISTRY, SHIPPED, make

from taskweaver.plugin import Plugin


@pytest.fixture
def anomalies(context: Any) -> Plugin:
    return make("anomaly_detection", context)


def test_all_shipped_plugins_are_found() -> None:
    """Their own tests run in a kernel, in `tests/ces`."""
    assert REGISTRY.broken == {}
    assert sorted(REGISTRY.plugins) == SHIPPED


def noise(count: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    hours = pd.date_range("2024-01-01", periods=count, freq="h").astype(str)
    return pd.DataFrame({"When": hours, "Count": rng.normal(100, 5, count), "Other": "x"})


@pytest.mark.parametrize("method", [{}, {"method": "3sigma"}, {"method": "local_median"}])
def test_spikes_in_noise_are_found_and_the_rest_is_kept(
    anomalies: Plugin, method: dict[str, str]
) -> None:
    df = noise()
    df.loc[[50, 300], "Count"] = [200.0, 0.0]
    result, description = anomalies(df.sample(frac=1, random_state=3), "When", "Count", **method)
    assert result.index[result["Is_Anomaly"]].tolist() == [50, 300]
    assert list(result.columns) == ["When", "Count", "Other", "Is_Anomaly"]
    assert result["When"].is_monotonic_increasing
    assert description.startswith("2 of 600 values of Count")
    assert "200.0" in description
    assert "Is_Anomaly" not in df


def test_missing_values_and_times_are_left_out_and_told(anomalies: Plugin) -> None:
    df = noise()
    df.loc[[1, 2], "Count"] = [np.nan, np.inf]
    df.loc[3, "When"] = None
    df.loc[4, "When"] = "the day after"
    result, description = anomalies(df, "When", "Count", "local_median")
    assert len(result) == 600
    assert "4 rows without a value or a time" in description
    result, description = anomalies(df, "When", "Count")
    assert len(result) == 600
    assert "2 rows without a value were not looked at" in description


def test_without_a_method_values_are_judged_as_the_original_does(anomalies: Plugin) -> None:
    df = noise()
    df["Count"] += 0.1 * np.arange(600)  # a trend, which hides a local spike
    df.loc[[10, 500], "Count"] = [150.0, 300.0]
    mean, cutoff = df["Count"].mean(), 3 * df["Count"].std()
    expected = df.index[(df["Count"] < mean - cutoff) | (df["Count"] > mean + cutoff)].tolist()
    result, _ = anomalies(df, "When", "Count")
    assert result.index[result["Is_Anomaly"]].tolist() == expected == [500]
    result, _ = anomalies(df, "When", "Count", method="local_median")
    assert result.index[result["Is_Anomaly"]].tolist() == [10, 500]
    with pytest.raises(ValueError, match="must be one of 3sigma, local_median, not 'best'"):
        anomalies(df, "When", "Count", method="best")


@pytest.mark.parametrize(
    ("values", "unusual"),
    [([], 0), ([3], 0), ([5] * 40, 0), ([0] * 60 + [9], 1), (list(range(50)), 0)],
)
@pytest.mark.parametrize("method", ["3sigma", "local_median"])
def test_plain_series_are_judged_plainly(
    anomalies: Plugin, values: list[int], unusual: int, method: str
) -> None:
    df = pd.DataFrame({"t": range(len(values)), "v": pd.Series(values, dtype="float64")})
    result, _ = anomalies(df, "t", "v", method)
    assert int(result["Is_Anomaly"].sum()) == unusual


def test_numbers_kept_as_text_are_read(anomalies: Plugin) -> None:
    df = pd.DataFrame({"t": range(3), "v": ["1", "2", None]})
    assert anomalies(df, "t", "v")[1].startswith("0 of 2 values")


@pytest.mark.parametrize(
    ("time", "value", "problem"),
    [
        ("Wehn", "Count", "no column 'Wehn'; the columns are: When, Count, Other"),
        ("When", "Sum", "no column 'Sum'"),
        ("When", "Other", "'Other' is not numeric; it holds 'x'"),
        ("Other", "Count", "'Other' does not hold times"),
    ],
)
def test_a_column_that_does_not_fit_is_named(
    anomalies: Plugin, time: str, value: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        anomalies(noise(20), time, value)


def test_what_is_no_table_is_refused(anomalies: Plugin) -> None:
    with pytest.raises(ValueError, match="needs a DataFrame, not list"):
        anomalies([1], "a", "b")
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="Two columns are 'a'"):
        anomalies(twice, "a", "a")
    flags = pd.DataFrame({"t": [1, 2], "v": [True, False]})
    with pytest.raises(ValueError, match="not numeric"):
        anomalies(flags, "t", "v")


def test_a_document_comes_back_with_a_line_about_it(context: Any, tmp_path: Path) -> None:
    read, path = make("document_text", context), tmp_path / "note.txt"
    path.write_text("one\ntwo\n")
    assert read(str(path)) == ("one\ntwo\n", "8 characters in 3 lines.")
    assert read(str(path), 8)[1] == "8 characters in 3 lines."
    text, description = read(str(path), max_chars=3)
    assert text == "one"
    assert description == "3 characters in 1 lines. There is more; only the beginning was read."
    path.write_text("")
    assert "note.txt holds no text" in read(str(path))[1]
    for limit in (0, -5, True, "10", 1.5):
        with pytest.raises(ValueError, match="max_chars must be a whole number"):
            read("any.txt", limit)


def test_each_step_of_long_work_is_printed(
    context: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = make("long_running_demo", context)
    assert demo(2, 0) == (2, "All 2 steps are done.")
    assert capsys.readouterr().out == "step 1 of 2 done\nstep 2 of 2 done\n"
    for steps in (-1, True, 2.5, "3", 10**6):
        with pytest.raises(ValueError, match="steps must be a whole number"):
            demo(steps)
    for seconds in (-1, True, float("nan"), float("inf"), "1"):
        with pytest.raises(ValueError, match="seconds_per_step must be"):
            demo(1, seconds)
