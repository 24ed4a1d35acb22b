"""Searches on Dask: the same tree as on one machine, and nothing lost when a part is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dask_cluster import Cluster
from patience import PATIENCE_S
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
    return story(search(lab(tmp_path_factory.mktemp("local")), Climber(), **SMALL))


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
    assert story(made) == undisturbed
    assert "2 Dask workers with 4 threads" in made.notes[-1]
    assert is_true(made)


class Waiting(Climber):
    """A model; the program of its attempt number `number` gives a sign, and does not end.

    The first time only: the attempt that takes its place ends.
    """

    def __init__(self, sign: Path, number: int) -> None:
        super().__init__()
        self._sign, self._number, self._count = sign, number, 0
        self._counting = threading.Lock()

    def __call__(self, messages: Sequence[ChatMessage], request: ModelRequest) -> str:
        with self._counting:
            self._count += 1
            number = self._count
        reply = super().__call__(messages, request)
        if number == self._number and not self._sign.exists():
            wait = f"touch {self._sign}; sleep 600.71; sh try.sh"
            reply = reply.replace('["sh", "try.sh"]', f'"{wait}"')
        return reply


def in_background(work: Any) -> tuple[threading.Thread, list[BaseException]]:
    """Run a function in a thread; return it, and the list of what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is looked at later
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


@pytest.mark.long
def test_a_dask_worker_that_is_killed_costs_one_attempt(
    program: subprocess.Popen[str], undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    project = lab(tmp_path, **{"execution.sandbox": "none"})
    with Cluster(program) as small:
        for name in ("one", "two"):
            small.add(name, host=name)
        made: list[Search] = []
        settings = SMALL | on(small)
        model = Waiting(sign, 2)
        thread, raised = in_background(lambda: made.append(search(project, model, **settings)))
        appears(sign)
        (marker,) = project.glob("experiments/run/.jobs-*/n0002-run-1")
        small.kill(marker.read_text().partition(" ")[0])
        thread.join(PATIENCE_S)
    assert raised == []
    nodes = made[0].state.journal.nodes
    assert is_true(made[0])
    assert story(made[0]) == undisturbed
    assert [node.attempt for node in nodes] == [1, 2, *[1] * (len(nodes) - 2)]


def test_a_scheduler_that_is_killed_stops_the_run_which_goes_on_elsewhere(
    program: subprocess.Popen[str], undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    project = lab(tmp_path, **{"execution.sandbox": "none"})
    with Cluster(program) as small:
        small.add("one")
        settings = SMALL | on(small)
        model = Waiting(sign, 3)
        thread, raised = in_background(lambda: search(project, model, **settings))
        appears(sign)
        small.kill("scheduler")
        thread.join(PATIENCE_S)
        (error,) = raised
        assert isinstance(error, ExecutorLost)
        assert "--resume" in str(error)
        small.start_scheduler()
        small.add("two")
        again = {"scheduler": small.address, "stage2_nodes": 0}
        half = search(project, Climber(), resume=True, **again)
        assert is_true(half)
    made = search(project, Climber(), resume=True, executor="local", stage2_nodes=2)
    assert made.state.is_over
    assert (
        story(half) == undisturbed[: len(half.state.journal)] or story(half)[:3] == undisturbed[:3]
    )


DRIVER = """
import sys
from pathlib import Path
from search_lab import FAST, Climber
from taskweaver.app.app import TaskWeaverApp
from taskweaver.treesearch.service import start_search
project, address = Path(sys.argv[1]), sys.argv[2]
own = {"search.executor": "dask", "search.scheduler": address}
own |= {"search.stage1_nodes": 3, "search.stage2_nodes": 2}
own |= {"search.stage3_nodes": 0, "search.stage4_nodes": 0}
with TaskWeaverApp(project, model=Climber()) as app:
    with start_search(app, project / "idea.md", FAST | own, name="run") as search:
        search.run(lambda _: print("on", flush=True))
"""


@pytest.mark.long
def test_a_coordinator_that_is_killed_goes_on_with_the_same_tree(
    cluster: Cluster, undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    project, tests = lab(tmp_path), Path(__file__).parents[1]
    paths = [str(tests), str(tests.parent), str(tests.parents[1])]
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(project), cluster.address],
        env=dict(os.environ) | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
    ) as coordinator:
        assert coordinator.stdout
        for _ in range(4):
            coordinator.stdout.readline()
        coordinator.send_signal(signal.SIGKILL)
    made = search(project, Climber(), resume=True)
    assert story(made) == undisturbed
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
