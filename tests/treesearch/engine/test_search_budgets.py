"""What a run may spend, and what it says it spent: every call, and not a moment longer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from desk import Asked, Desk, at_desk
from patience import PATIENCE_S
from search_lab import (
    FAST,
    FULL,
    Climber,
    hill,
    lab,
    opened,
    search,
    stopped_after,
    trying,
)

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage, ModelRequest
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.record.run_folder import load_config
from taskweaver.treesearch.record.runlog import fold, read_log
from taskweaver.treesearch.service import find_run, report_run, resume_search, start_search

PRICES = {"llm.prompt_price": 1000.0, "llm.completion_price": 1000.0}
ALL = FULL | {"goals": True}


def costs_of(project: Path) -> dict[str, Any]:
    return json.loads((project / "experiments/run/costs.json").read_text())


class Waiting(Climber):
    """A model that does not answer some questions until they are given up; it says when asked."""

    def __init__(self, word: str = "") -> None:
        super().__init__()
        self._word, self.is_asked = word, threading.Event()

    def __call__(self, messages: Sequence[ChatMessage], request: ModelRequest) -> str:
        if self._word in str(messages[-1]["content"]):
            self.is_asked.set()
            assert request.cancel.wait(PATIENCE_S)
        return super().__call__(messages, request)


@pytest.mark.parametrize("known", [{}, {"llm.prompt_price": 1.0}])
def test_a_limit_of_money_needs_prices(tmp_path: Path, known: Mapping[str, float]) -> None:
    project = lab(tmp_path, **known)
    model = Climber()
    with TaskWeaverApp(project, model=model) as app:
        with pytest.raises(SearchError, match=r"llm\.prompt_price and llm\.completion_price,"):
            start_search(app, project / "idea.md", {"search.cost_limit": 1e-6}, name="run")
        assert not (project / "experiments/run").exists()
        start_search(app, project / "idea.md", FAST, name="run").close()
        with pytest.raises(SearchError, match=r"llm\.prompt_price"):
            resume_search(app, "run", {"search.cost_limit": 5.0})
        assert "search.cost_limit" not in load_config(find_run(app, "run"))[0]
    assert not model.prompts


def test_no_call_is_made_when_the_money_is_spent(tmp_path: Path) -> None:
    project = lab(tmp_path, **PRICES)
    model = Climber()
    made = search(project, model, cost_limit=1e-6, report=True)
    assert made.state.is_spent
    assert made.state.reason.startswith("it has cost ")
    assert len(model.prompts) == 1
    assert costs_of(project)["total"]["money"] == made.budget.money_used > 1e-6
    more = search(project, model, resume=True, cost_limit=0.0, steps=2)
    assert more.state.reason == "limit of the run reached: 2 nodes"


def test_tokens_are_counted_call_by_call(tmp_path: Path) -> None:
    project = lab(tmp_path)
    one = search(project, Climber(), name="one", steps=1, **ALL)
    log = read_log(one.places.log)
    (node,) = one.state.journal.nodes
    assert fold([e for e in log if e["t"] != "call"]).spent == node.cost  # a log without calls
    calls = [e["cost"] for e in log if e["t"] == "call"]
    longest = max(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
    limit = one.budget.tokens_used // 2
    made = search(project, Climber(), token_limit=limit, workers=2, **ALL)
    assert made.state.is_spent
    assert limit <= made.budget.tokens_used <= limit + 2 * longest


def test_every_call_is_in_the_account(tmp_path: Path) -> None:
    project = lab(tmp_path, **PRICES, **{"memory.archival_max_chars": 300})
    model, beginnings = Climber(), list[str]()

    def noting(messages: Sequence[ChatMessage], request: ModelRequest) -> str:
        beginnings.append(str(messages[-1]["content"])[:30])
        return model(messages, request)

    made = search(project, noting, report=True, steps=3, stage1_nodes=1, num_drafts=1, **ALL)
    assert "Shorten the text below to at m" in beginnings
    found = costs_of(project)
    assert found["total"]["calls"] == made.budget.spent.calls == len(model.prompts)
    beside, nodes = found["beside_nodes"], found["by_stage"].values()
    for key in ("calls", "prompt_tokens", "completion_tokens", "money"):
        assert beside[key] > 0
        of_nodes = sum(stage["total"][key] for stage in nodes)
        assert found["total"][key] == pytest.approx(of_nodes + beside[key])
    assert "| beside nodes |" in (made.places.folder / "report.md").read_text()


def test_calls_of_attempts_that_were_given_up_are_counted_in_all_sittings(tmp_path: Path) -> None:
    project = lab(tmp_path)

    def fault(prompt: Mapping[str, str]) -> str | None:
        if prompt.get("Kind of attempt") == "hyperparam":
            stopped.stop()
        return None

    model = Climber(fault=fault)
    with opened(project, model, **FULL, stage1_nodes=1, num_drafts=1, steps=2) as stopped:
        stopped.run(lambda _: None)
        assert not stopped.state.is_over
    state = fold(read_log(stopped.places.log))
    assert state.spent.calls >= len(model.prompts) - 1  # one was cut off, and said nothing
    first = state.spent
    again = Climber()
    search(project, again, resume=True, report=True)
    assert costs_of(project)["total"]["calls"] == first.calls + len(again.prompts)
    with TaskWeaverApp(project, model=again) as app:
        report_run(app, find_run(app, "run"))
    assert costs_of(project)["total"]["calls"] == first.calls + len(again.prompts)


class Meeting(Climber):
    """A model that answers when it was asked twice; it counts its callers."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(2)
        self._now = 0
        self.most = 0

    def __call__(self, messages: Sequence[ChatMessage], request: ModelRequest) -> str:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            with suppress(threading.BrokenBarrierError):
                self._barrier.wait(20.0)
            self._barrier.abort()
            return super().__call__(messages, request)
        finally:
            with self._lock:
                self._now -= 1


