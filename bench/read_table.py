"""`read_table` over 100 MB of CSV, beside pandas with the same conversions in the same run.

Each reading is followed by a computation: the sum of a column for each group. Medians of several
runs, in turn. Run with ``python -m bench.read_table``.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from bench.common import sized
from taskweaver.tables.names import profile_tables
from taskweaver.tables.reading import load

REPEATS, ROWS = sized((5, 1_500_000), (1, 1_000))
GOAL = 1.2
REQUEST = "total amount per region of customer 4711"


def run() -> dict[str, float]:
    """Return medians in seconds, sizes in bytes, and ratios; see `show`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sales.csv"
        write(file)
        ways: dict[str, Callable[[], pd.DataFrame]] = {
            "plain": lambda: pd.read_csv(file),
            "pandas": lambda: pd.read_csv(file, parse_dates=["day"], date_format="%Y-%m-%d"),
            "read_table": lambda: load(file).frame,
        }
        for way in ways.values():
            way()
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(REPEATS):
            for name, way in ways.items():
                times[name].append(_timed(way))
        since = perf_counter()
        repr(profile_tables(file, REQUEST))
        profile = perf_counter() - since
        size = float(Path(file).stat().st_size)
    found = {name: statistics.median(taken) for name, taken in times.items()}
    return found | {
        "size": size,
        "profile": profile,
        "to_pandas": found["read_table"] / found["pandas"],
        "to_plain": found["read_table"] / found["plain"],
    }


def write(file: Path) -> None:
    """Write sales of customers: integers, dates, texts with few and with many values, numbers."""
    draw = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + draw.integers(0, 1500, ROWS).astype("timedelta64[D]")
    frame = pd.DataFrame(
        {
            "id": np.arange(ROWS),
            "day": days,
            "region": draw.choice(["North", "South", "East", "West"], ROWS),
            "customer": [f"customer {number}" for number in draw.integers(0, 200_000, ROWS)],
            "amount": draw.normal(100, 20, ROWS).round(2),
            "price": draw.random(ROWS) * 50,
            "count": draw.integers(0, 50, ROWS),
        }
    )
    frame.to_csv(file, index=False)


def _timed(way: Callable[[], pd.DataFrame]) -> float:
    since = perf_counter()
    way().groupby("region")["amount"].sum()
    return perf_counter() - since


def show(figures: dict[str, float]) -> None:
    """Print the medians beside each other, with the goal."""
    print(f"sum of a column per group, from {figures['size'] / 1e6:.0f} MB of CSV")
    rows = (
        ("pd.read_csv", "plain"),
        ("pd.read_csv with dates", "pandas"),
        ("read_table", "read_table"),
        ("profile_tables, once", "profile"),
    )
    for name, key in rows:
        print(f"  {name:<26}{figures[key]:>8.2f} s")
    print(f"  read_table takes {figures['to_pandas']:.2f} x pandas with dates, goal <= {GOAL}")
    print(f"  and {figures['to_plain']:.2f} x pd.read_csv alone")


if __name__ == "__main__":
    show(run())
