"""States of sessions in the list, failed rounds in the index, and titles of branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from agents import API, SteeredModel, ask, events_of, new_session, serving_agents
from served import Served, problem

pytestmark = pytest.mark.usefixtures("no_states")


@pytest.fixture(scope="module")
def model() -> SteeredModel:
    return SteeredModel()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: SteeredModel) -> Iterator[Served]:
    with serving_agents(tmp_path_factory.mktemp("outline"), model) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> httpx2.Client:
    return server.client()


def listed(client: httpx2.Client, session: str) -> tuple[str, int]:
    """Return what goes on in a session, and the number of its branches, as the list has them."""
    found = client.get(f"{API}/sessions").json()["sessions"]
    (one,) = (item for item in found if item["session_id"] == session.rpartition("/")[2])
    return one["activity"], one["branches"]


def states(client: httpx2.Client, session: str) -> list[tuple[str, str]]:
    """Return the branch and state of each round in the index."""
    index = client.get(f"{session}/rounds").json()["rounds"]
    return [(item["branch"], item["state"]) for item in index]


def branches(client: httpx2.Client, session: str) -> dict[str, str]:
    """Return the title of each branch by its name."""
    found: list[dict[str, Any]] = client.get(session).json()["branches"]
    return {item["name"]: item["title"] for item in found}


def test_the_list_says_what_goes_on_and_how_many_branches_there_are(
    client: httpx2.Client, model: SteeredModel
) -> None:
    session = new_session(client)
    assert listed(client, session) == ("idle", 1)
    sent = client.post(f"{session}/messages", json={"text": "say: wait list", "message_id": "m-1"})
    assert sent.status_code == 202
    model.await_question("wait list")
    assert listed(client, session)[0] == "running"
    model.let_go("wait list")
    with client.stream("GET", f"{session}/messages/m-1/events") as response:
        assert list(events_of(response))[-1][2]["state"] == "finished"
    assert client.post(f"{session}/branches", json={"name": "other"}).status_code == 201
    assert listed(client, session) == ("idle", 2)
    ask(client, session, "1 / 0", kind="code", branch="other")
    assert listed(client, session) == ("failed", 2)
    ask(client, session, "say: well", branch="other")
    assert listed(client, session) == ("idle", 2)


def test_code_whose_cell_failed_is_a_failed_round_of_the_index(client: httpx2.Client) -> None:
    session = new_session(client)
    ask(client, session, "none_such", kind="code")
    ask(client, session, "x = 1", kind="code")
    client.post(f"{session}/branches", json={"name": "wrong"})
    ask(client, session, "print(x)\nx.none_such", kind="code", branch="wrong")
    expected = [("main", "failed"), ("main", "finished"), ("wrong", "failed")]
    assert states(client, session) == expected
    assert client.post(f"{session}/release").status_code == 204
    assert states(client, session) == expected  # read from the file, without opening a branch


def test_a_branch_has_a_title_and_keeps_its_name(
    client: httpx2.Client, model: SteeredModel
) -> None:
    session = new_session(client)
    after = client.get(session).json()["last_change"]
    client.post(f"{session}/branches", json={"name": "try-1"})
    body = {"text": "say: wait title", "branch": "try-1", "message_id": "m-2"}
    assert client.post(f"{session}/messages", json=body).status_code == 202
    model.await_question("wait title")  # what runs goes on
    made = client.patch(f"{session}/branches/try-1", json={"title": "holiday-check"})
    assert made.json()["title"] == "holiday-check"
    assert (made.json()["name"], made.json()["state"]) == ("try-1", "running")
    model.let_go("wait title")
    with client.stream("GET", f"{session}/messages/m-2/events") as response:
        assert list(events_of(response))[-1][2]["answer"] == "heard wait title"
    assert client.patch(f"{session}/branches/main", json={"title": "base"}).status_code == 200
    assert branches(client, session) == {"main": "base", "try-1": "holiday-check"}
    for branch, title in (("main", "try-1"), ("try-1", "base"), ("try-1", "main"), ("main", "a/b")):
        problem(
            client.patch(f"{session}/branches/{branch}", json={"title": title}),
            409,
            "session-error",
        )
    unknown = client.patch(f"{session}/branches/none", json={"title": "x"})
    problem(unknown, 404, "unknown-session-branch")
    problem(client.patch(f"{session}/branches/main", json={"title": ""}), 422, "invalid-body")
    taken = client.post(f"{session}/branches", json={"name": "base"})
    assert "is taken" in problem(taken, 409, "session-error")["detail"]
    assert client.patch(f"{session}/branches/try-1", json={"title": "try-1"}).status_code == 200
    assert branches(client, session)["try-1"] == "try-1"
    headers = {"Last-Event-ID": f"changes:{after}"}
    with client.stream("GET", f"{API}/events", headers=headers) as stream:
        renamed = (data for _, kind, data in events_of(stream) if kind == "branch_renamed")
        assert next(renamed)["title"] == "holiday-check"
