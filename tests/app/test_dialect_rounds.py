"""Rounds in the other protocols of endpoints: Anthropic messages, Responses, Ollama's.

Numbers are rows of the table of cases.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude_replies import call as claude_call
from claude_replies import reply, text
from fake_endpoint import Call, good, serving
from ollama_server import MODEL, last, line, ollama, said
from response_events import (
    REASONING,
    call_item,
    completed,
    created,
    function_call,
    message,
    reasoning,
)
from rounds import answering, cell, keys_of, play
from scripted_server import delta, ending
from support import Listener

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.chat import Chat
from taskweaver.console.commands.table import CommandLine
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.llm.prompts import PROMPTS_FILE
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.event_emitter import PostEventType

pytestmark = pytest.mark.usefixtures("no_states")

CLAUDE: dict[str, Any] = {
    "llm.api_type": "anthropic",
    "llm.model": "claude-x",
    "llm.api_key": "sk-ant-key-01234",
}
RESPONSES: dict[str, Any] = {"llm.dialect": "responses"}


def claude_cell(code: str, id_: str = "toolu_1") -> dict[str, Any]:
    return claude_call(id_, intent="look", code=code)


def test_67_70_claudes_cells_and_their_results_are_one_message_each(project: Path) -> None:
    code = "\n".join([*(f"value_{n} = {n}" for n in range(200)), "6 * 7"])
    cells = reply(text("I multiply."), claude_cell(code), claude_cell("1 / 0", "toolu_2"))
    (round_,), (first, second), listener = play(project, cells, reply(text("It is 42.")), **CLAUDE)
    assert round_.answer.text == "It is 42."
    (thought,) = round_.post_list[1].get_attachment(AttachmentType.thought)
    assert thought.content == "I multiply."
    pieces = [
        event.msg
        for event in listener.events
        if event.extra.get("type") is AttachmentType.reply_content and not event.extra["is_end"]
    ]
    assert len(pieces) > 1, "code is shown while its call arrives"
    assert first.body["tools"][0]["name"] == "run_python"
    asked, answered = second.body["messages"][-2:]
    used = [block for block in asked["content"] if block["type"] == "tool_use"]
    assert used[0]["input"]["code"] == code
    assert [block["tool_use_id"] for block in answered["content"]] == [one["id"] for one in used]
    assert [block.get("is_error") for block in answered["content"]] == [None, True]
    assert "42" in answered["content"][0]["content"]
    assert "ZeroDivisionError" in answered["content"][1]["content"]


CELL = call_item(1, json.dumps({"intent": "multiply", "code": "6 * 7"}))
WORKS = [created(), *reasoning(), *function_call(1, CELL), completed()]


def says(words: str) -> list[bytes]:
    return [created(), *message(0, words), completed()]


def kinds(call: Call) -> list[str]:
    """Return the kinds of the items of a request, of messages their roles."""
    return [item.get("type") or item["role"] for item in call.body["input"]]


def test_78_reasoning_goes_back_with_its_call_and_its_summary_is_shown(project: Path) -> None:
    (round_,), (first, second), listener = play(project, WORKS, says("It is 42."), **RESPONSES)
    assert round_.answer.text == "It is 42."
    assert first.path.endswith("/responses")
    assert first.body["tools"][0]["name"] == "run_python"
    assert second.body["input"][: len(first.body["input"])] == first.body["input"]  # for the cache
    new = second.body["input"][len(first.body["input"]) :]
    assert new[:2] == [REASONING, CELL]
    assert (new[2]["type"], new[2]["call_id"]) == ("function_call_output", "call_1")
    assert "42" in str(new[2]["output"])
    statuses = listener.messages(PostEventType.post_status_update)
    assert "thinking: I look at the table and multiply both numbers." in statuses


def test_78_it_goes_back_after_the_session_was_opened_again_to_its_model_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies = [WORKS, says("It is 42."), says("Still."), says("Yes.")]
    with serving(answering(*bodies)) as endpoint:
        with TaskWeaverApp(project, config=keys_of(endpoint.url, **RESPONSES)) as app:
            line_ = CommandLine(Chat(app, PlainSurface()))
            outputs = []
            for typed in ("go", "/prompts 1", "/info"):
                line_.handle(typed)
                outputs.append(capsys.readouterr().out)
        for model in ("m", "another"):
            config = keys_of(endpoint.url, **RESPONSES) | {"llm.model": model}
            with TaskWeaverApp(project, config=config) as app:
                assert app.resume_session().send_message("and?").state == "finished"
    round_shown, prompt, facts = outputs
    assert "It is 42." in round_shown
    assert "I look at the table" not in round_shown
    for words in ("--- reasoning ---", "I look at the table", "--- call of run_python ---"):
        assert words in prompt
    assert "240 in 2 calls, 128 from a cache, 40 of reasoning" in facts
    same, other = endpoint.calls[2:]
    assert REASONING in same.body["input"]
    assert "reasoning" not in kinds(other)
    made = next(item for item in other.body["input"] if item.get("type") == "function_call")
    assert made["call_id"] != "call_1"
    assert kinds(other).count("function_call") == kinds(other).count("function_call_output")


def test_an_endpoint_that_refuses_the_reasoning_gets_the_chat_without(project: Path) -> None:
    words = "The encrypted content for item rs_1 could not be verified."
    bodies: list[Any] = [
        WORKS, lambda call: call.refuse(400, words, code="invalid_encrypted_content"),
        says("It is 42."), says("Yes."),
    ]  # fmt: skip
    rounds, calls, _ = play(project, *bodies, rounds=2, **RESPONSES)
    assert [round_.state for round_ in rounds] == ["finished"] * 2
    assert ["reasoning" in kinds(call) for call in calls] == [False, True, False, False]
    assert "function_call_output" in kinds(calls[-1])


def test_43_reasoning_is_a_status_and_a_record_of_the_call_alone(project: Path) -> None:
    thoughts = "**Looking at the table**\n\nThe secret draft is 41. " + "So I add one. " * 200
    pieces = [delta(reasoning_content=thoughts[at : at + 7]) for at in range(0, len(thoughts), 7)]
    body, listener = [*pieces, delta(content="It is 42."), *ending("stop")], Listener()
    with serving(answering(body)) as endpoint:
        config = keys_of(endpoint.url, **{"llm.log_prompts": True})
        with TaskWeaverApp(project, config=config) as app, app.get_session() as session:
            round_ = session.send_message("go", listener)
            (record,) = session.prompts.records()
            logged = (Path(session.workspace) / PROMPTS_FILE).read_text()
    statuses = listener.messages(PostEventType.post_status_update)
    assert any("So I add one" in status for status in statuses)
    assert max(map(len, statuses)) < 100
    assert len(statuses) < len(pieces) / 3
    assert statuses[-1] == "writing"
    assert round_.answer.text == "It is 42."
    assert "secret draft" not in json.dumps(round_.to_dict())
    others = [e.msg for e in listener.events if e.t is not PostEventType.post_status_update]
    assert "secret draft" not in "".join(others)
    assert (record.reasoning, record.reply) == (thoughts, "It is 42.")
    assert "secret draft" in logged


def test_35_refused_schemas_lead_to_json_then_words_then_fences(project: Path) -> None:
    def script(call: Call) -> None:
        if call.body.get("tools"):
            call.refuse(400, "m does not support tools")
        elif call.body.get("response_format"):
            call.refuse(400, "response_format is not supported by this model")
        else:
            call.stream(good("```python\n6 * 7\n```" if call.number < 4 else "It is 42."))

    (round_,), calls, _ = play(project, *[script] * 9)
    forms = [(call.body.get("response_format") or {}).get("type") for call in calls]
    assert forms[:4] == [None, "json_schema", "json_object", None]
    assert round_.answer.text == "It is 42."


def test_83_ollamas_calls_run_and_thinking_goes_back(project: Path) -> None:
    made = [
        {"function": {"name": name, "arguments": arguments}}
        for name, arguments in (cell("a = 6"), cell("a * 7"))
    ]
    calls = [line(thinking="I compute "), line(thinking="it."), line(calls=made), last()]
    left = iter([calls, said("It is 42.")])

    def answer(call: Call) -> None:
        call.stream(next(left), content_type="application/x-ndjson")

    with ollama(answer) as (endpoint, server):
        keys = keys_of(endpoint.url, **{"llm.api_type": "ollama", "llm.model": MODEL})
        with TaskWeaverApp(project, config=keys) as app:
            round_ = app.get_session().send_message("go")
    assert round_.answer.text == "It is 42."
    first, second = (call.body for call in server.chats)
    assert "tools" in first
    assert first["options"]["num_ctx"] == second["options"]["num_ctx"] == 16_384
    own, *outcomes = second["messages"][-3:]
    assert own["tool_calls"][0]["function"]["arguments"]["code"] == "a = 6"
    assert own["thinking"] == "I compute it."
    assert [outcome["tool_name"] for outcome in outcomes] == ["run_python"] * 2
    assert "42" in outcomes[1]["content"]
