"""The installer's loop, by its two sides: one that decides, and one that runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from taskweaver.ces.command.command import Command, CommandLimits, CommandResult, run_command
from taskweaver.treesearch.execution.installation.command_loop import (
    STEPS_FILE,
    InstallerResult,
    phase1_iterative_driver,
)


class Decider:
    """A model that says what it is told to, and keeps what it was shown."""

    def __init__(self, *replies: Any) -> None:
        self._replies = list(replies)
        self.shown: list[Mapping[str, Any]] = []

    def __call__(self, progress: Mapping[str, Any]) -> Any:
        self.shown.append(progress)
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


def do(command: str, *, done: bool = False, notes: str = "") -> dict[str, Any]:
    return {"command": command, "done": done, "notes": notes}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    limits = CommandLimits(timeout_s=0.5)
    return lambda text: run_command(Command(text, tmp_path, limits=limits))


def install(run: Any, *replies: Any, **options: Any) -> tuple[InstallerResult, Decider]:
    ask = Decider(*replies)
    return phase1_iterative_driver(ask, run, options.pop("max_steps", 5), **options), ask


def test_step_by_step(run: Any, tmp_path: Path) -> None:
    result, ask = install(
        run, do("echo one > f; cat f", notes="first"), do("cat f none"), do("cat f", done=True),
        folder=tmp_path / "logs",
    )  # fmt: skip
    assert (result.ending, result.is_ok) == ("done", True)
    assert [step.exit_code for step in result.steps] == [0, 1, 0]
    assert ask.shown[0] == {"step": 1, "max_steps": 5, "history": [], "problem": ""}
    assert ask.shown[1]["history"][0]["stdout_summary"] == "one"
    assert "No such file" in ask.shown[2]["history"][1]["stderr_summary"]
    lines = (tmp_path / "logs" / STEPS_FILE).read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    assert [(step["step"], step["command"], step["done"]) for step in kept] == [
        (1, "echo one > f; cat f", False), (2, "cat f none", False), (3, "cat f", True),
    ]  # fmt: skip
    assert kept[0]["notes"] == "first"


@pytest.mark.parametrize(
    ("replies", "ending", "codes"),
    [
        ([do("true"), do("", done=True)], "done", [0, None]),
        ([{"done": True}], "done", [None]),
        # Whoever says it beside the command does not know yet that it fails: it goes on.
        ([do("false", done=True), do("true"), do("", done=True)], "done", [1, 0, None]),
        # Said afterwards, it counts: a probe may fail.
        ([do("exit 7"), do("", done=True)], "done", [7, None]),
        ([do("true"), do("  ")], "empty_command", [0, None]),
        ([do("true")], "max_steps", [0] * 5),
        ([do("exit 3")], "repeated", [3] * 3),
    ],
)
def test_endings(run: Any, replies: list[Any], ending: str, codes: list[int | None]) -> None:
    result, _ = install(run, *replies)
    assert (result.ending, [step.exit_code for step in result.steps]) == (ending, codes)
    assert result.is_ok == (ending == "done")


@pytest.mark.parametrize(
    "bad",
    [
        None, {"command": 3}, {"command": "a\0"}, {"command": "a\ud800"},
        {"command": "ls", "done": "yes"}, {"command": "x" * 200_000}, {"command": [1]},
    ],
)  # fmt: skip
def test_a_reply_that_is_no_decision(run: Any, bad: Any) -> None:
    result, ask = install(run, bad)
    assert result.ending == "bad_reply"
    assert len(ask.shown) == 3
    assert ask.shown[1]["problem"]
    mended, ask = install(run, bad, bad, do("true", done=True))
    assert mended.ending == "done"


def test_what_hangs_has_failed(run: Any) -> None:
    result, ask = install(run, do("sleep 60"), do("true", done=True))
    assert result.ending == "done"
    assert ask.shown[1]["history"][0]["exit_code"] == 124
    assert "its time limit" in ask.shown[1]["history"][0]["stderr_summary"]


def test_what_is_cancelled_ends_it() -> None:
    result, _ = install(lambda _: CommandResult("cancelled"), do("true"))
    assert result.ending == "cancelled"


def test_what_is_missing_is_told_and_it_goes_on(run: Any, tmp_path: Path) -> None:
    def check() -> str:
        return "" if (tmp_path / "lib").exists() else "there is no lib"

    result, ask = install(
        run, do("", done=True), do("touch lib"), do("", done=True), check=check, folder=tmp_path
    )
    assert result.ending == "done"
    assert "there is no lib" in ask.shown[1]["history"][0]["stderr_summary"]
    assert "there is no lib" in (tmp_path / STEPS_FILE).read_text()
    assert install(run, do("", done=True), check=lambda: "all")[0].ending == "max_steps"
