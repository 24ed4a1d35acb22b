"""Substages: goals a model sets, what it says of stages, and breaks in between."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from desk import Asked, Desk, at_desk
from patience import PATIENCE_S
from search_lab import ONE, Climber, opened, search, stopped_after

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.engine.stage_questions import StageAgent
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Objective
from taskweaver.treesearch.model.stages import STAGES, StageState
from taskweaver.treesearch.record.runlog import read_log

GOALS = ONE | {"stage2_nodes": 30, "goals": True, "max_substages": 5, "summaries": True}
FLAT = Climber(lambda _: 1.0)
"""One that nothing helps: a substage ends with what there is to try."""


def verdicts(*are_complete: bool) -> dict[str, Callable[[Asked], str]]:
    """Answer as asked whether the goals are reached, and set numbered ones."""
    left = list(are_complete)

    def judge(_: Asked) -> str:
        done = left.pop(0)
        return json.dumps({"is_complete": done, "reasoning": "all" if done else "z is missing"})

    def goals(asked: Asked) -> str:
        if "Parsing Feedback" not in asked.prompt:
            return "nothing"  # it is asked again
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
        "stage summary", "completion", "goals", "goals", "completion", "stage summary",
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
    run: Any = SimpleNamespace(config=config, journal=journal, is_embedded=False)
    assert StageAgent(run, LLMApi(run)).is_open(StageState(STAGES[1])) is is_open


def test_without_an_answer_a_stage_ends_by_its_figures(tmp_path: Path) -> None:
    desk = Desk({"completion": lambda _: 400, "stage summary": lambda _: 500}, FLAT)
    with at_desk(tmp_path, desk) as (project, _):
        made = search(project, None, **(GOALS | {"memory": False}))
    assert made.state.is_over
    assert not desk.of("goals")
    assert [passed.state.stage.number for passed in made.state.passed] == [1, 2]
    assert all("nodes, " in passed.summary for passed in made.state.passed)


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


def test_a_search_that_waits_for_goals_can_be_stopped(tmp_path: Path) -> None:
    waits, goes_on = threading.Event(), threading.Event()

    def wait(_: Asked) -> str:
        waits.set()
        goes_on.wait(PATIENCE_S)
        return json.dumps({"is_complete": True, "reasoning": ""})

    settings = GOALS | {"summaries": False, "memory": False}
    with at_desk(tmp_path, Desk({"completion": wait}, FLAT)) as (project, _):
        with opened(project, **settings) as stopped:
            with stopped_after(stopped):
                assert waits.wait(PATIENCE_S)
            assert not stopped.state.is_over
        goes_on.set()
        assert search(project, None, resume=True).state.is_over
