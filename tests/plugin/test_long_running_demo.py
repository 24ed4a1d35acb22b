"""The plugin that takes its time, stopped as the kernel stops a cell: by an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from shipped import make

from taskweaver.plugin import Plugin, temp_context

ROOT = Path(__file__).parents[2]
CELL = """
from shipped import make
from taskweaver.plugin import temp_context
with temp_context() as ctx:
    done, description = make("long_running_demo", ctx)(3, seconds_per_step={seconds})
    print(done, description, ctx.logs)
"""


@pytest.fixture
def demo() -> Iterator[Plugin]:
    with temp_context() as ctx:
        yield make("long_running_demo", ctx)


def test_each_step_is_told(demo: Plugin, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(2, 0) == (2, "All 2 steps are done.")
    assert capsys.readouterr().out == "step 1 of 2 done\nstep 2 of 2 done\n"


def start(seconds: float) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.Popen(
        [sys.executable, "-c", CELL.format(seconds=seconds)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_an_interrupt_ends_it_and_what_was_done_comes_back() -> None:
    with start(2.0) as process:
        assert process.stdout is not None
        # The first line arrives while the work goes on.
        assert process.stdout.readline() == "step 1 of 3 done\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(PATIENCE_S) == 0
    assert rest.startswith("1 Interrupted after 1 of 3 steps.")
    assert rest.count("Interrupted") == 2


@pytest.mark.parametrize("wrong", [-1, True, 2.5, "3", 10**6])
def test_steps_that_make_no_sense_are_refused(demo: Plugin, wrong: Any) -> None:
    with pytest.raises(ValueError, match="steps must be a whole number"):
        demo(wrong)


@pytest.mark.parametrize("wrong", [-1, True, float("nan"), float("inf"), "1"])
def test_seconds_that_make_no_sense_are_refused(demo: Plugin, wrong: Any) -> None:
    with pytest.raises(ValueError, match="seconds_per_step must be"):
        demo(1, wrong)
