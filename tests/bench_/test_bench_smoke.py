"""Every benchmark runs to its end, at sizes that measure nothing."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench.common import SMALL

LONG = {
    "agent_api", "branched_versus", "chat_kills", "fork_files", "http_turn", "kernel_fork", "page",
    "round_end", "sandbox_sessions", "sandbox_start", "search", "search_executors", "search_page",
    "session_churn", "several_servers", "shares", "startup", "stdout", "turn", "warm_start",
}  # fmt: skip
"""Benchmarks of whole programs and many kernels; the gate checks their types."""

NAMES = [
    pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in bench.names()
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import the benchmarks anew, at sizes that measure nothing, and forget them afterwards."""
    monkeypatch.setenv(SMALL, "1")
    for name in _imported():
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in _imported():
        del sys.modules[name]
    resource_tracker._resource_tracker._stop()  # that of processes which a benchmark spawned


def _imported() -> list[str]:
    return [name for name in sys.modules if name.startswith("bench.") and name != bench.__name__]


@pytest.mark.parametrize("benchmark", NAMES)
def test_a_benchmark_returns_figures_and_prints_them(
    benchmark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.report(benchmark)
    table, _, last = capsys.readouterr().out.rstrip("\n").rpartition("\n")
    figures = json.loads(last)

    assert figures
    assert all(math.isfinite(value) for value in figures.values())
    assert table.strip()


def test_every_script_of_the_folder_is_a_benchmark() -> None:
    scripts = {path.stem for path in bench.FOLDER.glob("[!_]*.py")}

    assert scripts - set(bench.names()) == {"common"}


def test_figures_are_kept_although_one_benchmark_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results" / "latest.json"

    status = bench.main(["no_benchmark", "memory_view"], results)

    assert status == 1
    assert list(json.loads(results.read_text())) == ["memory_view"]
    assert "failed: no_benchmark" in capfd.readouterr().err
    assert bench.main(["reply_stream"], results) == 0
    assert list(json.loads(results.read_text())) == ["memory_view", "reply_stream"]
    assert sys.modules.get("bench.memory_view") is None
