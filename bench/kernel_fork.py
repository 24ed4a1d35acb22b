"""Forking a live kernel, beside starting a fresh one and loading the same data.

The data is an array of bytes in a file, 1 GiB and 1 MiB. A fork counts from the request for the
snapshot to the first result in the child. Run with ``python -m bench.kernel_fork``.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from bench.common import sized
from taskweaver.ces.common import Client
from taskweaver.ces.manager import code_execution_service_factory

ROUNDS = sized(5, 1)
SIZES_MIB = {"1gib": sized(1024, 2), "1mib": 1}
LOAD = "import numpy as np; data = np.load({path!r}); int(data[-1])"
MAKE = "import numpy as np; np.save({path!r}, np.full({mib} << 20, 7, 'u1'))"


def run() -> dict[str, float]:
    """Return seconds and ratios: ``fork_*``, ``reload_*``, ``times_faster_*``."""
    figures: dict[str, float] = {}
    for name, mib in SIZES_MIB.items():
        forks, reloads = _measure(mib)
        fork, reload = statistics.median(forks), statistics.median(reloads)
        figures[f"fork_{name}"], figures[f"reload_{name}"] = fork, reload
        figures[f"times_faster_{name}"] = reload / fork
    return figures


def _measure(mib: int) -> tuple[list[float], list[float]]:
    forks, reloads = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "data.npy")
        manager = code_execution_service_factory(folder)
        try:
            parent = manager.get_session_client("parent")
            _must(parent, MAKE.format(path=path, mib=mib))
            _must(parent, LOAD.format(path=path))
            for n in range(ROUNDS):
                since = perf_counter()
                snapshot = parent.snapshot()
                child = manager.fork_session_client(snapshot, f"child{n}")
                _must(child, "int(data[-1])")
                forks.append(perf_counter() - since)
                snapshot.close()
                child.stop()
                since = perf_counter()
                fresh = manager.get_session_client(f"fresh{n}")
                _must(fresh, LOAD.format(path=path))
                reloads.append(perf_counter() - since)
                fresh.stop()
        finally:
            manager.clean_up()
    return forks, reloads


def _must(client: Client, code: str) -> None:
    result = client.execute_code("x", code)
    if not result.is_success:
        raise RuntimeError(result.error)


def show(figures: dict[str, float]) -> None:
    """Print the table."""
    goals = {"1gib": "0.25 s, 10 times faster", "1mib": "0.12 s"}
    for name in SIZES_MIB:
        fork, reload = figures[f"fork_{name}"], figures[f"reload_{name}"]
        faster = figures[f"times_faster_{name}"]
        print(f"{name}: fork to first result {fork:.3f} s; fresh kernel and load {reload:.3f} s;")
        print(f"      {faster:.1f} times faster  (goal {goals[name]})")


if __name__ == "__main__":
    show(run())
