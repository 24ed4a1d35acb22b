"""Runs of tree searches over the agent API: read, started, stopped, and gone on with."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from agents import API, SteeredModel, await_answer, serving_agents
from command_line import CommandLine
from fake_endpoint import Call, good, serving
from patience import PATIENCE_S
from search_lab import FAST, IDEA, Climber
from served import Served, listening, problem
from served import serving as serving_process
from support import make_project

from taskweaver.ces.inkernel.process import readable
from taskweaver.llm.types import ModelRequest
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus
from taskweaver.treesearch.record.runlog import fold, read_log

SEARCHES = f"{API}/searches"


BUGGY = (
    Node("n0001", 1, NodeKind.DRAFT, 1, status=NodeStatus.BUGGY, plan="first\nmore"),
    Node("n0002", 2, NodeKind.DEBUG, 1, parent="n0001", status=NodeStatus.BUGGY),
)


def write_run(folder: Path, title: str = "An idea", nodes: Sequence[Node] = BUGGY) -> None:
    """Write the log of a run, with two attempts that failed if no others are given."""
    folder.mkdir(parents=True)
    objective = {"name": "score", "maximize": True, "unit": ""}
    entries = [
        {"t": "run", "objective": objective, "title": title, "at": 1.0},
        *({"t": "node", "node": node.to_dict()} for node in nodes),
        {"t": "ended", "reason": "enough"},
    ]
    lines = "".join(json.dumps(entry) + "\n" for entry in entries)
    (folder / "journal.jsonl").write_text(lines)


def test_runs_are_listed_and_read_by_admins_alone(tmp_path: Path) -> None:
    searches = tmp_path / "searches"
    write_run(searches / "run-one")
    config = {"search.folder": str(searches)}
    with serving_agents(tmp_path, SteeredModel(), config) as server:
        client = server.client()
        (run,) = client.get(SEARCHES).json()["runs"]
        assert (run["name"], run["title"], run["state"]) == ("run-one", "An idea", "over")
        assert (run["nodes"], run["best"], run["best_value"]) == (2, "", None)
        tree = client.get(f"{SEARCHES}/run-one").json()
        assert [(node["node"], node["parent"]) for node in tree["nodes"]] == [
            ("n0001", None),
            ("n0002", "n0001"),
        ]
        assert (tree["nodes"][0]["plan"], tree["nodes"][0]["status"]) == ("first", "buggy")
        node = client.get(f"{SEARCHES}/run-one/nodes/n0001").json()["node"]
        assert node["plan"] == "first\nmore"
        problem(client.get(f"{SEARCHES}/run-two"), 404, "search-error")
        problem(client.get(f"{SEARCHES}/run-one/nodes/n9"), 404, "not-found")
        made = client.post(f"{SEARCHES}/run-one/nodes/n0001/session")
        assert "no memory" in problem(made, 404, "search-error")["detail"]
        user = server.client(server.accounts.add("ann").text)
        problem(user.get(f"{SEARCHES}/run-one"), 404, "not-found")
        admin = server.client(server.accounts.add("root", "admin").text)
        assert len(admin.get(SEARCHES).json()["runs"]) == 1


class Hills:
    """An endpoint of a model by rules, which is held up once it was asked `free` times."""

    def __init__(self) -> None:
        self._climber = Climber()
        self._changed = threading.Condition()
        self._asked = 0
        self._free = 0

    def play(self, call: Call) -> None:
        """Answer a call."""
        messages = call.body["messages"]
        with self._changed:
            self._asked += 1
            number = self._asked
            self._changed.notify_all()
            is_free = self._changed.wait_for(lambda: number <= self._free, PATIENCE_S)
        if is_free:
            call.stream(good(self._climber(messages, ModelRequest(messages))))

    def let_go(self, count: int) -> None:
        """Answer so many calls more."""
        with self._changed:
            self._free = self._asked + count
            self._changed.notify_all()

    def await_held(self) -> None:
        """Wait until a call is held up."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._asked > self._free, PATIENCE_S)


MANY = 1_000_000


@pytest.fixture(scope="module")
def hills() -> Iterator[tuple[Hills, dict[str, Any]]]:
    """Give the model, and the configuration of a project that asks it."""
    found = Hills()
    with serving(found.play) as endpoint:
        model = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m"}
        try:
            yield (
                found,
                FAST | model | {"llm.api_key": "k", "search.num_drafts": 1, "search.num_seeds": 0},
            )
        finally:
            found.let_go(MANY)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory,
    hills: tuple[Hills, dict[str, Any]],
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("searching")
    with serving_agents(folder, SteeredModel(), hills[1]) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> httpx2.Client:
    return server.client()


def start(client: httpx2.Client, **more: Any) -> str:
    """Start a search; return the address of its run."""
    made = client.post(SEARCHES, json={"idea": IDEA.format("maximize"), "steps": 20} | more)
    assert made.status_code == 201, made.text
    return f"{SEARCHES}/{made.json()['name']}"


def await_end(client: httpx2.Client, run: str) -> dict[str, Any]:
    """Wait until nothing works on a run; return it with its attempts."""
    for process in psutil.Process().children():
        if "--until_input_ends" in process.cmdline():
            end = os.pidfd_open(process.pid)
            assert readable([end], PATIENCE_S)
            os.close(end)
    # The server hears of the end at the same moment.
    ended = await_answer(client, run, lambda answer: answer.json()["run"]["state"] != "running")
    whole: dict[str, Any] = ended.json()
    return whole


