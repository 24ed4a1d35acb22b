"""The OpenAI-compatible routes, asked by the client of the package `openai`."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import openai
import pytest
from agents import API, SteeredModel, asking
from openai.types.chat import ChatCompletionMessageParam
from served import Served, problem

from taskweaver.server.accounts import Quota


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[openai.OpenAI]:
    with asking(server) as client:
        yield client


def user(text: str) -> ChatCompletionMessageParam:
    return {"role": "user", "content": text}


def assistant(text: str) -> ChatCompletionMessageParam:
    return {"role": "assistant", "content": text}


def ask(client: openai.OpenAI, *messages: ChatCompletionMessageParam) -> str:
    found = client.chat.completions.create(model="taskweaver", messages=messages)
    assert found.choices[0].finish_reason == "stop"
    assert found.usage is not None
    assert found.usage.total_tokens > 0
    return found.choices[0].message.content or ""


def rounds(server: Served, word: str) -> dict[str, list[tuple[str, str]]]:
    """Return the branch and title of each round of the sessions with a word in their title."""
    agent = server.client()
    listed = agent.get(f"{API}/sessions").json()["sessions"]
    found = {}
    for item in listed:
        if word in item["title"]:
            index = agent.get(f"{API}/sessions/{item['session_id']}/rounds").json()["rounds"]
            found[item["session_id"]] = [(one["branch"], one["title"]) for one in index]
    return found


def test_the_one_model_is_listed(client: openai.OpenAI) -> None:
    assert [item.id for item in client.models.list()] == ["taskweaver"]
    assert client.models.retrieve("taskweaver").owned_by == "taskweaver"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-9")


def test_a_chat_goes_on_in_its_session_and_an_edited_one_on_a_fork(
    server: Served, client: openai.OpenAI
) -> None:
    system: ChatCompletionMessageParam = {"role": "system", "content": "Be brief."}
    first = ask(client, system, user("say: alpha"))
    assert first == "heard alpha"
    assert ask(client, system, user("say: alpha"), assistant(first), user("say: b")) == "heard b"
    again = ask(client, system, user("say: alpha"), assistant(first), user("say: c"))
    assert again == "heard c"
    (found,) = rounds(server, "alpha").values()
    assert found[1:] == [("main", "say: b"), ("branch-1", "say: c")]


def test_a_chat_that_is_not_known_here_brings_its_history(
    server: Served, client: openai.OpenAI
) -> None:
    ask(client, user("what is it?"), assistant("a zebra"), user("say: omega"))
    (found,) = rounds(server, "omega").values()
    assert len(found) == 1


def test_an_answer_is_streamed_with_its_usage(client: openai.OpenAI) -> None:
    asked = [user("say: " + "long " * 300)]
    stream = client.chat.completions.create(
        model="taskweaver", messages=asked, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts).startswith("heard long long")
    assert len([text for text in texts if text]) > 2
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0


def test_a_reader_that_leaves_stops_the_answer(
    server: Served, client: openai.OpenAI, model: SteeredModel
) -> None:
    stream = client.chat.completions.create(
        model="taskweaver", messages=[user("say: wait gone")], stream=True
    )
    next(iter(stream))
    model.await_question("wait gone")
    stream.close()
    wait_for_the_stop(server, model, "wait gone")


def test_a_client_that_does_not_wait_for_the_whole_answer_stops_it(
    server: Served, model: SteeredModel
) -> None:
    content = json.dumps({"messages": [user("say: wait whole")]}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    head += f"X-API-Key: {server.token.text}\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(content)}\r\n\r\n"
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname or "", where.port or 0)) as connection:
        connection.sendall(head.encode() + content)
        model.await_question("wait whole")
    wait_for_the_stop(server, model, "wait whole")


def wait_for_the_stop(server: Served, model: SteeredModel, question: str) -> None:
    """Wait until the answer to a question is stopped; the model answers only then."""
    agent = server.client()
    (session_id,) = rounds(server, question)
    with agent.stream("GET", f"{API}/sessions/{session_id}/events") as events:
        for line in events.iter_lines():  # the stop lets the call go; then the model answers
            if line == "event: round_error":
                break
            model.let_go(question)
    (message,) = agent.get(f"{API}/sessions/{session_id}/messages").json()["messages"]
    assert message["state"] in {"running", "stopped"}


def test_errors_are_those_that_the_client_knows(server: Served) -> None:
    with asking(server, "tw-none") as stranger, pytest.raises(openai.AuthenticationError):
        ask(stranger, user("say: x"))
    token = server.accounts.add("ann", quota=Quota(tokens=0)).text
    with asking(server, token) as ann, pytest.raises(openai.RateLimitError, match="tokens"):
        ask(ann, user("say: x"))
    agent, url = server.client(), "/v1/chat/completions"
    for messages in (
        [],
        [assistant("x")],
        [user(" ")],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}],
        [{"role": "boss", "content": "x"}],
    ):
        problem(agent.post(url, json={"messages": messages}), 422, "invalid-body")
    for more in ({"n": 2}, {"response_format": {"type": "json_object"}}):
        body = {"messages": [user("say: x")], **more}
        problem(agent.post(url, json=body), 422, "invalid-body")
    body = {"messages": [user("say: x")], "max_tokens": 5, "response_format": {"type": "text"}}
    (choice,) = agent.post(url, json=body).json()["choices"]
    assert choice["message"]["content"] == "heard x"
    assert "limit of tokens is not used" in choice["message"]["reasoning_content"]
