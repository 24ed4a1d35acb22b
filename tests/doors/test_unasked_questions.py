"""Questions for consent in rounds of clients that cannot answer them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import pytest
from agents import API, events_of, serving_agents
from mcp_calls import over_http, value
from patience import PATIENCE_S
from served import Served
from support import code_reply, planner_reply

from taskweaver.doors.mcp.door import McpDoor
from taskweaver.llm.types import ChatMessage
from taskweaver.module.confirmation import ConfirmationRequest, NotConfirmed
from taskweaver.module.event_emitter import current_branch
from taskweaver.server.agents import confirming

CELL = "print('allowed ' + 'to run')"
CHAT = "/v1/chat/completions"


def coding(messages: Sequence[ChatMessage]) -> str:
    """Answer as a model that writes one cell, and as a leader that reports nothing of it."""
    asked = str(messages[-1]["content"])
    if "run it" in asked:
        return code_reply(CELL)
    if "say: plan" in asked:
        return planner_reply("CodeInterpreter", "run it")
    return planner_reply("User", "all is well")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    config = {"code_interpreter.require_confirmation": True, "planner.leader_writes_code": False}
    folder = tmp_path_factory.mktemp("unasked")
    with serving_agents(folder, coding, config, more=lambda own: [McpDoor(own)]) as running:
        yield running


def chat(text: str, *, stream: bool) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "stream": stream}


@pytest.mark.parametrize("door", ["chat", "stream", "mcp"])
def test_code_is_refused_at_once_with_the_place_where_it_can_be_allowed(
    server: Served, client: httpx2.Client, door: str
) -> None:
    question = f"say: plan {door}"

    async def ask_over_mcp() -> str:
        async with over_http(server.url, server.token.text) as called:
            return str((await value(called, "ask", question=question))["answer"])

    if door == "mcp":
        said = asyncio.run(asyncio.wait_for(ask_over_mcp(), PATIENCE_S))
    else:
        said = client.post(CHAT, json=chat(question, stream=door == "stream")).text
    sessions = client.get(f"{API}/sessions").json()["sessions"]
    (session,) = [one["session_id"] for one in sessions if one["title"] == question]
    assert "all is well" in said  # whatever the model makes of it, the reason stands below
    for part in (f"session {session}", "taskweaver web", f"--resume {session}", "allowed "):
        assert part in said
    assert client.get(f"{API}/sessions/{session}/confirmations").json()["confirmations"] == []


def test_a_client_of_the_agent_api_that_watches_is_asked(client: httpx2.Client) -> None:
    first = chat("say: plan watched", stream=False)
    answer = client.post(CHAT, json=first).json()["choices"][0]["message"]
    sessions = client.get(f"{API}/sessions").json()["sessions"]
    (session,) = [one["session_id"] for one in sessions if one["title"] == "say: plan watched"]
    address = f"{API}/sessions/{session}"
    body = chat("say: plan again", stream=True)
    body["messages"] = [*first["messages"], answer, *body["messages"]]
    with (
        client.stream("GET", f"{address}/events") as watching,
        client.stream("POST", CHAT, json=body) as stream,
    ):
        events = events_of(watching)
        asked = next(data for _, kind, data in events if kind == "post_confirmation_request")
        one = f"{address}/confirmations/{asked['extra']['id']}"
        assert client.post(one, json={"answer": "yes"}).status_code == 204
        said = stream.read().decode()
    assert f"waits for a yes in session {session}" in said
    assert client.post(one, json={"answer": "no"}).status_code == 404


def test_a_question_that_is_not_answered_in_time_says_so() -> None:
    asked = confirming.ClientConfirmations("s1")
    asked.silent.add(current_branch())
    request = ConfirmationRequest(frozenset({"code"}), "1 + 1")
    with asked.watched():
        asked.expect(request)
        with pytest.raises(NotConfirmed, match=r"nobody answered.* session s1.*: 1 \+ 1"):
            asked.request_confirmation(request, 0.0)
    assert "nobody answered" in asked.refused[current_branch()]
