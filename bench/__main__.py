"""Run benchmarks and keep the figures: ``python -m bench``, or ``python -m bench NAME...``."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import common

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results" / "latest.json"
_NO_BENCHMARKS = {"__init__", "__main__", "common"}
_IN_A_PROCESS = "from bench.__main__ import report; report({name!r})"


def names() -> list[str]:
    """Return the name of every benchmark of this folder."""
    return sorted({path.stem for path in FOLDER.glob("*.py")} - _NO_BENCHMARKS)


def report(name: str) -> None:
    """Run a benchmark in this process; print its table, and a last line of JSON."""
    module = importlib.import_module(f"bench.{name}")
    figures = module.run()
    getattr(module, "show", common.show)(figures)
    print(json.dumps(figures))


def measure(name: str) -> dict[str, float]:
    """Run a benchmark in a process of its own, so that none slows the next; print its table.

    Raises:
        CalledProcessError: If it fails.
    """
    command = [sys.executable, "-c", _IN_A_PROCESS.format(name=name)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=FOLDER.parent, text=True)
    table, _, last = done.stdout.rstrip("\n").rpartition("\n")
    print(table, flush=True)
    figures: dict[str, float] = json.loads(last)
    return figures


def main(chosen: Sequence[str], results: Path = RESULTS) -> int:
    """Run benchmarks one after another and write their figures; return the exit status.

    Args:
        chosen: Their names; none means all.
        results: The file. Figures of benchmarks that are not run stay as they are in it.
    """
    figures = json.loads(results.read_text("utf-8")) if chosen and results.exists() else {}
    failed = []
    for name in chosen or names():
        print(f"\n== {name}", flush=True)
        try:
            figures[name] = measure(name)
        except subprocess.CalledProcessError:
            failed.append(name)
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
