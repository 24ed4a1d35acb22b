"""A kernel's start and a trivial cell in the sandbox, beside the same without one.

Both are asked in turn. Run with ``python -m bench.sandbox_start``.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from bench.common import sized
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy

ROUNDS, CELLS = sized((7, 100), (1, 2))
TIERS = {"plain": None, "boxed": SandboxPolicy()}


def run() -> dict[str, float]:
    """Return medians in seconds, ``start_*`` and ``cell_*``, and the ratios boxed to plain."""
    starts: dict[str, list[float]] = {name: [] for name in TIERS}
    cells: dict[str, list[float]] = {name: [] for name in TIERS}
    for _ in range(ROUNDS):
        for name, policy in TIERS.items():
            start, cell = _measure(policy)
            starts[name].append(start)
            cells[name].append(cell)
    figures = {f"start_{name}": statistics.median(times) for name, times in starts.items()}
    figures |= {f"cell_{name}": statistics.median(times) for name, times in cells.items()}
    for what in ("start", "cell"):
        figures[f"{what}_ratio"] = figures[f"{what}_boxed"] / figures[f"{what}_plain"]
    return figures


def _measure(policy: SandboxPolicy | None) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        manager = code_execution_service_factory(Path(folder), sandbox=policy)
        try:
            since = perf_counter()
            client = manager.get_session_client("bench")
            client.execute_code("0", "1")
            start = perf_counter() - since
            times = []
            for _ in range(CELLS):
                since = perf_counter()
                client.execute_code("x", "1")
                times.append(perf_counter() - since)
        finally:
            manager.clean_up()
    return start, statistics.median(times)


def show(figures: dict[str, float]) -> None:
    """Print the table."""
    for what, goal in {"start": "1.3", "cell": "1.0"}.items():
        plain, boxed = figures[f"{what}_plain"] * 1000, figures[f"{what}_boxed"] * 1000
        ratio = figures[f"{what}_ratio"]
        print(
            f"{what:6} plain {plain:6.1f} ms, sandbox {boxed:6.1f} ms; {ratio:.2f}  (goal {goal})"
        )


if __name__ == "__main__":
    show(run())
