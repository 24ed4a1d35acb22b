"""Rounds with models that reason: through Responses, and in chat completions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from kept_sessions import KeptSessions
from response_events import (
    REASONING,
    call_item,
    completed,
    created,
    function_call,
    message,
    reasoning,
)
from scripted_server import delta, ending
from sizes import some
from support import Listener, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.chat import Chat
from taskweaver.console.commands.table import CommandLine
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.llm.prompts import PROMPTS_FILE
from taskweaver.memory.round import Round
from taskweaver.module.events import PostEventType

pytestmark = pytest.mark.usefixtures("no_states")

CELL = call_item(1, json.dumps({"intent": "multiply", "code": "6 * 7"}))
WORKS = [created(), *reasoning(), *function_call(1, CELL), completed()]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def says(text: str) -> list[bytes]:
    return [created(), *message(0, text), completed()]


def keys(url: str, **more: object) -> dict[str, Any]:
    """Return the configuration for an endpoint."""
    usual = {"llm.api_type": "openai", "llm.api_base": url, "llm.model": "m", "llm.api_key": "k"}
    return {**usual, "llm.max_retries": 0, "llm.dialect": "responses", **more}


def answering(*bodies: list[bytes]) -> Callable[[Call], None]:
    return lambda call: call.stream(bodies[call.number])


def play(
    project: Path, *bodies: list[bytes], rounds: int = 1, **more: object
) -> tuple[list[Round], list[Call], Listener]:
    """Play rounds with an endpoint that answers with these bodies, in order."""
    listener = Listener()
    with serving(answering(*bodies)) as endpoint:
        config = keys(endpoint.url, **more)
        with TaskWeaverApp(project, config=config) as app, app.get_session() as session:
            played = [session.send_message(f"go {n}", listener) for n in range(rounds)]
    return played, endpoint.calls, listener


def go_on(kept: KeptSessions, *bodies: list[bytes]) -> tuple[Round, list[Call], Listener]:
    """Play a round of a session that goes on, with an endpoint that answers with these bodies."""
    listener = Listener()
    session, calls = kept.answered(answering(*bodies), **{"llm.dialect": "responses"})
    return session.send_message("go", listener), calls, listener


def kinds(call: Call) -> list[str]:
    """Return the kinds of the items of a request, of messages their roles."""
    return [item.get("type") or item["role"] for item in call.body["input"]]


def test_78_a_cell_runs_and_the_reasoning_that_led_to_it_goes_back(
    kept_sessions: KeptSessions,
) -> None:
    round_, calls, _ = go_on(kept_sessions, WORKS, says("It is 42."))

    assert round_.state == "finished"
    assert round_.post_list[-1].message == "It is 42."
    first, second = calls
    assert first.path.endswith("/responses")
    assert first.body["tools"][0]["name"] == "run_python"
    assert second.body["input"][: len(first.body["input"])] == first.body["input"]  # for the cache
    new = second.body["input"][len(first.body["input"]) :]
    assert new[:2] == [REASONING, CELL]
    assert (new[2]["type"], new[2]["call_id"]) == ("function_call_output", "call_1")
    assert "42" in str(new[2]["output"])


def test_78_it_goes_back_after_the_session_was_opened_again(project: Path) -> None:
    bodies = [WORKS, says("It is 42."), says("Still."), says("Yes.")]
    with serving(answering(*bodies)) as endpoint:
        with TaskWeaverApp(project, config=keys(endpoint.url)) as app, app.get_session() as session:
            session.send_message("go", Listener())
        for model in ("m", "another"):
            config = keys(endpoint.url, **{"llm.model": model})
            opened = TaskWeaverApp(project, config=config)
            with opened as app, app.get_session(session.session_id) as resumed:
                assert resumed.send_message("and?", Listener()).state == "finished"

    same, other = endpoint.calls[2:]
    assert REASONING in same.body["input"]
    assert "reasoning" not in kinds(other)
    call = next(item for item in other.body["input"] if item.get("type") == "function_call")
    assert call["call_id"] != "call_1"
    assert kinds(other).count("function_call") == kinds(other).count("function_call_output")


def test_an_endpoint_that_refuses_the_reasoning_gets_the_chat_without(project: Path) -> None:
    words = "The encrypted content for item rs_1 could not be verified."

    def script(call: Call) -> None:
        if REASONING in call.body["input"]:
            call.refuse(400, words, code="invalid_encrypted_content")
        else:
            call.stream(WORKS if call.number == 0 else says("It is 42."))

    with (
        serving(script) as endpoint,
        TaskWeaverApp(project, config=keys(endpoint.url)) as app,
        app.get_session() as session,
    ):
        states = [session.send_message("go", Listener()).state for _ in range(2)]

    assert states == ["finished", "finished"]
    assert ["reasoning" in kinds(call) for call in endpoint.calls] == [False, True, False, False]
    assert "function_call_output" in kinds(endpoint.calls[-1])


def test_the_json_form_is_asked_for_in_the_text(project: Path) -> None:
    answer = json.dumps({"response": {"send_to": "User", "message": "42"}})
    (round_,), (call,), _ = play(project, says(answer), **{"llm.form": "json"})

    assert round_.post_list[-1].message == "42"
    assert call.body["text"]["format"]["type"] == "json_schema"
    assert "tools" not in call.body


# What a person sees of the reasoning

THOUGHTS = "**Looking at the table**\n\nThe secret draft is 41. " + "So I add one. " * 200
THINKS: dict[str, dict[str, Any]] = {
    "43_reasoning_content": {"reasoning_content": THOUGHTS},
    "44_reasoning": {"reasoning": THOUGHTS},
    "45_tags": {"content": f"<think>{THOUGHTS}</think>"},
}


def statuses(listener: Listener) -> list[str]:
    return listener.messages(PostEventType.post_status_update)


@pytest.mark.parametrize("row", some(list(THINKS), 1))
def test_43_to_45_reasoning_is_a_status_and_a_record_of_the_call_alone(
    project: Path, row: str
) -> None:
    ((name, text),) = THINKS[row].items()
    pieces = [delta(**{name: text[at : at + 7]}) for at in range(0, len(text), 7)]
    body = [*pieces, delta(content="It is 42."), *ending("stop")]
    listener = Listener()
    with serving(answering(body)) as endpoint:
        config = keys(endpoint.url, **{"llm.dialect": "chat", "llm.log_prompts": True})
        with TaskWeaverApp(project, config=config) as app, app.get_session() as session:
            round_ = session.send_message("go", listener)
            (record,) = session.prompts.records()
            logged = (Path(session.workspace) / PROMPTS_FILE).read_text()
            stored = json.dumps(round_.to_dict())

    shown = statuses(listener)
    assert any("So I add one" in status for status in shown)
    assert max(map(len, shown)) < 100
    assert len(shown) < len(pieces) / 3
    assert shown[-1] == "writing"
    assert round_.post_list[-1].message == "It is 42."
    assert "secret draft" not in stored
    others = [
        event.msg for event in listener.events if event.t is not PostEventType.post_status_update
    ]
    assert "secret draft" not in "".join(others)
    assert (record.reasoning, record.reply) == (THOUGHTS, "It is 42.")
    assert "secret draft" in logged


def test_summaries_of_responses_are_shown(kept_sessions: KeptSessions) -> None:
    _, _, listener = go_on(kept_sessions, WORKS, says("It is 42."))
    assert "thinking: I look at the table and multiply both numbers." in statuses(listener)


def test_the_console_shows_reasoning_of_a_call_and_counts_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        serving(answering(WORKS, says("It is 42."))) as endpoint,
        TaskWeaverApp(project, config=keys(endpoint.url)) as app,
    ):
        line = CommandLine(Chat(app, PlainSurface()))
        line.handle("go")
        round_shown = capsys.readouterr().out
        line.handle("/prompts 1")
        prompt = capsys.readouterr().out
        line.handle("/info")
        facts = capsys.readouterr().out

    assert "It is 42." in round_shown
    assert "I look at the table" not in round_shown
    for words in ("--- reasoning ---", "I look at the table", "--- call of run_python ---"):
        assert words in prompt
    assert "240 in 2 calls, 128 from a cache, 40 of reasoning" in facts


def test_47_reasoning_alone_is_no_answer_and_is_asked_for_once_more(project: Path) -> None:
    empty = [delta(reasoning_content="hm"), *ending("stop")]
    (round_,), calls, _ = play(project, empty, good("It is 42."), **{"llm.dialect": "chat"})

    assert (round_.post_list[-1].message, len(calls)) == ("It is 42.", 2)


@pytest.mark.parametrize(
    ("asked", "sent"),
    [({}, [["tools"], ["response_format"]]), ({"llm.response_format": "json_schema"}, None)],
)
def test_36_no_body_has_both_forms(
    project: Path, asked: dict[str, str], sent: list[list[str]] | None
) -> None:
    answer = json.dumps({"response": {"send_to": "User", "message": "42"}})

    def script(call: Call) -> None:
        if call.body.get("tools"):
            call.refuse(400, "m does not support tools")
        else:
            call.stream(good(answer))

    with serving(script) as endpoint:
        config = keys(endpoint.url, **{"llm.dialect": "chat", **asked})
        with TaskWeaverApp(project, config=config) as app, app.get_session() as session:
            session.send_message("go", Listener())

    forms = [sorted({"tools", "response_format"} & set(call.body)) for call in endpoint.calls]
    assert forms == (sent or [["response_format"]])  # a configured format is that of JSON


def test_35_refused_schemas_lead_to_json_then_words_then_fences(project: Path) -> None:
    def script(call: Call) -> None:
        if call.body.get("tools"):
            call.refuse(400, "m does not support tools")
        elif call.body.get("response_format"):
            call.refuse(400, "response_format is not supported by this model")
        else:
            call.stream(good("```python\n6 * 7\n```" if call.number < 4 else "It is 42."))

    with serving(script) as endpoint:
        config = keys(endpoint.url, **{"llm.dialect": "chat"})
        with TaskWeaverApp(project, config=config) as app, app.get_session() as session:
            round_ = session.send_message("go", Listener())

    forms = [(call.body.get("response_format") or {}).get("type") for call in endpoint.calls]
    assert forms[:4] == [None, "json_schema", "json_object", None]
    assert round_.post_list[-1].message == "It is 42."


PLOT = """
import matplotlib.pyplot as plt
plt.bar(["North", "South"], [3, 5])
plt.savefig("chart.png")
"""


def test_79_a_figure_stands_inside_the_result_of_its_cell(project: Path) -> None:
    cell = call_item(1, json.dumps({"intent": "draw", "code": PLOT}))
    works = [created(), *reasoning(), *function_call(1, cell), completed()]
    _, calls, _ = play(project, works, says("South leads."), **{"llm.model": "gpt-5"})

    *_, result = calls[1].body["input"]
    assert (result["type"], result["call_id"]) == ("function_call_output", "call_1")
    assert [part["type"] for part in result["output"]] == ["input_text", "input_image"]
    assert set(result["output"][1]) == {"type", "image_url", "detail"}
    assert result["output"][1]["image_url"].startswith("data:image/png;base64,")
