"""A trivial cell, beside raw jupyter_client with a stock ipykernel.

Both kernels run at once and are asked in turn. Run with ``python -m bench.cell``.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Callable
from time import perf_counter

from jupyter_client.manager import start_new_kernel

from bench.common import sized
from taskweaver.ces.manager import code_execution_service_factory

CELLS = sized(200, 3)


def run() -> dict[str, float]:
    """Return seconds: ``start`` and ``cell``, each also ``raw_``, and their ratios."""
    with tempfile.TemporaryDirectory() as folder:
        since = perf_counter()
        raw_manager, raw = start_new_kernel(stderr=subprocess.DEVNULL)
        raw.execute_interactive("1", output_hook=_ignore)
        raw_start = perf_counter() - since
        since = perf_counter()
        manager = code_execution_service_factory(folder)
        client = manager.get_session_client("bench")
        client.execute_code("0", "1")
        start = perf_counter() - since
        try:
            ours, theirs = [], []
            for _ in range(CELLS):
                ours.append(_timed(lambda: client.execute_code("x", "1")))
                theirs.append(_timed(lambda: raw.execute_interactive("1", output_hook=_ignore)))
        finally:
            manager.clean_up()
            raw.stop_channels()
            raw_manager.shutdown_kernel(now=True)
    cell, raw_cell = statistics.median(ours), statistics.median(theirs)
    return {
        "start": start,
        "raw_start": raw_start,
        "start_ratio": start / raw_start,
        "cell": cell,
        "raw_cell": raw_cell,
        "cell_ratio": cell / raw_cell,
    }


def _ignore(_message: object) -> None:
    """Drop a message."""


def _timed(job: Callable[[], object]) -> float:
    since = perf_counter()
    job()
    return perf_counter() - since


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    print(f"{'':<24}{'ours':>10}{'raw':>10}{'ratio':>8}")
    for name in ("start", "cell"):
        ours, raw, ratio = (figures[key] for key in (name, f"raw_{name}", f"{name}_ratio"))
        label = "start to first result" if name == "start" else f"cell, median of {CELLS}"
        print(f"{label:<24}{ours * 1e3:>7.1f} ms{raw * 1e3:>7.1f} ms{ratio:>8.2f}")
    print("goal: cell <= 1.0 of raw")


if __name__ == "__main__":
    show(run())
