"""Runs of tree searches over the agent API: read, started, stopped, and gone on with."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from agents import (
    API,
    SteeredModel,
    ask,
    await_answer,
    events_of,
    kill,
    serving_agents,
    serving_client,
)
from command_line import CommandLine
from fake_endpoint import Call, good, serving
from patience import PATIENCE_S
from search_lab import FAST, IDEA, Climber
from served import Served, problem
from support import make_project

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
        nodes = [(node["node"], node["parent"]) for node in tree["nodes"]]
        assert nodes == [("n0001", None), ("n0002", "n0001")]
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


def test_a_cut_repetition_is_not_counted_and_a_damaged_memory_hides_its_round_alone(
    tmp_path: Path,
) -> None:
    searches = tmp_path / "searches"
    one = Node("n0001", 1, NodeKind.DRAFT, 1, status=NodeStatus.OK, branch="n0001", finished_at=2.0)
    again = Node("n0002", 2, NodeKind.SEED, 1, parent="n0001")
    write_run(searches / "cut", nodes=(one, again))
    log = searches / "cut" / "journal.jsonl"
    log.write_text(log.read_text().rpartition('{"t": "ended"')[0])
    (searches / "cut" / "memory").mkdir()
    (searches / "cut" / "memory" / "memory.sqlite").write_text("no database at all " * 99)
    with serving_agents(tmp_path, SteeredModel(), {"search.folder": str(searches)}) as server:
        client = server.client()
        tree = client.get(f"{SEARCHES}/cut").json()
        assert [node["status"] for node in tree["nodes"]] == ["ok", "cancelled"]
        assert (tree["run"]["nodes"], tree["run"]["repetitions"]) == (1, 0)
        node = client.get(f"{SEARCHES}/cut/nodes/n0001").json()
        assert (node["node"]["status"], node["round"]) == ("ok", None)


class Hills:
    """An endpoint of a model by rules, which is held up once it was asked `free` times."""

    def __init__(self) -> None:
        self._climber = Climber()
        self._changed = threading.Condition()
        self._asked = 0
        self._free = 0

    def play(self, call: Call) -> None:
        messages = call.body["messages"]
        with self._changed:
            self._asked += 1
            number = self._asked
            self._changed.notify_all()
            is_free = self._changed.wait_for(lambda: number <= self._free, PATIENCE_S)
        if is_free:
            call.stream(good(self._climber(messages, ModelRequest(messages))))

    def let_go(self, count: int) -> None:
        with self._changed:
            self._free = self._asked + count
            self._changed.notify_all()

    def await_held(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._asked > self._free, PATIENCE_S)


MANY = 1_000_000


@contextmanager
def hilly() -> Iterator[tuple[Hills, dict[str, Any]]]:
    """Give the model, and the configuration of a project that asks it."""
    found = Hills()
    with serving(found.play) as endpoint:
        model = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m"}
        model |= {"llm.api_key": "k"}
        try:
            yield found, FAST | model | {"search.num_drafts": 1, "search.num_seeds": 0}
        finally:
            found.let_go(MANY)


@pytest.fixture(scope="module")
def hills() -> Iterator[tuple[Hills, dict[str, Any]]]:
    with hilly() as found:
        yield found


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, hills: tuple[Hills, dict[str, Any]]
) -> Iterator[Served]:
    with serving_agents(tmp_path_factory.mktemp("searching"), SteeredModel(), hills[1]) as running:
        yield running


def start(client: httpx2.Client, **more: Any) -> str:
    made = client.post(SEARCHES, json={"idea": IDEA.format("maximize"), "steps": 20} | more)
    assert made.status_code == 201, made.text
    return f"{SEARCHES}/{made.json()['name']}"


def await_end(client: httpx2.Client, run: str) -> dict[str, Any]:
    """Wait until nothing works on a run; return it with its attempts."""
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
    measure = "print('{\"metric\": %s}' % open('data/best.txt').read())"
    run = start(client, idea=idea, steps=2, files={"measure.py": measure}, data={"best.txt": "77"})
    model.await_held()
    found = client.get(run).json()
    assert (found["run"]["state"], found["run"]["is_ours"]) == ("running", True)
    assert [node["status"] for node in found["nodes"]] == ["ok", "running"]
    problem(client.post(f"{run}/resume", json={}), 409, "conflict")
    assert client.post(f"{run}/stop").status_code == 202
    stopped = await_end(client, run)
    assert (stopped["run"]["state"], stopped["run"]["is_stopping"]) == ("stopped", False)
    assert [node["status"] for node in stopped["nodes"]] == ["ok", "cancelled"]
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


def test_a_program_is_tried_once(client: httpx2.Client) -> None:
    def tried(text: str, name: str = "fit.py") -> tuple[str, str]:
        body = {"program": name, "files": {name: text, "rows.csv": "a\n1\n2\n"}}
        found = client.post(f"{SEARCHES}/trial", json=body).json()
        return found["output"], found["problem"]

    assert tried("print('mae:', open('rows.csv').read().count('\\n'))") == ("mae: 3\n", "")
    failed = tried("import sys; print('no'); sys.exit(3)")
    assert failed == ("no\n", "It failed: exit status 3.")
    assert tried("ls -d working; cat data/rows.csv", "fit.sh") == ("working\na\n1\n2\n", "")
    assert tried("#!/bin/sh\necho score = 2", "measure") == ("score = 2\n", "")
    body = {"program": "a/b.py", "files": {"b.py": ""}}
    problem(client.post(f"{SEARCHES}/trial", json=body), 422, "invalid-body")


def test_an_attempt_is_continued_in_its_run(
    client: httpx2.Client, hills: tuple[Hills, dict[str, Any]]
) -> None:
    """While a search works on the run, in a copy; the search goes on beside a chat at rest."""
    model, _ = hills
    model.let_go(2)
    run = start(client, steps=3)
    name = run.rpartition("/")[2]
    model.await_held()

    def continued() -> dict[str, Any]:
        found: dict[str, Any] = client.post(f"{run}/nodes/n0001/session").raise_for_status().json()
        return found

    copy = continued()
    assert (copy["branch"], copy["is_copy"], copy["session_id"] == name) == ("main", True, False)
    client.post(f"{run}/stop")
    await_end(client, run)
    chat = {"session_id": name, "branch": "n0001-chat", "is_copy": False}
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(continued) for _ in range(2)]
    assert chat in (found := [one.result() for one in both])
    assert {one["branch"] for one in found} == {"n0001-chat", "n0001-chat-1"}, "at once"
    session = f"{API}/sessions/{name}"
    assert ask(client, session, "say: hello", branch="n0001-chat")["answer"] == "heard hello"
    assert continued()["branch"] == "n0001-chat-2"
    shown = client.get(session).json()
    assert {one["name"] for one in shown["branches"]} >= {"n0001", "n0001-chat", "n0001-chat-1"}
    found = client.get(f"{API}/find", params={"q": "hello", "session": name}).json()
    assert {one["branch"] for one in found["passages"]} == {"n0001-chat"}
    model.let_go(MANY)
    assert client.post(f"{run}/resume", json={}).status_code == 202
    assert len(await_end(client, run)["nodes"]) == 3
    told = watched(client, f"{name}/", "post_message_update", "n0003 ok: ")[1:]
    assert {data["branch"].partition("-")[2] for _, _, data in told} <= {"", "2"}, "no chat"
    assert ask(client, session, "say: still", branch="n0001-chat")["answer"] == "heard still"
    assert client.delete(session).status_code == 204
    listed = client.get(f"{API}/sessions").json()["sessions"]
    assert name not in {one["session_id"] for one in listed}
    assert len(client.get(run).json()["nodes"]) == 3
    assert continued()["branch"] == "n0001-chat-3"
    assert client.post(f"{run}/resume", json={"steps": 4}).status_code == 202
    assert len(await_end(client, run)["nodes"]) == 4


Events = list[tuple[str, str, dict[str, Any]]]


def watched(client: httpx2.Client, name: str, kind: str, text: str = "", last: str = "") -> Events:
    """Read the events of an attempt up to one of a kind and a text."""
    headers = {"Last-Event-ID": last} if last else {}
    found, address = [], f"{API}/events?sessions={name}"
    with client.stream("GET", address, headers=headers) as response:
        for event in events_of(response):
            found.append(event)
            if event[1] == kind and text in event[2]["msg"]:
                break
    return found


def kill_searches() -> None:
    for process in psutil.Process().children():
        with suppress(psutil.ZombieProcess):  # of one that was killed before
            if "--until_input_ends" in process.cmdline():
                process.kill()


def test_an_attempt_is_watched_while_it_grows(
    client: httpx2.Client, hills: tuple[Hills, dict[str, Any]], server: Served
) -> None:
    """A reader that comes back misses nothing and hears nothing twice."""
    model, _ = hills
    model.let_go(0)
    run = start(client, steps=2)
    name = f"{run.rpartition('/')[2]}/n0001"
    asked = watched(client, name, "post_status_update", "proposal")
    assert [kind for _, kind, _ in asked[:2]] == ["position", "round_start"]
    model.await_held()
    model.let_go(0)  # this call alone
    later = watched(client, name, "round_end", last=asked[-1][0])[1:]
    numbers = [data["number"] for _, _, data in asked[1:] + later]
    assert numbers == sorted(set(numbers))
    whole = [data for _, _, data in watched(client, name, "round_end")[1:]]
    assert [data["number"] for data in whole] == numbers
    assert {data["branch"] for data in whole} == {"n0001"}
    said = [data["msg"] for data in whole if data["type"] == "post_message_update"]
    *_, answer = client.get(f"{run}/nodes/n0001").json()["round"]["post_list"]
    assert (said[-1], answer["message"].startswith("n0001 ok: ")) == (answer["message"], True)
    model.await_held()
    assert client.get(f"{run}/nodes/n0002").json()["round"] is None
    user = server.client(server.accounts.add("eve").text)
    problem(user.get(f"{API}/events", params={"sessions": name}), 404, "not-found")
    client.post(f"{run}/stop")
    await_end(client, run)


def test_a_search_that_is_killed_leaves_an_attempt_unfinished(
    client: httpx2.Client, hills: tuple[Hills, dict[str, Any]]
) -> None:
    """Its events end without an end of the round, which follows when the search goes on."""
    model, _ = hills
    model.let_go(0)
    run = start(client, steps=1)
    name = f"{run.rpartition('/')[2]}/n0001"
    begun = watched(client, name, "post_status_update", "proposal")
    kill_searches()
    killed = await_end(client, run)
    assert (killed["run"]["state"], killed["run"]["nodes"]) == ("stopped", 0)
    assert [node["status"] for node in killed["nodes"]] == ["cancelled"]
    node = client.get(f"{run}/nodes/n0001").json()
    assert (node["node"]["status"], node["round"], node["branch"]) == ("cancelled", None, "n0001")
    model.let_go(MANY)
    assert client.post(f"{run}/resume", json={}).status_code == 202
    (_, kind, error), (_, end, _) = watched(client, name, "round_end", last=begun[-1][0])[1:]
    assert (kind, end) == ("round_error", "round_end")
    assert error["msg"] == "The program ended before the round did."
    assert [node["status"] for node in await_end(client, run)["nodes"]] == ["ok"]
    assert client.get(f"{run}/nodes/n0001").json()["branch"] == "n0001-2"


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


def assert_unfinished(folder: Path) -> None:
    """Check that a run of one attempt can be gone on with."""
    state = fold(read_log(folder / "journal.jsonl"))
    assert state is not None
    assert not state.is_over
    assert [node.id for node in state.journal.nodes] == ["n0001"]


def test_searches_stop_with_the_server(tmp_path: Path, hills: tuple[Hills, dict[str, Any]]) -> None:
    model, config = hills
    model.let_go(1)
    with serving_agents(tmp_path, SteeredModel(), config) as server:
        run = start(server.client())
        model.await_held()
    folder = tmp_path / "project" / "experiments" / run.rpartition("/")[2]
    assert_unfinished(folder)
    assert (folder / "report.md").is_file()


def test_searches_end_with_a_server_that_is_killed(
    tmp_path: Path, hills: tuple[Hills, dict[str, Any]], command_line: CommandLine
) -> None:
    model, config = hills
    model.let_go(1)
    project = make_project(tmp_path / "p", config)
    with serving_client(project, command_line.program) as (process, client):
        run = start(client)
        model.await_held()
        kill(process, client)
    assert_unfinished(project / "experiments" / run.rpartition("/")[2])
