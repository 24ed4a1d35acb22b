"""Searches on Dask: the same tree as on one machine, and nothing lost when a part is killed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dask_cluster import Cluster
from search_driver import drive
from search_lab import FAST, Climber, lab, search, story
from worker_signs import appears

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.llm.types import ChatMessage, ModelRequest
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import ExecutorLost, SearchError
from taskweaver.treesearch.service import start_search

SMALL = {"stage1_nodes": 3, "stage2_nodes": 2, "stage3_nodes": 0, "stage4_nodes": 0}


@pytest.fixture(scope="module")
def cluster(program: subprocess.Popen[str]) -> Iterator[Cluster]:
    with Cluster(program) as made:
        made.add("a", host="host-a", threads=2)
        made.add("b", host="host-b", threads=2)
        yield made


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """The tree of a search on this machine."""
    return story(search(lab(tmp_path_factory.mktemp("local")), Climber(), **SMALL).state)


def on(cluster: Cluster) -> dict[str, Any]:
    """Return the settings of a search on a cluster."""
    return {"executor": "dask", "scheduler": cluster.address}


def is_true(made: Search) -> bool:
    """Return whether no node is lost or there twice, and every call is in the account."""
    nodes = made.state.journal.nodes
    calls = sum(node.cost.calls for node in nodes)
    is_complete = [node.step for node in nodes] == list(range(1, len(nodes) + 1))
    return is_complete and made.budget.spent.calls >= calls > 0


@pytest.mark.long
def test_the_tree_is_the_one_of_one_machine(
    cluster: Cluster, undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    made = search(lab(tmp_path), Climber(), **SMALL, **on(cluster))
    assert story(made.state) == undisturbed
    assert "2 Dask workers with 4 threads" in made.notes[-1]
    assert is_true(made)


class Waiting(Climber):
    """A model the program of whose third attempt gives a sign, and does not end."""

    def __init__(self, sign: Path) -> None:
        super().__init__()
        self._sign = sign

    def __call__(self, messages: Sequence[ChatMessage], request: ModelRequest) -> str:
        reply = super().__call__(messages, request)
        if len(self.prompts) == 3:
            wait = f"touch {self._sign}; sleep 600.71"
            reply = reply.replace('["sh", "try.sh"]', f'"{wait}"')
        return reply


def test_a_scheduler_that_is_killed_stops_the_run_which_goes_on_elsewhere(
    program: subprocess.Popen[str], undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    project = lab(tmp_path, **{"execution.sandbox": "none"})
    with Cluster(program) as small:
        small.add("one")
        with ThreadPoolExecutor() as beside:
            searching = beside.submit(search, project, Waiting(sign), **SMALL, **on(small))
            appears(sign)
            small.kill("scheduler")
        with pytest.raises(ExecutorLost, match="--resume"):
            searching.result()
        small.start_scheduler()
        small.add("two")
        again = {"scheduler": small.address, "stage2_nodes": 0}
        half = search(project, Climber(), resume=True, **again)
        assert is_true(half)
    made = search(project, Climber(), resume=True, executor="local", stage2_nodes=2)
    assert made.state.is_over
    assert story(half.state)[:3] == undisturbed[:3]


@pytest.mark.long
def test_a_coordinator_that_is_killed_goes_on_with_the_same_tree(
    cluster: Cluster, undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    project = lab(tmp_path)
    assert drive(project, SMALL | on(cluster), [(4, 0.0)]) == [-9]
    made = search(project, Climber(), resume=True)
    assert story(made.state) == undisturbed
    assert is_true(made)


@pytest.mark.long
def test_several_slots_lose_no_node_and_make_none_twice(cluster: Cluster, tmp_path: Path) -> None:
    settings = SMALL | on(cluster) | {"workers": 4, "stage1_nodes": 6, "num_drafts": 4}
    made = search(lab(tmp_path), Climber(), **settings)
    assert is_true(made)
    ids = [node.id for node in made.state.journal.nodes]
    assert len(set(ids)) == len(ids)


def test_what_dask_needs_is_told_before_the_first_attempt(tmp_path: Path) -> None:
    project = lab(tmp_path)
    refused: Mapping[str, Mapping[str, object]] = {
        "address of a scheduler": {"search.executor": "dask"},
        "Scripts run in kernels": {
            "search.executor": "dask", "search.scheduler": "tcp://127.0.0.1:9",
            "search.phase_mode": "single",
        },
    }  # fmt: skip
    with TaskWeaverApp(project, model=Climber()) as app:
        for message, settings in refused.items():
            with pytest.raises(SearchError, match=message):
                start_search(app, project / "idea.md", FAST | settings, name="run")
    words = ["-p", str(project), "search", "--executor", "dask", str(project / "idea.md")]
    said = CliRunner().invoke(commands, words)
    assert said.exit_code != 0
    assert not list(project.glob("experiments/*"))
