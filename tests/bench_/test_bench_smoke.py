"""Every benchmark runs to its end, at sizes that measure nothing."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench.common import SMALL

TESTS = str(Path(__file__).parents[1])
STARTS = {"sandbox_sessions", "sandbox_start", "warm_start"}
"""Benchmarks of starts of kernels, which start warm processes without libraries.

The others fork their kernels from warm processes that they share.
"""
LONG = {
    "agent_api", "branched_versus", "chat_kills", "fork_files", "http_turn", "kernel_fork", "page",
    "round_end", "sandbox_sessions", "search", "search_executors", "search_page", "session_churn",
    "several_servers", "startup", "stdout", "turn", "warm_start",
}  # fmt: skip
"""Benchmarks of whole programs and many kernels; the gate checks their types."""

NAMES = [
    pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in bench.names()
]
PROGRAM = f"""
import sys, tempfile, traceback
from pathlib import Path
from bench.__main__ import report
sys.path.append({TESTS!r})
from taskweaver.ces.limits import KernelLimits
from warm_kernels import lean_templates, warm_kernels
folder = tempfile.TemporaryDirectory()
with folder, warm_kernels(Path(folder.name) / "warm.log", KernelLimits.default()) as warm:
    for name in sys.argv[1:]:
        print(f"== {{name}}", flush=True)
        try:
            with lean_templates() if name in {STARTS} else warm.in_use():
                report(name)
        except BaseException:
            traceback.print_exc(file=sys.stdout)
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SMALL, "1")


@pytest.fixture(scope="module")
def printed(request: pytest.FixtureRequest) -> dict[str, str]:
    """The output of the chosen benchmarks; one process runs them all, which is far shorter."""
    runs = [item.callspec for item in request.session.items if hasattr(item, "callspec")]
    chosen = {call.params.get("benchmark") for call in runs}
    names = [name for name in bench.names() if name in chosen]
    command = [sys.executable, "-c", PROGRAM, *names]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, cwd=bench.FOLDER.parent, text=True,
        env={**os.environ, SMALL: "1"},
    )  # fmt: skip
    parts = (part.partition("\n") for part in f"\n{done.stdout}".split("\n== ")[1:])
    return {name: text for name, _, text in parts}


@pytest.mark.timeout(3600)  # the first one runs them all
@pytest.mark.parametrize("benchmark", NAMES)
def test_a_benchmark_returns_figures_and_prints_them(
    benchmark: str, printed: dict[str, str]
) -> None:
    table, _, last = printed[benchmark].rstrip("\n").rpartition("\n")
    assert last.startswith("{"), printed[benchmark]
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
