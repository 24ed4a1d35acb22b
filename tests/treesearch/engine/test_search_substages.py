"""Substages: goals a model sets, what it says of stages, and breaks in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from desk import Asked, Desk, at_desk
from patience import PATIENCE_S
from search_lab import FAST, NAMES, Climber, proposal, search

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.engine.substages import Substages
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Objective
from taskweaver.treesearch.model.stages import STAGES, StageState
from taskweaver.treesearch.record.runlog import read_log
from taskweaver.treesearch.service import start_search

GOALS = {
    "stage1_nodes": 1, "num_drafts": 1, "stage2_nodes": 30, "stage3_nodes": 0, "stage4_nodes": 0,
    "num_seeds": 0, "goals": True, "max_substages": 5, "summaries": True,
}  # fmt: skip

FLAT = Climber(lambda _: 1.0)
"""One that nothing helps: a substage ends with what there is to try."""


def verdicts(*are_complete: bool) -> dict[str, Callable[[Asked], str]]:
    """Answer as asked whether the goals are reached, and set numbered ones."""
    left = list(are_complete)

    def judge(_: Asked) -> str:
        done = left.pop(0)
        return json.dumps({"is_complete": done, "reasoning": "all" if done else "z is missing"})

    def goals(asked: Asked) -> str:
        return json.dumps({"goals": f"Goal {len(left)}, \ud800 not {asked.prompt['Goals'][:8]}"})

    return {"completion": judge, "goals": goals}


def root_events(made: Search) -> list[tuple[str, str]]:
    with MemoryManager(made.places.memory) as store:
        return [
            (event.kind, str(event.data["mark"]))
            for event in reversed(store["root"].events())
            if event.kind in {kind for kind, _ in ALL_EVENTS}
        ]


def texts(made: Search) -> str:
    with MemoryManager(made.places.memory) as store:
        return "\n".join(event.text for event in store["root"].events())


ALL_EVENTS = [
    ("substage_complete", "1_initial_implementation_1"),
    ("stage_summary", "1_initial_implementation"),
    ("stage_progression", "1_initial_implementation"),
    ("substage_incomplete", "2_baseline_tuning_1"),
    ("goal_generated", "2_baseline_tuning_2"),
    ("substage_complete", "2_baseline_tuning_2"),
    ("stage2_complete", "2_baseline_tuning"),
    ("stage_summary", "2_baseline_tuning"),
    ("stage_progression", "2_baseline_tuning"),
]


def test_a_model_sets_goals_until_they_are_reached(tmp_path: Path) -> None:
    answers = verdicts(False, True)
    answers["stage summary"] = lambda _: 'It was so:\n{"summary": "x helped"}'
    desk = Desk(answers, FLAT)
    with at_desk(tmp_path, desk) as (project, _):
        made = search(project, None, **GOALS)
    assert root_events(made) == ALL_EVENTS
    said = [asked for asked in desk.asked if asked.step in answers and not asked.is_memory]
    assert [asked.step for asked in said] == [
        "stage summary", "completion", "goals", "completion", "stage summary",
    ]  # fmt: skip
    assert "z is missing" in texts(made)
    second = [node for node in made.state.journal.of_stage(2) if node.substage == 2]
    assert second
    first = [one.prompt for one in desk.of("attempt") if "Parsing Feedback" not in one.prompt]
    told = Counter(prompt["Stage"].split(", ")[0] for prompt in first)
    assert told["2_baseline_tuning: Goal 1"] == len(second)
    assert desk.of("completion")[1].prompt["Goals"].startswith("Goal 1, ")
    assert [passed.summary.splitlines()[0] for passed in made.state.passed] == ["x helped"] * 2


@pytest.mark.parametrize(("most", "is_open"), [(1, False), (2, True)])
def test_goals_are_set_for_as_many_substages_as_configured(
    tmp_path: Path, most: int, *, is_open: bool
) -> None:
    given = {f"search.{name}": value for name, value in (GOALS | {"max_substages": most}).items()}
    given["search.memory"] = False
    config = SearchConfig(AppConfigSource(None, given, tmp_path))
    journal = Journal(Objective("height"))
    substages = Substages(config, journal, agent=None, asks=True)  # type: ignore[arg-type]
    assert substages.is_open(StageState(STAGES[1])) is is_open


def test_without_an_answer_a_stage_ends_by_its_figures(tmp_path: Path) -> None:
    desk = Desk({"completion": lambda _: 400, "stage summary": lambda _: 500}, FLAT)
    with at_desk(tmp_path, desk) as (project, _):
        made = search(project, None, **(GOALS | {"memory": False}))
    assert made.state.is_over
    assert not desk.of("goals")
    assert [passed.state.stage.number for passed in made.state.passed] == [1, 2]
    assert all("nodes, " in passed.summary for passed in made.state.passed)


def cli(project: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "taskweaver", "-p", str(project), "search", "--plain", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def test_what_the_log_has_is_not_asked_for_again(tmp_path: Path) -> None:
    """As if it had been killed when the second substage begins, and when its stage has ended."""
    desk = Desk(verdicts(False, True, True), FLAT)
    with at_desk(tmp_path, desk) as (project, _):
        made = search(project, None, **GOALS)
        lines = made.places.log.read_bytes().splitlines(keepends=True)
        told = read_log(made.places.log)
        begun = next(n for n, entry in enumerate(told) if entry.get("substage") == 2)
        ended = max(n for n, entry in enumerate(told) if entry["t"] == "stage_ended")
        for end, wanted in (
            (begun, {"completion": 1, "stage summary": 1}),
            (ended, {"stage summary": 1}),
        ):
            made.places.log.write_bytes(b"".join(lines[: end + 1]))
            desk.asked.clear()
            again = search(project, None, resume=True)
            assert again.state.is_over
            asked = Counter(asked.step for asked in desk.asked if not asked.is_memory)
            steps = ("completion", "goals", "stage summary")
            assert {step: asked[step] for step in steps if asked[step]} == wanted
            assert Counter(root_events(again)) == Counter(ALL_EVENTS)
            assert [passed.state.label for passed in again.state.passed] == [
                "1_initial_implementation_1", "2_baseline_tuning_2",
            ]  # fmt: skip


class Still(Climber):
    """One that never moves: a substage ends with its first attempt."""

    def attempt(self, _: Mapping[str, str]) -> dict[str, Any]:
        return proposal(dict.fromkeys(NAMES, 0), height=1.0)


@pytest.mark.long
def test_what_was_set_and_said_is_not_asked_for_again(tmp_path: Path) -> None:
    """Kill it when the second substage begins, and when its stage is summed up; go on each time."""
    running: list[subprocess.Popen[bytes]] = []
    answers: dict[str, Any] = verdicts(False, True)

    def kill_once(step: str, reply: str, is_time: Callable[[Asked], bool]) -> None:
        left = [True]

        def answer(asked: Asked) -> str | None:
            if left and is_time(asked):
                left.pop()
                running[-1].kill()
            return reply or None

        answers[step] = answer

    kill_once("attempt", "", lambda asked: "Goal 1" in asked.prompt["Stage"])
    summary = '{"summary": "x helped"}'
    kill_once("stage summary", summary, lambda asked: "tuning" in asked.prompt["Figures"])
    desk = Desk(answers, FLAT)
    settings = {f"search.{name}": value for name, value in GOALS.items()}
    with at_desk(tmp_path, desk, **(FAST | settings)) as (project, _):
        for words in ([str(project / "idea.md"), "--name", "run"], ["--resume", "run"]):
            with cli(project, *words) as process:
                running.append(process)
            assert process.returncode == -9
        made = search(project, None, resume=True)
    assert made.state.is_over
    assert Counter(root_events(made)) == Counter(ALL_EVENTS)
    asked = Counter(asked.step for asked in desk.asked if not asked.is_memory)
    assert (asked["completion"], asked["goals"], asked["stage summary"]) == (2, 1, 3)
    assert [passed.state.label for passed in made.state.passed] == [
        "1_initial_implementation_1", "2_baseline_tuning_2",
    ]  # fmt: skip
    second = [node for node in made.state.journal.of_stage(2) if node.substage == 2]
    assert second
    assert all(node.is_good for node in second)


def test_a_search_that_waits_for_goals_can_be_stopped(tmp_path: Path) -> None:
    waits, goes_on = threading.Event(), threading.Event()

    def wait(_: Asked) -> str:
        waits.set()
        goes_on.wait(PATIENCE_S)
        return json.dumps({"is_complete": True, "reasoning": ""})

    still = Desk({"completion": wait}, Still())
    alone = GOALS | {"summaries": False}
    settings = FAST | {f"search.{name}": value for name, value in alone.items()}
    settings["memory.enabled"] = False
    with at_desk(tmp_path, still) as (project, _):
        with (
            TaskWeaverApp(project) as app,
            start_search(app, project / "idea.md", settings, name="run") as stopped,
        ):
            thread = threading.Thread(target=stopped.run, args=[lambda _: None])
            thread.start()
            assert waits.wait(PATIENCE_S)
            stopped.stop()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
            assert not stopped.state.is_over
        goes_on.set()
        assert search(project, None, resume=True).state.is_over
