"""10 MB of standard output, beside raw jupyter_client with a stock ipykernel.

The limit of what is kept is raised so that both carry all of it. Run with
``python -m bench.stdout``.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from dataclasses import replace
from time import perf_counter

import psutil
from jupyter_client.manager import start_new_kernel

from bench.common import sized
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import code_execution_service_factory

LINES = sized(10_000, 10)
CODE = f"for _ in range({LINES}): print('x' * 999)"
REPEATS = sized(5, 1)


def run() -> dict[str, float]:
    """Return medians in seconds ``ours`` and ``raw``, their ``ratio``, and the client's growth."""
    with tempfile.TemporaryDirectory() as folder:
        raw_manager, raw = start_new_kernel(stderr=subprocess.DEVNULL)
        limits = replace(KernelLimits.default(), output_limit_bytes=64 << 20)
        manager = code_execution_service_factory(folder, limits=limits)
        client = manager.get_session_client("bench")
        usual = code_execution_service_factory(folder)
        limited = usual.get_session_client("limited")
        try:
            ours, theirs = [], []
            for _ in range(REPEATS):
                since = perf_counter()
                assert sum(map(len, client.execute_code("x", CODE).stdout)) == LINES * 1000
                ours.append(perf_counter() - since)
                since = perf_counter()
                raw.execute_interactive(CODE, output_hook=lambda _message: None)
                theirs.append(perf_counter() - since)
            limited.execute_code("x", "1")
            before = psutil.Process().memory_info().rss
            limited.execute_code("x", CODE)
            growth = psutil.Process().memory_info().rss - before
        finally:
            usual.clean_up()
            manager.clean_up()
            raw.stop_channels()
            raw_manager.shutdown_kernel(now=True)
    medians = statistics.median(ours), statistics.median(theirs)
    return {
        "ours": medians[0],
        "raw": medians[1],
        "ratio": medians[0] / medians[1],
        "growth_bytes_with_default_limit": float(growth),
    }


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    print(f"10 MB of stdout: ours {figures['ours']:.2f} s, raw {figures['raw']:.2f} s,")
    print(f"  ratio {figures['ratio']:.2f} (goal <= 1.3)")
    growth = figures["growth_bytes_with_default_limit"] / (1 << 20)
    print(f"memory of the client with the default limit: + {growth:.1f} MiB")


if __name__ == "__main__":
    show(run())
