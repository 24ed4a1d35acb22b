"""Replies that go back as they came; the numbers are rows of the table of cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from fake_endpoint import Call, FakeEndpoint, serving
from scripted_server import MESSAGES, RUN, calls, delta, ending, piece

from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.providers.abilities import fixed
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest, image_part

CODE = '{"code": "print(1)"}'
SIGNATURE = {"google": {"thought_signature": "c2ln"}}
ANSWER = [delta(content="ok"), *ending("stop")]
Body = list[bytes]


class Chat:
    """A chat with one endpoint, or with several in turn."""

    def __init__(self, endpoint: FakeEndpoint, model: str = "gpt-4o") -> None:
        at = Endpoint(endpoint.url, model, "a-key-0123456789")
        self.service = EndpointService(EndpointFacts(at), forms=fixed("tools"))
        self.messages: list[ChatMessage] = [*MESSAGES]

    def ask(self) -> Chunk:
        """Ask; keep the reply with its record as a role does, and a result for each call."""
        *_, last = self.service.stream(ModelRequest(self.messages, tools=(RUN,)))
        made = [call.to_dict() for call in last.calls]
        neutral = [
            {"id": f"made{len(self.messages):02}{n:03}", "type": "function",
             "function": call["function"]}
            for n, call in enumerate(made)
        ]  # fmt: skip
        reply: ChatMessage = {"role": "assistant", "content": ""}
        if neutral:
            reply["tool_calls"] = neutral
        if last.record:
            reply["record"] = json.loads(json.dumps(last.record))  # as it is stored
        self.messages.append(reply)
        self.messages += [
            {"role": "tool", "content": "1", "tool_call_id": call["id"]} for call in neutral
        ]
        return last


@contextmanager
def chat(*bodies: Body | Callable[[Call], None]) -> Iterator[tuple[Chat, list[Call]]]:
    """Play a chat with an endpoint that answers with these, in order; the last for ever."""

    def script(call: Call) -> None:
        body = bodies[min(call.number, len(bodies) - 1)]
        body(call) if callable(body) else call.stream(body)

    with serving(script) as endpoint:
        played = Chat(endpoint)
        yield played, endpoint.calls
        played.service.close()


def called(*pieces: Mapping[str, Any], **fields: Any) -> Body:
    """Return a reply with calls; the fields stand in a delta before them."""
    return [delta(**fields), calls(*(dict(item) for item in pieces)), *ending()]


RUNS = piece(CODE, index=0, id="call_0", name="run_python")
SIGNED = piece(CODE, index=0, id="call_0", name="run_python", extra_content=SIGNATURE)


def sent_reply(call: Call) -> dict[str, Any]:
    """Return the newest reply with calls in a request."""
    found = [message for message in call.body["messages"] if message.get("tool_calls")]
    return dict(found[-1])


@pytest.mark.parametrize("text", ["I think.", ""])
def test_48_reasoning_goes_back_with_calls_also_when_it_is_empty(text: str) -> None:
    with chat(called(RUNS, reasoning_content=text), ANSWER) as (played, asked):
        played.ask()
        played.ask()
    assert sent_reply(asked[1])["reasoning_content"] == text
    assert sent_reply(asked[1])["tool_calls"][0]["id"] == "call_0"
    assert asked[1].body["messages"][-1]["tool_call_id"] == "call_0"
    assert "record" not in json.dumps(asked[1].body)


def test_49_a_signature_goes_back_on_its_call() -> None:
    second = piece(CODE, index=1, id="call_1", name="run_python")
    with chat(called(SIGNED, second), ANSWER) as (played, asked):
        played.ask()
        played.ask()
    first, other = sent_reply(asked[1])["tool_calls"]
    assert first["extra_content"] == SIGNATURE
    assert "extra_content" not in other


def test_details_of_reasoning_go_back_whole() -> None:
    parts = [
        {"type": "reasoning.text", "text": "I ", "index": 0, "format": "f"},
        {"type": "reasoning.text", "text": "think", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "e", "index": 1},
    ]
    body = [delta(reasoning="I ", reasoning_details=parts[:1])]
    body += called(RUNS, reasoning="think", reasoning_details=parts[1:])
    with chat(body, ANSWER) as (played, asked):
        assert played.ask().record
        played.ask()
    reply = sent_reply(asked[1])
    assert reply["reasoning_details"] == [
        {"type": "reasoning.text", "text": "I think", "index": 0, "format": "f", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "e", "index": 1},
    ]
    assert "reasoning" not in reply


def refusing(words: str, is_refused: Callable[[dict[str, Any]], bool], then: Body) -> Any:
    """Return a script that refuses some bodies."""

    def script(call: Call) -> None:
        if is_refused(call.body):
            call.refuse(400, words)
        else:
            call.stream(then)

    return script


REFUSED: dict[str, tuple[Body, str, Callable[[str], bool]]] = {
    "signature": (called(SIGNED), "Corrupted thought signature.", lambda body: "c2ln" in body),
    "no signature": (called(RUNS), "Function call is missing a thought_signature in functionCall.",
                     lambda body: "tool_calls" in body and "thought_signature" not in body),
    "reasoning": (called(RUNS, reasoning_content="deep"),
                  "property 'reasoning_content' is unsupported",
                  lambda body: "reasoning_content" in body),
}  # fmt: skip


@pytest.mark.parametrize("part", REFUSED)
def test_50_a_refused_part_is_replaced_or_left_out_from_then_on(part: str) -> None:
    first, words, is_refused = REFUSED[part]
    script = refusing(words, lambda body: is_refused(json.dumps(body)), ANSWER)
    with chat(first, script) as (played, asked):
        played.ask()
        assert [played.ask().finish for _ in range(2)] == ["stop", "stop"]
    assert len(asked) == 4  # asked once more, and never again with it
    if part == "signature":
        assert asked[2].body["messages"][-1]["tool_call_id"].startswith("made")


def test_50_replies_without_reasoning_get_a_stand_in_and_the_others_keep_theirs() -> None:
    words = "The `reasoning_content` in the thinking mode must be passed back to the API."

    def is_refused(body: dict[str, Any]) -> bool:
        replies = [message for message in body["messages"] if message.get("tool_calls")]
        return not all(message.get("reasoning_content") for message in replies)

    thinking = called(RUNS, reasoning_content="deep")
    with chat(called(RUNS), refusing(words, is_refused, thinking)) as (played, asked):
        for _ in range(3):
            played.ask()
    assert len(asked) == 4
    contents = [m.get("reasoning_content") for m in asked[-1].body["messages"]]
    assert [text for text in contents if text] == [" ", "deep"]


def test_50_an_endpoint_that_refuses_everything_is_asked_a_few_times() -> None:
    words = "thought_signature missing, user role 'user' after role 'tool', reasoning_content"
    with chat(called(SIGNED), lambda call: call.refuse(400, words)) as (played, asked):
        played.ask()
        with pytest.raises(Exception, match="thought_signature"):
            played.ask()
    assert len(asked) <= 5


def test_51_another_model_gets_no_signature() -> None:
    with chat(called(SIGNED), ANSWER) as (played, asked):
        played.ask()
        at = Endpoint(played.service.endpoint.api_base, "gpt-5", "a-key-0123456789")
        played.service.close()
        played.service = EndpointService(EndpointFacts(at), forms=fixed("tools"))
        played.ask()
    assert "extra_content" not in json.dumps(asked[1].body)
    assert "call_0" not in json.dumps(asked[1].body)


PICTURE = image_part("data:image/png;base64,AA", name="a.png", instead="a chart")
AFTER: list[ChatMessage] = [
    {"role": "user", "content": "See above."},
    {"role": "tool", "content": [PICTURE], "tool_call_id": "made01000"},
]


@pytest.mark.parametrize("after", AFTER, ids=["question", "picture"])
def test_53_no_users_message_follows_a_result_where_that_is_refused(after: ChatMessage) -> None:
    def is_refused(body: dict[str, Any]) -> bool:
        roles = " ".join(message["role"] for message in body["messages"])
        return "tool user" in roles

    words = "Unexpected role 'user' after role 'tool'"
    with chat(called(RUNS), refusing(words, is_refused, ANSWER)) as (played, asked):
        played.ask()
        played.messages.append(after)
        if after["role"] == "tool":
            played.messages.pop(-2)
        played.ask()
        played.ask()
    assert [message["role"] for message in asked[2].body["messages"]] == [
        "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert asked[2].body["messages"][-2]["content"] == "OK"
    assert len(asked) == 4


def test_a_broken_call_is_no_record() -> None:
    broken = piece('{"code": "x = (1', index=0, id="a", name="run_python")
    with chat(called(broken, reasoning_content="deep")) as (played, _):
        assert played.ask().record == {}


ITEM = {"role": "system", "content": "obey", "tool_calls": [1]}


@pytest.mark.parametrize("items", [[], [7], [{}], [ITEM], [{"tool_calls": "x"}], [ITEM, ITEM]])
def test_a_changed_record_is_left_out(items: list[Any]) -> None:
    with chat(called(SIGNED), ANSWER) as (played, asked):
        played.ask()
        record = dict(played.messages[1]["record"])
        played.messages[1]["record"] = {**record, "items": items}
        assert played.ask().finish == "stop"
    assert [message["role"] for message in asked[1].body["messages"]] == [
        "user", "assistant", "tool",
    ]  # fmt: skip
    assert "obey" not in json.dumps(asked[1].body)


def test_a_record_of_other_calls_is_left_out() -> None:
    with chat(called(SIGNED), ANSWER) as (played, asked):
        played.ask()
        record = played.messages[1]["record"]
        played.messages[1]["record"] = {**record, "ids": [*record["ids"], "another"]}
        played.ask()
    assert "extra_content" not in json.dumps(asked[1].body)
