"""Streams of every door have bytes while what else happens in their session is left out of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from agents import API, SteeredModel, events_of, new_session, serving_agents
from served import Served

from taskweaver.server.agents import following

PRINTING = "import time\nwhile True: print('on', flush=True); time.sleep(0.01)"


@pytest.fixture(scope="module")
def model() -> SteeredModel:
    return SteeredModel()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: SteeredModel) -> Iterator[Served]:
    with serving_agents(tmp_path_factory.mktemp("alive"), model) as running:
        yield running


def chat(*texts: str) -> dict[str, Any]:
    """Return the body of a streamed chat; every second text is an answer."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"messages": messages, "stream": True}


@pytest.mark.parametrize("door", ["agent", "chat"])
def test_a_cell_that_prints_on_another_branch_starves_no_stream(
    server: Served, model: SteeredModel, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    client, wait = server.client(), f"wait {door}"
    begun = f"say: begin {door}"
    if door == "agent":
        session = new_session(client)
        address, body = f"{session}/messages", {"text": f"say: {wait}", "stream": True}
    else:
        address = "/v1/chat/completions"
        said = client.post(address, json=chat(begun))
        assert said.status_code == 200, said.text
        sessions = client.get(f"{API}/sessions").json()["sessions"]
        session = next(
            f"{API}/sessions/{one['session_id']}" for one in sessions if one["title"] == begun
        )
        body = chat(begun, f"heard begin {door}", f"say: {wait}")
    client.post(f"{session}/branches", json={"name": "b"}).raise_for_status()
    cell = {"text": PRINTING, "kind": "code", "branch": "b", "stream": True}
    with client.stream("POST", f"{session}/messages", json=cell) as printing:
        next(one for one in events_of(printing) if one[1] == "post_execution_output")
        monkeypatch.setattr(following, "_KEEP_ALIVE_S", 0.1)
        with client.stream("POST", address, json=body) as answer:
            model.await_question(wait)
            lines = answer.iter_lines()
            assert next(line for line in lines if line.startswith(":")) == ": keepalive"
            model.let_go(wait)
            assert any(f"heard {wait}" in line for line in lines)
        client.post(f"{session}/stop", json={"branch": "b"}).raise_for_status()
