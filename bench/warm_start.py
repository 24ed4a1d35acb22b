"""A new session's first result from a warm kernel, beside a stock kernel's start.

Run with ``python -m bench.warm_start``.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from itertools import product
from time import perf_counter

from jupyter_client.manager import start_new_kernel

from bench.common import sized
from taskweaver.ces.common import Manager
from taskweaver.ces.manager import code_execution_service_factory

ROUNDS = sized(7, 1)
CODES = {"result": "1 + 1", "pandas": "import pandas as pd; pd.DataFrame({'a': [1, 2]}).sum()"}


def run() -> dict[str, float]:
    """Return seconds and ratios: ``warm_*``, ``stock_*``, ``ratio_*``."""
    times: dict[str, list[float]] = {f"{k}_{n}": [] for n in CODES for k in ("warm", "stock")}
    with tempfile.TemporaryDirectory() as folder:
        manager = code_execution_service_factory(folder, is_warm=True)
        try:
            manager.get_session_client("first").execute_code("x", "1")
            for n, (name, code) in product(range(ROUNDS), CODES.items()):
                times[f"warm_{name}"].append(_warm(manager, f"{name}{n}", code))
                times[f"stock_{name}"].append(_stock(code))
        finally:
            manager.clean_up()
    figures = {name: statistics.median(values) for name, values in times.items()}
    for name in CODES:
        figures[f"ratio_{name}"] = figures[f"warm_{name}"] / figures[f"stock_{name}"]
    return figures


def _warm(manager: Manager, name: str, code: str) -> float:
    since = perf_counter()
    client = manager.get_session_client(name)
    result = client.execute_code("x", code)
    taken_s = perf_counter() - since
    client.stop()
    if not result.is_success:
        raise RuntimeError(result.error)
    return taken_s


def _stock(code: str) -> float:
    since = perf_counter()
    manager, client = start_new_kernel(stderr=subprocess.DEVNULL)
    try:
        client.execute_interactive(code, output_hook=lambda _: None)
        return perf_counter() - since
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def show(figures: dict[str, float]) -> None:
    """Print the table."""
    for name, goal in {"result": "0.15", "pandas": "0.20"}.items():
        warm, stock = figures[f"warm_{name}"], figures[f"stock_{name}"]
        print(f"first {name:7} warm {warm:.3f} s, stock {stock:.3f} s;", end=" ")
        print(f"ratio {figures[f'ratio_{name}']:.3f}  (goal {goal})")


if __name__ == "__main__":
    show(run())
