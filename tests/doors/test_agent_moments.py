"""Moments of branches over the agent API, the index of rounds, and titles of branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from agents import API, SteeredModel, ask, events_of, new_session
from served import Served, problem

from taskweaver.memory.branched.store import BranchedMemory


@pytest.fixture(scope="module")
def session(client: httpx2.Client) -> str:
    """Make a session of three rounds on main, and of one more on the branch past."""
    session = new_session(client)
    first = "x = 1; rows = list(range(1000)); y = [1]\nopen('kept.txt', 'w').write('kept')"
    ask(client, session, first, kind="code")
    ask(client, session, "say: nothing runs")
    second = "x = 2; steps = (i for i in rows); rows[5] = 0\n"
    second += "open('kept.txt', 'a').write(' on'); open('new.txt', 'w').write('n')"
    ask(client, session, second, kind="code")
    made = client.post(f"{session}/branches", json={"name": "past", "at_round": 2})
    assert made.status_code == 201
    ask(client, session, "x = 3; z = 'only here'", kind="code", branch="past")
    assert client.post(f"{session}/release").status_code == 204  # all is on disk now
    return session


def moment(client: httpx2.Client, session: str, branch: str, number: int) -> dict[str, Any]:
    address = f"{session}/branches/{branch}/rounds/{number}"
    found: dict[str, Any] = client.get(address).raise_for_status().json()
    return found


def set_core(server: Served, session: str, values: Mapping[str, Mapping[str, str]]) -> None:
    """Set keys of core memory on branches, as a consolidation does."""
    folder = server.log.parent / "project" / "workspace" / "sessions" / session.rpartition("/")[2]
    with BranchedMemory(folder / "memory.sqlite") as memory:
        for branch, keys in values.items():
            for key, value in keys.items():
                memory[branch].core.set(key, value)


def test_a_moment_has_variables_files_and_memory_as_they_were(
    client: httpx2.Client, session: str
) -> None:
    now = moment(client, session, "main", 3)
    variables = {item["name"]: item for item in now["variables"]}
    assert now["state"] == "stored"
    changed = {name for name, item in variables.items() if item["is_changed"]}
    assert (changed, set(variables) - changed) == ({"x", "rows", "steps"}, {"y"})
    assert (variables["rows"]["type"], variables["rows"]["size"] > 1000) == ("list", True)
    assert (bool(variables["steps"]["lost"]), variables["steps"]["size"]) == (True, None)
    files = {item["path"]: item for item in now["files"]["files"]}
    states = {path: (item["is_changed"], item["now"]) for path, item in files.items()}
    assert states == dict.fromkeys(("kept.txt", "new.txt"), (True, "same"))
    before = moment(client, session, "main", 2)
    assert before["state"] == "stored"
    assert {item["name"] for item in before["variables"]} == {"x", "rows", "y"}
    assert not any(item["is_changed"] for item in before["variables"])
    kept = {"path": "kept.txt", "size": 4, "is_changed": False, "now": "changed"}
    assert before["files"] == {"is_known": True, "files": [kept], "first": 0, "total": 1}
    assert before["round"]["question"] == "say: nothing runs"
    page = client.get(f"{session}/branches/main/rounds/3/files", params={"first": 1, "limit": 5})
    assert [item["path"] for item in page.json()["files"]] == ["new.txt"]


def test_a_moment_sees_the_memory_of_its_time(client: httpx2.Client) -> None:
    session = new_session(client)
    ask(client, session, "say: one")
    assert moment(client, session, "main", 1)["state"] == "empty"
    assert moment(client, session, "main", 1)["memory"] == {"core": {}, "facts": []}
    for place, status, kind in (
        ("main/rounds/0", 404, "not-found"),
        ("main/rounds/2", 404, "unknown-round"),
        ("none/rounds/1", 404, "unknown-session-branch"),
        ("main/rounds/1/files?limit=x", 422, "invalid-query"),
        ("main/rounds/9999999999999999999/files", 404, "unknown-round"),
    ):
        problem(client.get(f"{session}/branches/{place}"), status, kind)


def test_a_fork_is_previewed_with_names_and_sizes(client: httpx2.Client, session: str) -> None:
    fork = f"{session}/branches/main/fork"
    now = client.get(fork).json()
    assert (now["state"], now["rounds"], now["variables"]) == ("stored", 3, 4)
    types = {item["name"]: item["type"] for item in now["carried"]}
    assert types == {"x": "int", "rows": "list", "y": "list"}
    assert now["variables_bytes"] == sum(item["size"] for item in now["carried"]) > 1000
    assert [line.partition(":")[0] for line in now["not_carried"]] == ["steps"]
    assert (now["files"], now["files_bytes"], now["files_differ"]) == (2, 8, [])
    then = client.get(fork, params={"at_round": 1}).json()
    assert (then["state"], then["rounds"], then["not_carried"]) == ("stored", 1, [])
    assert (then["files"], then["files_differ"]) == (2, ["kept.txt", "new.txt"])
    none = client.get(fork, params={"at_round": 0}).json()
    assert (none["state"], none["variables"], none["carried"]) == ("empty", 0, [])
    problem(client.get(fork, params={"at_round": 4}), 404, "unknown-round")


def test_the_index_has_forks_and_merges_whose_changes_are_events(client: httpx2.Client) -> None:
    session = new_session(client)
    for text in ("say: one", "say: two"):
        ask(client, session, text)
    last = client.get(f"{API}/sessions").json()["last_change"]
    client.post(f"{session}/branches", json={"name": "b", "at_round": 1})
    ask(client, session, "say: three", branch="b")
    client.post(f"{session}/branches/main/merge", json={"source": "b"})
    ask(client, session, "say: four")
    client.post(f"{session}/branches/b/merge", json={"source": "main"})
    assert client.post(f"{session}/release").status_code == 204
    index = client.get(f"{session}/rounds").json()
    shown = [(one["branch"], one["number"], one["title"], one["forks"]) for one in index["rounds"]]
    assert shown == [
        ("main", 1, "say: one", ["b"]),
        ("main", 2, "say: two", []),
        ("main", 3, "say: four", []),
        ("b", 2, "say: three", []),
    ]
    assert index["merges"] == [
        {"branch": "main", "number": 2, "source": "b"},
        {"branch": "b", "number": 2, "source": "main"},
    ]
    client.patch(session, json={"title": "renamed"})
    client.delete(session)
    kinds = []
    headers = {"Last-Event-ID": f"changes:{last}"}
    with client.stream("GET", f"{API}/events", headers=headers) as stream:
        for _, kind, data in events_of(stream):
            if data.get("session_id") == session.rpartition("/")[2]:
                kinds.append(kind)
            if kind == "session_deleted":
                break
    expected = ["branch_created", "branch_merged", "branch_merged", "session_renamed"]
    assert [one for one in kinds if "message" not in one] == [*expected, "session_deleted"]


def test_two_moments_differ_and_equal_things_are_counts(
    client: httpx2.Client, session: str
) -> None:
    sides = {"first": "main", "second": "past"}
    now = client.get(f"{session}/differences", params=sides).json()
    assert now["common_rounds"] == 2
    assert now["variables"]["x"] == ["2", "3"]
    assert {"rows", "steps", "z"} < set(now["variables"])
    assert now["equal_variables"] == 1
    assert (now["files"], now["equal_files"]) == ({}, 2)  # a fork has the files of its day
    rounds = {"first": "main", "first_round": 2, "second": "main", "second_round": 3}
    found = client.get(f"{session}/differences", params=rounds).json()
    assert [len(texts) for texts in found["rounds"]] == [0, 1]
    assert found["files"] == {"kept.txt": ["4 bytes", "7 bytes"], "new.txt": [None, "1 bytes"]}
    same = client.get(f"{session}/differences", params=rounds | {"second_round": 2}).json()
    assert (same["variables"], same["files"], same["memory"]) == ({}, {}, {})
    assert (same["equal_variables"], same["equal_files"], same["common_rounds"]) == (3, 1, 2)
    for number, status, kind in ((9, 404, "unknown-round"), (-1, 422, "invalid-query")):
        sides = rounds | {"second_round": number}
        problem(client.get(f"{session}/differences", params=sides), status, kind)


def test_a_merge_names_its_conflicts_and_chooses_nothing(
    server: Served, client: httpx2.Client, session: str
) -> None:
    main, past = f"{session}/branches/main/merge", f"{session}/branches/past/merge"
    assert client.get(main, params={"source": "past"}).json()["conflicts"] == []
    problem(client.get(main, params={"source": "none"}), 404, "unknown-session-branch")
    problem(client.get(main, params={"source": "main"}), 409, "invalid-update")
    set_core(server, session, {"main": {"a": "1", "b": "1"}, "past": {"a": "2", "c": "3"}})
    found = client.get(main, params={"source": "past"}).json()
    conflict = {"key": "a", "before": None, "ours": "1", "theirs": "2"}
    assert found == {"core": {"c": "3"}, "records": [], "conflicts": [conflict]}
    refused = client.post(main, json={"source": "past"}).json()
    assert refused == {"taken": [], "conflicts": ["a"], "is_applied": False}
    wrong = {"source": "past", "choices": {"b": "ours"}}
    problem(client.post(main, json=wrong), 409, "invalid-update")
    chosen = client.post(main, json={"source": "past", "choices": {"a": "theirs"}}).json()
    assert chosen == {"taken": ["core a", "core c"], "conflicts": ["a"], "is_applied": True}
    assert client.get(f"{session}/memory").json()["core"] == {"a": "2", "b": "1", "c": "3"}
    assert client.get(past, params={"source": "main"}).json()["core"] == {"b": "1"}


def branches(client: httpx2.Client, session: str) -> dict[str, str]:
    found: list[dict[str, Any]] = client.get(session).json()["branches"]
    return {item["name"]: item["title"] for item in found}


def test_the_list_says_what_goes_on_and_how_many_branches_there_are(
    client: httpx2.Client, model: SteeredModel
) -> None:
    session = new_session(client)

    def listed() -> tuple[str, int]:
        found = client.get(f"{API}/sessions").json()["sessions"]
        (one,) = (item for item in found if session.endswith(item["session_id"]))
        return one["activity"], one["branches"]

    assert listed() == ("idle", 1)
    body = {"text": "say: wait list", "message_id": "m-1"}
    assert client.post(f"{session}/messages", json=body).status_code == 202
    model.await_question("wait list")
    assert listed()[0] == "running"
    model.let_go("wait list")
    with client.stream("GET", f"{session}/messages/m-1/events") as response:
        assert list(events_of(response))[-1][2]["state"] == "finished"
    assert client.post(f"{session}/branches", json={"name": "other"}).status_code == 201
    assert listed() == ("idle", 2)
    ask(client, session, "1 / 0", kind="code", branch="other")
    assert listed() == ("failed", 2)


def test_code_whose_cell_failed_is_a_failed_round_of_the_index(client: httpx2.Client) -> None:
    session = new_session(client)
    ask(client, session, "none_such", kind="code")
    ask(client, session, "x = 1", kind="code")
    client.post(f"{session}/branches", json={"name": "wrong"})
    ask(client, session, "print(x)\nx.none_such", kind="code", branch="wrong")
    for _ in range(2):  # then from the file, without opening a branch
        index = client.get(f"{session}/rounds").json()["rounds"]
        states = [(item["branch"], item["state"]) for item in index]
        assert states == [("main", "failed"), ("main", "finished"), ("wrong", "failed")]
        assert client.post(f"{session}/release").status_code == 204


def test_a_branch_has_a_title_and_keeps_its_name(
    client: httpx2.Client, model: SteeredModel
) -> None:
    session = new_session(client)
    after = client.get(session).json()["last_change"]
    client.post(f"{session}/branches", json={"name": "try-1"})
    body = {"text": "say: wait title", "branch": "try-1", "message_id": "m-2"}
    assert client.post(f"{session}/messages", json=body).status_code == 202
    model.await_question("wait title")  # what runs goes on
    made = client.patch(f"{session}/branches/try-1", json={"title": " Holidays, checked? "})
    assert made.json()["title"] == "Holidays, checked?"
    assert (made.json()["name"], made.json()["state"]) == ("try-1", "running")
    model.let_go("wait title")
    with client.stream("GET", f"{session}/messages/m-2/events") as response:
        assert list(events_of(response))[-1][2]["answer"] == "heard wait title"
    assert client.patch(f"{session}/branches/main", json={"title": "base"}).status_code == 200
    assert branches(client, session) == {"main": "base", "try-1": "Holidays, checked?"}
    taken = (("main", "try-1"), ("try-1", "base"), ("try-1", "main"), ("main", "a\nb"))
    for branch, title in taken:
        refused = client.patch(f"{session}/branches/{branch}", json={"title": title})
        problem(refused, 409, "session-error")
    unknown = client.patch(f"{session}/branches/none", json={"title": "x"})
    problem(unknown, 404, "unknown-session-branch")
    problem(client.patch(f"{session}/branches/main", json={"title": ""}), 422, "invalid-body")
    refused = client.post(f"{session}/branches", json={"name": "base"})
    assert "is taken" in problem(refused, 409, "session-error")["detail"]
    assert client.patch(f"{session}/branches/try-1", json={"title": "try-1"}).status_code == 200
    assert branches(client, session)["try-1"] == "try-1"
    headers = {"Last-Event-ID": f"changes:{after}"}
    with client.stream("GET", f"{API}/events", headers=headers) as stream:
        renamed = (data for _, kind, data in events_of(stream) if kind == "branch_renamed")
        assert next(renamed)["title"] == "Holidays, checked?"
