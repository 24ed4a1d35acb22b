"""Runs every benchmark and keeps the figures: ``python -m bench``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

NAMES = (
    "startup",
    "cell",
    "kernel_fork",
    "state",
    "plugins",
    "warm_start",
    "sandbox_start",
    "stdout",
    "turn",
    "http_turn",
    "memory_view",
    "branched_memory",
    "reply_stream",
    "search",
    "search_page",
)
RESULTS = Path(__file__).parent / "results" / "latest.json"


def measure(name: str) -> dict[str, float]:
    """Run one benchmark in a process of its own, so that none slows the next."""
    code = f"import json; from bench.{name} import run; print(json.dumps(run()))"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Run the benchmarks one after another; write ``bench/results/latest.json``."""
    figures = {}
    for name in NAMES:
        print(f"\n== {name}", flush=True)
        figures[name] = measure(name)
        for figure, value in figures[name].items():
            print(f"  {figure:<28} {value:.6g}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
