"""Variables over the agent API: a list, and pages of tables that the kernel sorts and filters."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import psutil
import pytest
from agents import SteeredModel, ask, new_session
from live_folders import paths_below
from patience import PATIENCE_S
from served import Served, problem

from taskweaver.server.accounts import Quota

CODE = """
wide = pd.DataFrame([[row * 1000 + column for column in range(500)] for row in range(300)])
wide.columns = [f'c{n}' for n in range(500)]
odd = pd.DataFrame({
    'name': ['<script>alert(1)</script>', 'b' * 2000, None, 'north'],
    'price': [1.5, float('nan'), float('inf'), -2.0],
    'day': pd.to_datetime(['2024-01-02', None, '2024-03-01', '2023-05-05']),
    'big': [2**80, 1, 2, 3],
}, index=['w', 'x', 'y', 'z'])
text, number = 'hello', 7
class Rude:
    def __repr__(self): raise RuntimeError('no')
rude = Rude()
"""

FIRST = """
import os
class Process:
    def __repr__(self): return str(os.getpid())
frame = pd.DataFrame({'n': [3, 1, 2]})
who = pd.DataFrame({'own': [Process()]})
"""
SECOND = "frame.loc[0, 'n'] = 30; frame['more'] = 1; steps = (n for n in range(3))"


@pytest.fixture(scope="module")
def main(client: httpx2.Client) -> str:
    session = new_session(client)
    ask(client, session, CODE, kind="code")
    return f"{session}/branches/main"


def changed_table(client: httpx2.Client) -> str:
    """Make a session whose third round changes a table in place; return its address."""
    session = new_session(client)
    ask(client, session, "say: no code yet")
    ask(client, session, FIRST, kind="code")
    ask(client, session, SECOND, kind="code")
    return session


past = pytest.fixture(scope="module")(changed_table)


def process_of(client: httpx2.Client, moment: str) -> psutil.Process:
    """Return the process of the kernel that shows a moment, which is a branch or its round."""
    ((value,),) = page(client, moment, "who")["cells"]
    return psutil.Process(int(value["text"]))


def page(client: httpx2.Client, main: str, name: str, **query: Any) -> dict[str, Any]:
    params = {key: json.dumps(value) for key, value in query.items()}
    response = client.get(f"{main}/variables/{name}/rows", params=params)
    found: dict[str, Any] = response.raise_for_status().json()
    return found


def test_variables_have_types_shapes_and_sizes(client: httpx2.Client, main: str) -> None:
    listed = {one["name"]: one for one in client.get(f"{main}/variables").json()["variables"]}

    assert set(listed) == {"wide", "odd", "text", "number", "rude"}
    wide = listed["wide"]
    assert (wide["type"], wide["shape"], wide["is_table"]) == ("DataFrame", [300, 500], True)
    assert wide["size"] >= 300 * 500 * 8
    assert (listed["number"]["shape"], listed["number"]["is_table"]) == (None, False)


def test_values_that_json_cannot_hold_are_named(client: httpx2.Client, main: str) -> None:
    found = page(client, main, "odd")
    names, prices, days, bigs = zip(*found["cells"], strict=True)

    assert found["labels"] == [["w"], ["x"], ["y"], ["z"]]
    assert (names[0], names[2]) == ("<script>alert(1)</script>", None)
    assert (len(names[1]["text"]), names[1]["length"]) == (500, 2000)
    assert prices == (1.5, None, {"type": "number", "text": "inf"}, -2.0)
    assert (days[0][:10], days[1]) == ("2024-01-02", None)
    assert bigs[0] == {"type": "integer", "text": str(2**80)}


def test_the_kernel_sorts_and_filters(client: httpx2.Client, main: str) -> None:
    ordered = page(client, main, "odd", order=[[1, True]])
    assert [label for (label,) in ordered["labels"]] == ["y", "w", "z", "x"]
    cheap = page(client, main, "odd", filters=[[1, "lt", "2"]], order=[[1, False]])
    assert (cheap["found_rows"], cheap["labels"]) == (2, [["z"], ["w"]])
    late = page(client, main, "odd", filters=[[2, "ge", "2024-01-01"]])
    assert late["labels"] == [["w"], ["y"]]
    named = page(client, main, "odd", filters=[[0, "contains", "NORTH"], [1, "present", ""]])
    assert named["labels"] == [["z"]]


def test_impossible_requests_are_refused(client: httpx2.Client, main: str) -> None:
    def refused(name: str, status: int, kind: str, **query: str) -> None:
        problem(client.get(f"{main}/variables/{name}/rows", params=query), status, kind)

    refused("nothing", 404, "not-found")
    refused("text", 422, "invalid-query")
    refused("odd", 422, "invalid-query", order="[[0]]")
    refused("odd", 404, "not-found", order="[[9, true]]")
    refused("odd", 422, "invalid-query", filters='[[1, "lt", "cheap"]]')
    refused("odd", 422, "invalid-query", filters='[[1, "__class__", "x"]]')
    refused("odd", 422, "invalid-query", first_row="-1")
    problem(client.get(f"{main[:-4]}nowhere/variables"), 404, "unknown-session-branch")


def test_a_table_of_a_past_moment_is_as_it_was(client: httpx2.Client, past: str) -> None:
    main = f"{past}/branches/main"
    for _ in range(2):  # from a sleeping process, then from the disk
        then = page(client, f"{main}/rounds/2", "frame", order=[[0, True]])
        assert then["cells"] == [[3], [2], [1]]
        few = page(client, f"{main}/rounds/2", "frame", filters=[[0, "lt", "3"]], first_row=1)
        assert (few["found_rows"], few["cells"]) == (2, [[2]])
        assert page(client, f"{main}/rounds/3", "frame")["cells"] == [[30, 1], [1, 1], [2, 1]]
        assert client.post(f"{past}/release").status_code == 204
    assert page(client, main, "frame")["cells"] == [[30, 1], [1, 1], [2, 1]]
    assert [one["name"] for one in client.get(past).json()["branches"]] == ["main"]


def test_tables_that_a_past_moment_does_not_have(
    server: Served, client: httpx2.Client, past: str
) -> None:
    def rows(number: int, name: str = "frame", branch: str = "main") -> httpx2.Response:
        return client.get(f"{past}/branches/{branch}/rounds/{number}/variables/{name}/rows")

    for number in (0, 1):
        assert "no code had run" in problem(rows(number), 404, "not-found")["detail"]
    problem(rows(2, "steps"), 404, "not-found")
    problem(rows(4), 404, "unknown-round")
    problem(rows(2, branch="nowhere"), 404, "unknown-session-branch")
    address = f"{past}/branches/main/rounds/2/variables/frame/rows"
    problem(client.get(address, params={"order": "[[0]]"}), 422, "invalid-query")
    mallory = server.client(server.accounts.add("mallory").text)
    problem(mallory.get(address), 404, "not-found")
    assert client.post(f"{past}/release").status_code == 204
    lost = problem(rows(3, "steps"), 404, "not-found")
    assert "not in the restored state" in lost["detail"]
    (stored,) = paths_below(server.log.parent, f"{past.rpartition('/')[2]}/state/rounds/main")
    away = stored.rename(stored.parent / "away")  # a while: other tests ask for its states
    problem(rows(2), 409, "state-not-kept")
    assert client.get(f"{past}/branches/main/rounds/2").json()["state"] == "none"
    away.rename(stored)


def test_a_past_moment_has_its_own_kernel_until_the_release(
    client: httpx2.Client, model: SteeredModel
) -> None:
    session = changed_table(client)
    main = f"{session}/branches/main"
    second, third = f"{main}/rounds/2", f"{main}/rounds/3"
    own, first = process_of(client, main), process_of(client, second)
    assert process_of(client, second) == first != own
    other = process_of(client, third)
    assert other not in {first, own}
    assert_ends(first)
    assert process_of(client, main) == own
    assert client.post(f"{session}/release").status_code == 204
    assert_ends(own, other)
    killed = process_of(client, second)
    killed.kill()
    assert_ends(killed)
    client.post(f"{session}/messages", json={"text": "say: wait past"})
    model.await_question("wait past")
    restored = process_of(client, second)  # also while the branch is at work
    model.let_go("wait past")
    assert client.delete(session).status_code == 204
    assert_ends(restored)


def assert_ends(*processes: psutil.Process) -> None:
    assert psutil.wait_procs(processes, timeout=PATIENCE_S)[1] == []


def test_the_kernel_of_a_past_moment_counts_as_one(server: Served) -> None:
    poor = server.client(server.accounts.add("poor", quota=Quota(kernels=1)).text)
    session = changed_table(poor)
    main, second = f"{session}/branches/main", f"{session}/branches/main/rounds/2"
    own = process_of(poor, main)
    problem(poor.get(f"{second}/variables/frame/rows"), 429, "quota")
    assert process_of(poor, main) == own
    assert poor.post(f"{session}/release").status_code == 204
    past = process_of(poor, second)
    now = process_of(poor, main)
    assert now != past  # the kernel of the present is more than it
    assert_ends(past)

    other = changed_table(poor)
    assert_ends(now)
    (stored,) = paths_below(server.log.parent, f"{session.rpartition('/')[2]}/state/rounds/main")
    for file in stored.iterdir():
        file.unlink()
    kept = process_of(poor, f"{other}/branches/main")
    problem(poor.get(f"{second}/variables/frame/rows"), 409, "state-not-kept")
    assert process_of(poor, f"{other}/branches/main") == kept  # it did not end in vain


def test_a_forged_view_is_refused(client: httpx2.Client) -> None:
    session = new_session(client)
    forge = "own = get_ipython().kernel._operations\n"
    forge += "own['view'] = lambda _: {'variables': [{'name': 5}]}"
    ask(client, session, forge, kind="code")
    problem(client.get(f"{session}/branches/main/variables"), 409, "no-view")