def test_a_search_stops_goes_on_and_ends_at_its_limits(
    client: httpx2.Client, hills: tuple[Hills, dict[str, Any]]
) -> None:
    """Its evaluator comes with the idea."""
    model, _ = hills
    model.let_go(1)
    idea = f"{IDEA.format('maximize')}\nEvaluate: measure.py\n"
    run = start(client, idea=idea, steps=2, files={"measure.py": "print('{\"metric\": 77}')"})
    model.await_held()
    found = client.get(run).json()
    assert (found["run"]["state"], found["run"]["is_ours"]) == ("running", True)
    assert [node["status"] for node in found["nodes"]] == ["ok", "running"]
    problem(client.post(f"{run}/resume", json={}), 409, "conflict")
    assert client.post(f"{run}/stop").status_code == 202
    stopped = await_end(client, run)
    assert (stopped["run"]["state"], stopped["run"]["is_stopping"]) == ("stopped", False)
    assert [node["status"] for node in stopped["nodes"]] == ["ok"]
    model.let_go(MANY)
    assert client.post(f"{run}/resume", json={}).status_code == 202
    found = await_end(client, run)
    whole = found["run"]
    assert (whole["state"], whole["reason"]) == ("over", "limit of the run reached: 2 nodes")
    assert (whole["nodes"], whole["budget_nodes"], whole["budget_seconds"]) == (2, 2, None)
    assert (whole["is_ours"], whole["tokens"] > 0, whole["cost"]) == (False, True, None)
    assert whole["best_value"] == 77
    assert "best: " in found["output"]
    assert client.get(run, params={"seen": found["version"]}).json()["nodes"] is None
    assert [node["status"] for node in found["nodes"]] == ["ok", "ok"]
    node = client.get(f"{run}/nodes/n0002").json()
    assert node["node"]["parent"] == "n0001"
    assert "--- try.sh\n+++ try.sh\n" in node["diff"]
    assert node["files"].keys() == {"try.sh"}
    assert node["commands"]["run"] == ["sh try.sh"]
    assert "sh try.sh" in node["logs"]["run"]
    problem(client.post(f"{run}/stop"), 409, "conflict")
    problem(client.post(f"{run}/resume", json={"steps": 0}), 422, "invalid-body")
    more = client.post(f"{run}/resume", json={"steps": 3})
    assert (more.status_code, more.json()) == (202, {"name": whole["name"]})
    again = await_end(client, run)
    assert (again["run"]["nodes"], again["run"]["budget_nodes"]) == (3, 3)


def test_a_search_that_cannot_begin_says_why(client: httpx2.Client) -> None:
    def refused(status: int, kind: str, **body: Any) -> str:
        return str(problem(client.post(SEARCHES, json=body), status, kind))

    idea = "# An idea\n\nMetric: score (maximize)\n\nEvaluate: measure.py\n"
    assert "needs a limit" in refused(422, "invalid-body", idea=idea)
    told = refused(409, "search-not-begun", idea=idea, steps=1)
    assert "The idea names the evaluator measure.py, which is no file in the folder of" in told
    refused(422, "invalid-body", idea=idea, steps=1, files={"../measure.py": ""})
    refused(422, "invalid-body", idea=idea, steps=1, files={"idea.md": ""})
    refused(422, "invalid-body", idea=idea, cost=-1)


def test_a_search_has_no_more_trust_than_its_server(
    tmp_path: Path, hills: tuple[Hills, dict[str, Any]]
) -> None:
    with serving_agents(tmp_path, SteeredModel(), hills[1], trust=False) as server:
        idea = {"idea": IDEA.format("maximize"), "steps": 1}
        refused = problem(server.client().post(SEARCHES, json=idea), 409, "search-not-begun")
    assert "No model is configured" in refused["detail"]  # that of the project is off


def unfinished(log: Path) -> list[str]:
    """Check that a run can be gone on with; return the ids of its attempts."""
    state = fold(read_log(log))
    assert state is not None
    assert not state.is_over
    return [node.id for node in state.journal.nodes]


def test_searches_stop_with_the_server(tmp_path: Path, hills: tuple[Hills, dict[str, Any]]) -> None:
    model, config = hills
    model.let_go(1)
    with serving_agents(tmp_path, SteeredModel(), config) as server:
        run = start(server.client())
        model.await_held()
    folder = tmp_path / "project" / "experiments" / run.rpartition("/")[2]
    assert unfinished(folder / "journal.jsonl") == ["n0001"]
    assert (folder / "report.md").is_file()


def test_searches_end_with_a_server_that_is_killed(
    tmp_path: Path, hills: tuple[Hills, dict[str, Any]], command_line: CommandLine
) -> None:
    model, config = hills
    model.let_go(1)
    project = make_project(tmp_path / "p", config)
    with serving_process(project, program=command_line.program) as (process, line):
        match = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", line)
        assert match, line
        headers = {"Authorization": f"Bearer {match[2]}"}
        with httpx2.Client(base_url=match[1], headers=headers, timeout=PATIENCE_S) as client:
            run = start(client)
            model.await_held()
        server = listening(line)
        children = server.children(recursive=True)
        server.kill()
        process.wait(PATIENCE_S)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert (alive, bool(children)) == ([], True)
    folder = project / "experiments" / run.rpartition("/")[2]
    assert unfinished(folder / "journal.jsonl") == ["n0001"]
