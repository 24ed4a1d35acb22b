"""Rounds over an endpoint that speaks Anthropic messages; numbers are rows of the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_replies import CacheOfServer, call, failed, reply, text, thinking, unmarked
from fake_endpoint import Call, serving
from kept_sessions import KeptSessions
from sizes import some
from support import Listener, make_project
from traces import Recorded

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.projects.doctor import examine
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.module.events import RoundEventType

pytestmark = pytest.mark.usefixtures("no_states")

KIND = AttachmentType
KEY = "sk-ant-a-key-0123456789"
Body = list[bytes] | Callable[[Call], None]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def cell(code: str, intent: str = "look", id_: str = "toolu_1") -> dict[str, Any]:
    return call(id_, intent=intent, code=code)


def play(
    project: Path, *bodies: Body, rounds: int = 1, **config: object
) -> tuple[list[Round], list[Call], Listener]:
    """Play rounds with an endpoint that answers with these bodies, in order."""

    def answer(request: Call) -> None:
        body = bodies[request.number]
        body(request) if callable(body) else request.stream(body)

    listener = Listener()
    with serving(answer) as endpoint:
        keys = {
            "llm.api_type": "anthropic", "llm.api_base": endpoint.url, "llm.model": "claude-x",
            "llm.api_key": KEY, "llm.max_retries": 0, **config,
        }  # fmt: skip
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            played = [session.send_message(f"go {n}", listener) for n in range(rounds)]
            for record in session.prompts.records():
                json.dumps(record.to_dict())
    return played, endpoint.calls, listener


def go_on(
    kept: KeptSessions, *bodies: list[bytes], rounds: int = 1
) -> tuple[list[Round], list[Call]]:
    """Play rounds of a session that goes on, with an endpoint that answers with these bodies."""
    keys = {"llm.api_type": "anthropic", "llm.model": "claude-x", "llm.api_key": KEY}
    session, calls = kept.answered(lambda request: request.stream(bodies[request.number]), **keys)
    return [session.send_message(f"go {n}") for n in range(rounds)], calls


def test_67_a_question_takes_one_cell_and_one_answer(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Recorded(monkeypatch)
    code = "\n".join([*(f"value_{n} = {n}" for n in range(200)), "6 * 7"])
    (round_,), calls, listener = play(
        project,
        reply(text("I multiply."), cell(code, "multiply")),
        reply(text("It is 42.")),
        **{"tracing.enabled": True},
    )
    assert round_.state == "finished"
    assert round_.post_list[-1].message == "It is 42."
    order = round_.post_list[1]
    assert [item.content for item in order.get_attachment(KIND.thought)] == ["I multiply."]
    shown = [
        event.msg
        for event in listener.events
        if event.extra.get("type") is KIND.reply_content and not event.extra["is_end"]
    ]
    assert len(shown) > 1
    first, second = calls
    assert first.body["tools"][0]["name"] == "run_python"
    said, result = second.body["messages"][-2:]
    assert said["role"] == "assistant"
    assert said["content"][-1]["input"]["code"] == code
    assert result["content"][0]["tool_use_id"] == said["content"][-1]["id"]
    assert "42" in result["content"][0]["content"]
    spans = [span for span in recorded.spans if span.name == "chat claude-x"]
    attributes = dict(spans[0].attributes or {})
    assert attributes["gen_ai.provider.name"] == "anthropic"
    assert attributes["gen_ai.response.model"] == "claude-x-1"
    assert attributes["gen_ai.usage.input_tokens"] == 3210
    assert attributes["gen_ai.usage.cache_read.input_tokens"] == 3000
    assert attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)


def test_70_the_results_of_parallel_cells_are_one_message(kept_sessions: KeptSessions) -> None:
    cells = [cell("a = 1\na", "one"), cell("1 / 0", "two", "toolu_2")]
    (round_,), calls = go_on(kept_sessions, reply(*cells), reply(text("One works.")))
    assert round_.state == "finished"
    said, answered = calls[1].body["messages"][-2:]
    used = [block["id"] for block in said["content"]]
    assert [block["tool_use_id"] for block in answered["content"]] == used
    assert [block.get("is_error") for block in answered["content"]] == [None, True]
    assert "ZeroDivisionError" in answered["content"][1]["content"]


def test_68_reasoning_goes_back_beside_the_result_of_its_call(kept_sessions: KeptSessions) -> None:
    said = [thinking("Hm."), text("I look."), cell("1 + 1")]
    rounds, calls = go_on(
        kept_sessions, reply(*said), reply(thinking("So."), text("It is 2.")), reply(text("Yes.")),
        rounds=2,
    )  # fmt: skip
    assert rounds[0].post_list[-1].message == "It is 2."
    for request in calls[1:]:
        assert said in [unmarked(message["content"]) for message in request.body["messages"]]
    assert [thinking("So."), text("It is 2.")] in [
        unmarked(message["content"]) for message in calls[2].body["messages"]
    ]


def test_a_figure_stands_in_the_result_of_its_cell(kept_sessions: KeptSessions) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    (round_,), calls = go_on(kept_sessions, reply(cell(code)), reply(text("It rises.")))
    assert round_.state == "finished"
    (result,) = calls[1].body["messages"][-1]["content"]
    (image,) = [part for part in result["content"] if part["type"] == "image"]
    assert image["source"]["type"] == "base64"
    assert image["source"]["data"].startswith("iVBORw0KGgo")


def test_72_an_overloaded_endpoint_is_asked_again(project: Path) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}
    (round_,), calls, _ = play(
        project,
        lambda request: request.answer(529, overloaded, retry_after="0"),
        [failed("overloaded_error", "Overloaded")],
        reply(text("It is 42.")),
        **{"llm.max_retries": 4},
    )
    assert round_.post_list[-1].message == "It is 42."
    assert len(calls) == 3


def test_73_a_refusal_is_shown_and_the_chat_goes_on(project: Path) -> None:
    rounds, _, listener = play(project, reply(reason="refusal"), reply(text("Hello.")), rounds=2)
    assert rounds[0].state == "failed"
    assert "refused to answer" in listener.messages(RoundEventType.round_error)[0]
    assert rounds[1].post_list[-1].message == "Hello."


def test_74_a_chat_of_some_rounds_is_read_from_the_cache(project: Path) -> None:
    number_of_rounds = some((6, 10), 1)[-1]
    bodies = [
        body
        for n in range(number_of_rounds)
        for body in (reply(cell(f"total = {n}\ntotal", f"add {n}")), reply(text(f"It is {n}.")))
    ]
    more = {"planner.prompt_compression": False, "code_generator.prompt_compression": False}
    rounds, calls, _ = play(project, *bodies, rounds=number_of_rounds, **more)
    assert [round_.state for round_ in rounds] == ["finished"] * number_of_rounds
    cache, before = CacheOfServer(), 0
    for number, request in enumerate(calls):
        read, total, marks = cache.read(request.body)
        assert marks <= 4
        if number % 2:
            assert read == before  # all of the first request of the round
        elif number:
            assert total - read <= 8  # all but the newest question and the round before it
        before = total


def test_json_replies_by_schema_work(project: Path) -> None:
    answer = {"response": {"thought": "", "send_to": "User", "message": "Hello."}}
    (round_,), calls, _ = play(project, reply(text(json.dumps(answer))), **{"llm.form": "json"})
    assert round_.post_list[-1].message == "Hello."
    (request,) = calls
    assert request.body["output_config"]["format"]["type"] == "json_schema"
    assert "tools" not in request.body


@pytest.mark.long
def test_recorded_rounds_play_without_the_endpoint(project: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "llm.api_type": "recorded", "llm.recorded.path": str(tmp_path / "r.yaml"),
        "llm.recorded.api_type": "anthropic", "llm.form": "tools", "llm.model": "claude-x",
        "llm.api_key": KEY,
    }  # fmt: skip
    bodies = [reply(thinking("Hm."), text("I multiply."), cell("6 * 7")), reply(text("It is 42."))]
    with serving(lambda request: request.stream(bodies[request.number])) as endpoint:
        for mode in ("record", "play"):
            more = {"llm.recorded.mode": mode, "llm.api_base": endpoint.url}
            with TaskWeaverApp(project, config=keys | more) as app:
                round_ = app.get_session().send_message("go")
            assert round_.post_list[-1].message == "It is 42."
    assert len(endpoint.calls) == 2


def test_the_doctor_asks_the_model(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda request: request.stream(reply(text("ok")))) as endpoint:
        keys = {"API_TYPE": "anthropic", "API_BASE": endpoint.url, "API_KEY": KEY, "MODEL": "c1"}
        for name, value in keys.items():
            monkeypatch.setenv(f"LLM_{name}", value)
        examine(project, as_json=True)
    (found,) = [item for item in json.loads(capsys.readouterr().out) if item["name"] == "model"]
    assert found["status"] == "ok", found
    assert "c1" in found["detail"]
