"""Runs that are killed, stopped, shared or out of budget, and gone on with."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from search_driver import drive
from search_lab import (
    FAST,
    ONE,
    Climber,
    hill,
    is_draft,
    lab,
    opened,
    search,
    stopped_after,
    story,
    trying,
)
from sizes import some
from worker_signs import appears

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import RunInUse, SearchError
from taskweaver.treesearch.model.node import NodeStatus
from taskweaver.treesearch.record.runlog import RunState, fold, read_log
from taskweaver.treesearch.service import find_run, report_run, resume_search, start_search

SMALL = ONE | {"stage1_nodes": 2, "stage2_nodes": 2}
LESS = {"stage1_nodes": 3, "stage2_nodes": 2, "stage3_nodes": 1, "stage4_nodes": 1}
KILLS = len(some(range(6), 2))


def on_disk(project: Path) -> RunState:
    return fold(read_log(project / "experiments/run/journal.jsonl"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Search]:
    """A project, and its run that nothing disturbed."""
    project = lab(tmp_path_factory.mktemp("small"))
    return project, search(project, Climber(), seed=3, **LESS)


@pytest.mark.parametrize("sizes", some([LESS, {}], 1))
def test_a_run_that_is_killed_again_and_again_comes_to_the_same(
    tmp_path: Path, small: tuple[Path, Search], sizes: Mapping[str, int]
) -> None:
    settings = {**sizes, "seed": 3}
    whole = small[1] if sizes else search(lab(tmp_path / "whole"), Climber(), **settings)
    project = lab(tmp_path / "killed")
    random = Random(20)
    # A node is begun, ends, and the next is begun: each process brings the run on a little.
    kills = [(random.choice([1, 2, 3]), random.uniform(0.0, 0.03)) for _ in range(KILLS)]
    codes = drive(project, settings, [*kills, (0, 60.0)])
    assert codes == [-9] * KILLS + [0]
    killed = on_disk(project)
    assert killed.is_over
    assert story(killed) == story(whole.state)
    assert [(p.state.label, p.best, p.reason) for p in killed.passed] == [
        (p.state.label, p.best, p.reason) for p in whole.state.passed
    ]
    with TaskWeaverApp(project, model=Climber()) as app:
        assert report_run(app, find_run(app, "run")).is_file()


def test_two_cannot_work_on_one_run_nor_with_settings_that_cannot_be_used(tmp_path: Path) -> None:
    project = lab(tmp_path)
    with TaskWeaverApp(project, model=Climber()) as app:
        with start_search(app, project / "idea.md", FAST, name="run") as first:
            before = first.places.config.read_bytes()
            with pytest.raises(RunInUse, match="Another process works on the run run"):
                resume_search(app, "run", {"search.steps": 1})
            assert first.places.config.read_bytes() == before
            with pytest.raises(SearchError, match="There is a run called run already"):
                start_search(app, project / "idea.md", FAST, name="run")
            assert first.places.idea.is_file()
        # What cannot be used is not kept.
        with pytest.raises(ConfigError):
            resume_search(app, "run", {"search.workers": 0})
        with resume_search(app, "run", {"search.steps": 1}) as again:
            again.run(lambda _: None)
        assert len(again.state.journal) == 1


def test_a_line_that_was_cut_off_is_as_if_it_had_never_been(small: tuple[Path, Search]) -> None:
    project, made = small
    log = made.places.log
    lines = log.read_bytes().splitlines(keepends=True)
    cut = len(lines) // 2
    log.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
    seconds = on_disk(project).seconds
    assert 0 < seconds <= made.budget.elapsed_s
    assert on_disk(project).counted_at
    with TaskWeaverApp(project, model=Climber()) as app, resume_search(app, "run"):
        # The time since it was killed is not counted while it opens.
        opened = on_disk(project)
        assert (opened.seconds, opened.counted_at) == (seconds, 0.0)
    again = search(project, Climber(), resume=True)
    assert story(again.state) == story(made.state)
    assert seconds < on_disk(project).seconds
    log.write_bytes(b"".join(lines[:cut]) + b"nonsense\n" + b"".join(lines[cut:]))
    with pytest.raises(SearchError, match=f"line {cut + 1}, is not of a log"):
        search(project, Climber(), resume=True)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_run_is_stopped_and_gone_on_with(
    tmp_path: Path, small: tuple[Path, Search], workers: int
) -> None:
    project = lab(tmp_path)
    with opened(project, Climber(), **LESS, workers=workers, seed=3) as stopped:

        def changed(state: RunState) -> None:
            if len(state.journal.finished) >= 4:
                stopped.stop()

        stopped.run(changed)
        assert not stopped.state.is_over
        finished = story(stopped.state)
    assert 4 <= len(finished) <= 4 + workers
    assert not on_disk(project).is_over
    again = search(project, Climber(), resume=True)
    assert again.state.is_over
    assert story(again.state)[: len(finished)] == finished
    if workers == 1:
        assert story(again.state) == story(small[1].state)


def test_what_runs_is_given_up_when_it_is_stopped(tmp_path: Path) -> None:
    project = lab(tmp_path)
    run = {"commands": [f"touch {tmp_path / 'sign'}; sleep 600"]}
    model = Climber(fault=lambda prompt: trying(prompt, run=run) if is_draft(prompt) else None)
    with opened(project, model, **SMALL) as stopped:
        with stopped_after(stopped):
            appears(tmp_path / "sign")
        assert len(stopped.state.journal) == 0
    assert search(project, Climber(), resume=True).state.is_over


def test_a_run_keeps_to_its_time(tmp_path: Path) -> None:
    def slow(values: Mapping[str, int]) -> float:
        threading.Event().wait(0.3)
        return hill(values)

    made = search(lab(tmp_path), Climber(slow), time_limit_s=1.0, summaries=True)
    assert made.state.is_over
    assert made.state.reason == "its time of 1 s is over"
    assert all(node.finished_at is not None for node in made.state.journal.nodes)
    assert [passed.reason for passed in made.state.passed][-1] == made.state.reason


def killing(counter: Path, times: int) -> Climber:
    """A model whose first draft kills the worker it runs in, a number of times."""
    kill = f'n=$(cat {counter} 2>/dev/null | wc -l); if [ "$n" -lt {times} ]; then echo x >> '
    script = f"{kill}{counter}; kill -9 $PPID; sleep 60; fi; sh try.sh"

    def fault(prompt: Mapping[str, str]) -> str | None:
        if not is_draft(prompt) or "Other attempts" in prompt:
            return None
        return trying(prompt, height=1.0, run={"commands": [script]})

    return Climber(fault=fault)


@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_that_is_killed_costs_an_attempt(tmp_path: Path, times: int) -> None:
    made = search(lab(tmp_path), killing(tmp_path / "count", times), **SMALL)
    first = made.state.journal["n0001"]
    assert first.attempt == 2
    assert made.state.is_over
    assert [remark.partition(":")[0] for remark in made.state.remarks] == ["n0001"] * times
    assert fold(read_log(made.places.log)).remarks == made.state.remarks
    if times == 1:
        assert (first.status, first.value) == (NodeStatus.OK, 1.0)
    else:
        assert (first.status, first.error.kind) == (NodeStatus.LOST, "WorkerLost")
        assert made.state.journal.best() is not None
