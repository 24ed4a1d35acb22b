"""Forking a live kernel, beside starting a fresh one and loading the same data.

The data is an array of bytes in a file, 1 GiB and 1 MiB. A fork counts from the request for the
snapshot to the first result in the child. It is measured with 1 GiB also after the everyday
libraries were used, whose pools sleep in the kernel; and a hundred kernels are forked off one
snapshot, as many at a time as there are cores. Run with ``python -m bench.kernel_fork``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from bench.common import sized
from taskweaver.ces.common import Client
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.manager import KernelManager, code_execution_service_factory

ROUNDS, MANY = sized((5, 100), (1, 2))
SIZES_MIB = {"1gib": sized(1024, 2), "1mib": 1}
LOAD = "import numpy as np; data = np.load({path!r}); int(data[-1])"
MAKE = "import numpy as np; np.save({path!r}, np.full({mib} << 20, 7, 'u1'))"
EVERYDAY = sized(
    """
import matplotlib.pyplot as plt, numexpr, pandas as pd, scipy.fft
from sklearn.ensemble import HistGradientBoostingClassifier
from tqdm import tqdm
df = pd.DataFrame({"g": list("abcd") * 5000, "x": range(20_000)})
df.to_parquet("d.parquet")
df = pd.read_parquet("d.parquet")
df.to_csv("d.csv")
df = pd.read_csv("d.csv", engine="pyarrow")
matrix = np.ones((500, 500))
matrix @ matrix
scipy.fft.fft2(matrix, workers=2)
numexpr.evaluate("2 * matrix")
HistGradientBoostingClassifier(max_iter=3).fit(df[["x"]], df.g)
plt.plot([1, 2])
plt.savefig("p.png")
plt.close()
sum(tqdm(range(10)))
""",
    "import pandas as pd; df = pd.DataFrame({'x': [1]})",
)


def run() -> dict[str, float]:
    """Return seconds and ratios: ``fork_*``, ``reload_*``, ``times_faster_*``, ``hundred_forks``.

    ``fork_1gib_libraries`` is the fork of 1 GiB after the everyday libraries were used.
    """
    figures: dict[str, float] = {}
    for name, mib in SIZES_MIB.items():
        forks, reloads = _measure(mib)
        fork, reload = statistics.median(forks), statistics.median(reloads)
        figures[f"fork_{name}"], figures[f"reload_{name}"] = fork, reload
        figures[f"times_faster_{name}"] = reload / fork
    figures["fork_1gib_libraries"] = statistics.median(_measure_libraries())
    figures["hundred_forks"] = _measure_many()
    return figures


def _measure(mib: int) -> tuple[list[float], list[float]]:
    forks, reloads = [], []
    with _loaded(mib) as (manager, parent, load):
        for n in range(ROUNDS):
            forks.append(_fork(parent, f"child{n}"))
            since = perf_counter()
            fresh = manager.get_session_client(f"fresh{n}")
            _must(fresh, load)
            reloads.append(perf_counter() - since)
            fresh.stop()
    return forks, reloads


def _measure_libraries() -> list[float]:
    forks = []
    with _loaded(SIZES_MIB["1gib"]) as (_, parent, _):
        for n in range(ROUNDS):
            _must(parent, EVERYDAY)
            forks.append(_fork(parent, f"child{n}"))
    return forks


def _measure_many() -> float:
    """Return the seconds in which a hundred kernels are forked off one snapshot."""
    with _loaded(SIZES_MIB["1gib"]) as (_, parent, _):
        since = perf_counter()
        snapshot = parent.snapshot()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            names = [f"many{n}" for n in range(MANY)]
            list(pool.map(snapshot.fork, names))
        seconds = perf_counter() - since
        snapshot.close()
    return seconds


@contextmanager
def _loaded(mib: int) -> Iterator[tuple[KernelManager, Kernel, str]]:
    """Give a kernel with its data, and the code that loads them."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "data.npy")
        load = LOAD.format(path=path)
        manager = code_execution_service_factory(folder)
        try:
            parent = manager.get_session_client("parent")
            _must(parent, MAKE.format(path=path, mib=mib))
            _must(parent, load)
            yield manager, parent, load
        finally:
            manager.clean_up()


def _fork(parent: Kernel, name: str) -> float:
    since = perf_counter()
    snapshot = parent.snapshot()
    child = snapshot.fork(name)
    _must(child, "int(data[-1])")
    seconds = perf_counter() - since
    snapshot.close()
    child.stop()
    return seconds


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
    used = figures["fork_1gib_libraries"]
    print(f"1gib, everyday libraries used: fork to first result {used:.3f} s  (goal 0.12 s)")
    many = figures["hundred_forks"]
    print(f"1gib: a hundred kernels forked off one snapshot in {many:.2f} s  (goal 3 s)")


if __name__ == "__main__":
    show(run())
