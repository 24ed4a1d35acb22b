"""The responses API, asked by the client of the package `openai`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import API, SteeredModel, serving_agents
from openai.types.responses import Response
from patience import PATIENCE_S
from served import Served, problem


@pytest.fixture(scope="module")
def model() -> SteeredModel:
    return SteeredModel()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("responses")


@pytest.fixture(scope="module")
def server(folder: Path, model: SteeredModel) -> Iterator[Served]:
    with serving_agents(folder, model) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[openai.OpenAI]:
    with asking(server) as client:
        yield client


def asking(server: Served, token: str = "") -> openai.OpenAI:
    url = f"{server.url}/v1"
    key = token or server.token.text
    return openai.OpenAI(api_key=key, base_url=url, max_retries=0, timeout=PATIENCE_S)


def rounds(server: Served, word: str) -> list[tuple[str, str]]:
    """Return the branch and title of each round of the one session with a word in its title."""
    agent = server.client()
    sessions = agent.get(f"{API}/sessions").json()["sessions"]
    (found,) = [item["session_id"] for item in sessions if word in item["title"]]
    index = agent.get(f"{API}/sessions/{found}/rounds").json()["rounds"]
    return [(one["branch"], one["title"]) for one in index]


def test_a_conversation_goes_on_after_any_of_its_responses(
    server: Served, client: openai.OpenAI
) -> None:
    first = client.responses.create(model="taskweaver", input="say: alpha")
    assert (first.output_text, first.status) == ("heard alpha", "completed")
    assert first.usage is not None
    assert first.usage.total_tokens > 0
    for text in ("b", "c"):
        later = client.responses.create(
            model="taskweaver", input=f"say: {text}", previous_response_id=first.id
        )
        assert later.output_text == f"heard {text}"
        assert later.previous_response_id == first.id
    assert rounds(server, "alpha")[1:] == [("main", "say: b"), ("branch-1", "say: c")]
    kept = client.responses.retrieve(first.id)
    assert (kept.output_text, kept.status) == ("heard alpha", "completed")


def test_two_requests_after_one_response_have_a_branch_each(
    server: Served, client: openai.OpenAI, model: SteeredModel
) -> None:
    first = client.responses.create(model="taskweaver", input="say: twins")

    def ask(text: str) -> str:
        later = client.responses.create(
            model="taskweaver", input=f"say: {text}", previous_response_id=first.id
        )
        return later.output_text

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(ask, "xyz")) == ["heard x", "heard y", "heard z"]
    branches = [branch for branch, _ in rounds(server, "twins")[1:]]
    assert sorted(branches) == ["branch-1", "branch-2", "main"]


def test_a_response_is_streamed(client: openai.OpenAI) -> None:
    with client.responses.stream(model="taskweaver", input="say: " + "long " * 300) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 2
    assert "".join(deltas) == final.output_text
    assert final.output_text.startswith("heard long long")
    reasoning, message = final.output
    assert (reasoning.type, message.type) == ("reasoning", "message")


def test_an_input_with_earlier_outputs_is_taken(client: openai.OpenAI) -> None:
    asked: list[Any] = [{"role": "user", "content": "say: one"}]
    first = client.responses.create(model="taskweaver", input=asked)
    asked += [item.to_dict() for item in first.output]
    asked.append({"role": "user", "content": "say: two"})
    assert client.responses.create(model="taskweaver", input=asked).output_text == "heard two"


def test_messages_are_taken_as_input(client: openai.OpenAI) -> None:
    found: Response = client.responses.create(
        model="taskweaver",
        instructions="Be brief.",
        input=[
            {"role": "user", "content": "what is it?"},
            {"role": "assistant", "content": "a zebra"},
            {"role": "user", "content": [{"type": "input_text", "text": "say: omega"}]},
        ],
    )
    assert found.output_text == "heard omega"


def test_a_reader_that_leaves_stops_the_response(
    client: openai.OpenAI, model: SteeredModel
) -> None:
    stream = client.responses.create(model="taskweaver", input="say: wait gone", stream=True)
    created = next(iter(stream))
    assert created.type == "response.created"
    model.await_question("wait gone")
    assert client.responses.retrieve(created.response.id).status == "in_progress"
    stream.close()
    while client.responses.retrieve(created.response.id).status == "in_progress":
        model.let_go("wait gone")
    assert client.responses.retrieve(created.response.id).status in {"failed", "cancelled"}


def test_what_is_not_taken_is_refused(server: Served, client: openai.OpenAI) -> None:
    agent, url = server.client(), "/v1/responses"
    image = {"type": "input_image", "image_url": "data:"}
    for body in (
        {"input": " "},
        {"input": []},
        {"input": [{"role": "assistant", "content": "x"}]},
        {"input": [{"role": "user", "content": [image, {"type": "input_text", "text": "x"}]}]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
        {"input": "say: x", "background": True},
        {"input": "say: x", "conversation": "conv_1"},
    ):
        problem(agent.post(url, json=body), 422, "invalid-body")
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="m", input="say: x", previous_response_id="resp_none")
    mine = client.responses.create(model="m", input="say: mine")
    with asking(server, server.accounts.add("eve").text) as eve:
        with pytest.raises(openai.NotFoundError):
            eve.responses.retrieve(mine.id)
        with pytest.raises(openai.NotFoundError):
            eve.responses.create(model="m", input="say: x", previous_response_id=mine.id)


def test_a_conversation_goes_on_after_a_restart(tmp_path: Path) -> None:
    with serving_agents(tmp_path, SteeredModel()) as first, asking(first) as client:
        known = client.responses.create(model="m", input="say: before")
    with serving_agents(tmp_path, SteeredModel()) as second, asking(second) as client:
        assert client.responses.retrieve(known.id).output_text == "heard before"
        later = client.responses.create(
            model="m", input="say: after", previous_response_id=known.id
        )
        assert later.output_text == "heard after"
        assert rounds(second, "before") == [("main", "say: before"), ("main", "say: after")]
