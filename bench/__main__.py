"""Runs every benchmark and keeps the figures: ``python -m bench``."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

NAMES = ("startup", "cell", "stdout", "turn", "http_turn", "memory_view", "reply_stream")
RESULTS = Path(__file__).parent / "results" / "latest.json"


def main() -> None:
    """Run the benchmarks one after another; write ``bench/results/latest.json``."""
    figures = {}
    for name in NAMES:
        module = importlib.import_module(f"bench.{name}")
        print(f"\n== {name}", flush=True)
        figures[name] = module.run()
        for figure, value in figures[name].items():
            print(f"  {figure:<28} {value:.6g}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
