"""The form all benchmarks share: sizes, and the table of figures.

A benchmark is a module of this folder with a function `run` that returns figures by name, and
perhaps a function `show` that prints them with their goals. ``python -m bench`` and the smoke test
run every module of the folder; the smoke test sets `SMALL` in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

SMALL = "TASKWEAVER_BENCH_SMALL"
"""Environment variable that makes all benchmarks tiny: their code runs, figures mean nothing."""


def sized(full: T, small: T) -> T:
    """Return the size a benchmark measures with, or the tiny one of the smoke test."""
    return small if os.environ.get(SMALL) else full


def show(figures: Mapping[str, float]) -> None:
    """Print figures without comment."""
    for name, value in figures.items():
        print(f"  {name:<32} {value:>14,.6g}")