def test_only_so_many_calls_are_made_at_a_time(tmp_path: Path) -> None:
    model = Meeting()
    made = search(lab(tmp_path), model, workers=6, model_calls=2, num_drafts=5, steps=5)
    assert made.state.is_over
    assert model.most == 2


def test_calls_that_wait_for_a_place_are_given_up(tmp_path: Path) -> None:
    model = Waiting()
    with opened(lab(tmp_path), model, workers=3, model_calls=1) as stopped:
        with stopped_after(stopped):
            assert model.is_asked.wait(PATIENCE_S)
        assert len(stopped.state.journal) == 0


class _Stopping(dict[str, tuple[str, float]]):
    """Phases of nodes; the first that begins stops the search, which knows of the node by then."""

    def __init__(self, search: Search) -> None:
        super().__init__()
        self._search = search
        self.is_known = threading.Event()

    def __setitem__(self, node_id: str, phase: tuple[str, float]) -> None:
        super().__setitem__(node_id, phase)
        assert self.is_known.wait(PATIENCE_S)
        self._search.stop()


def test_a_call_about_to_be_made_when_the_search_is_stopped_is_not_made(tmp_path: Path) -> None:
    model = Climber()
    with opened(lab(tmp_path), model) as stopped:
        stopped.running = stopping = _Stopping(stopped)
        stopped.run(lambda _: stopping.is_known.set())
        assert not stopped.state.is_over
        assert len(stopped.state.journal) == 0
    assert not model.prompts


def test_an_attempt_that_ran_is_kept_when_its_plots_take_too_long(tmp_path: Path) -> None:
    def plotting(_: Asked) -> str:
        made.budget.seconds = made.budget.elapsed_s + 1.0
        return json.dumps({"code": "import time\ntime.sleep(600)"})

    with (
        at_desk(tmp_path, Desk({"plotting": plotting})) as (project, _),
        opened(project, plots=True, summaries=True) as made,
    ):
        made.run(lambda _: None)
    (node,) = made.state.journal.nodes
    assert node.is_good
    assert made.state.is_spent


def test_a_question_about_a_stage_ends_with_the_time(tmp_path: Path) -> None:
    made = search(lab(tmp_path), Waiting("# Figures"), summaries=True, steps=1, time_limit_s=6.0)
    assert made.state.is_over
    assert made.state.passed[0].summary.startswith(made.state.passed[0].state.label)


_NUMBERS = count(600)


def sleeping(prompt: Mapping[str, str]) -> str | None:
    is_attempt = "Kind of attempt" in prompt
    return trying(prompt, run={"commands": [f"sleep {next(_NUMBERS)}"]}) if is_attempt else None


@pytest.mark.parametrize("make", [lambda: Climber(fault=sleeping), Waiting])
def test_what_goes_on_when_the_time_is_over_is_ended(
    tmp_path: Path, make: Callable[[], Climber]
) -> None:
    project = lab(tmp_path)
    ended = search(project, make(), time_limit_s=1.0, workers=2).state
    assert (ended.reason, ended.is_spent) == ("its time of 1 s is over", True)
    assert len(ended.journal) == 0
    # One at a time: of two first attempts with the same program only one is made.
    again = search(project, Climber(), resume=True, time_limit_s=0.0, steps=2, workers=1)
    assert again.state.journal["n0001"].is_good
    assert again.state.journal["n0001"].attempt == 1


def test_settings_that_came_with_a_run_are_given_again_where_they_loosen(tmp_path: Path) -> None:
    project = lab(tmp_path)
    resources = tmp_path / "resources.json"
    resources.write_text("{}")
    given = {"search.resources": str(resources)}
    with TaskWeaverApp(project, model=Climber()) as app:
        start_search(app, project / "idea.md", FAST | given, name="run").close()
        resume_search(app, "run").close()
        places = find_run(app, "run")
        values = json.loads(places.config.read_text()) | {"execution.process_limit": 0}
        places.config.write_text(json.dumps(values))
        names = "search.resources, execution.process_limit"
        with pytest.raises(SearchError, match=names):
            resume_search(app, "run")
        assert load_config(places)[0] == FAST
        again = given | {"execution.process_limit": 100}
        resume_search(app, "run", again).close()
        assert load_config(places)[0] == FAST | again


def test_a_run_with_all_its_nodes_still_repeats_a_best_that_may_be_lucky(tmp_path: Path) -> None:
    def scattered(values: Mapping[str, int]) -> str:
        return f"{hill(values)}$TASKWEAVER_SEED"  # 10.00 with the run's seed, 10.01 with the next

    made = search(lab(tmp_path), Climber(height=scattered), steps=5, stage1_nodes=1)
    journal, best = made.state.journal, made.state.journal.best()
    assert journal.attempts == 5
    assert made.state.is_spent
    assert journal.repetitions(best.id)
    assert not journal.is_candidate(best.id)
