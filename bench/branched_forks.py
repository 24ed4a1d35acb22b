"""Time of the operations on a whole file, by its number of branches.

``python -m bench.branched_forks 100000`` forks that many branches, ten below each, with a core key
on every tenth, and prints the seconds of each operation beside those for a tenth of the branches:
a ratio near 10 is linear.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from bench.common import show, sized
from taskweaver.memory.branched import MemoryConfig, MemoryManager

FORKS = sized(10_000, 100)
CONFIG = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL")
_BELOW_EACH = 10


def _timed(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def _make(path: Path, forks: int) -> None:
    with MemoryManager(path, CONFIG) as memory:
        memory.create_branch(None, branch_id="b0", live=True)
        for number in range(1, forks):
            name = memory.fork(f"b{number // _BELOW_EACH}", f"b{number}")
            if number % 10 == 0:
                memory.set_core(name, "key", f"value {number}")


def measure(forks: int) -> dict[str, float]:
    """Return the seconds of each operation on a file with so many branches."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = folder / "m.sqlite"
        found = {"fork each": _timed(lambda: _make(path, forks))}
        found["open"] = _timed(lambda: MemoryManager(path, CONFIG).close())
        with (
            MemoryManager(path, CONFIG) as memory,
            MemoryManager(folder / "other.sqlite", CONFIG) as other,
        ):
            steps: dict[str, Callable[[], object]] = {
                "list": memory.branches,
                "count": memory.counts,
                "verify": memory.verify,
                "page": lambda: memory.write_page(folder / "m.html"),
                "export": lambda: memory.export(folder / "m.jsonl"),
                "import": lambda: other.import_(folder / "m.jsonl"),
                "prune": lambda: memory.prune("b1"),
                "collect": memory.collect_garbage,
            }
            return found | {name: _timed(step) for name, step in steps.items()}


def run(forks: int = FORKS) -> dict[str, float]:
    """Return the seconds of each operation for that many branches, and their ratio to a tenth."""
    few, many = measure(forks // 10), measure(forks)
    figures = {}
    for name, seconds in many.items():
        figures[f"{name}, {forks:,} branches, s"] = seconds
        figures[f"{name}, of a tenth, ratio"] = seconds / few[name]
    return figures


if __name__ == "__main__":
    show(run(int(sys.argv[1]) if len(sys.argv) > 1 else FORKS))
