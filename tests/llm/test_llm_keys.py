"""Keys under ``llm.``, set as a user sets them: the requests and the waits they lead to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import HELLO, api_at
from fake_endpoint import DONE, USAGE_EVENT, Call, event, good, serving
from support import Listener, Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.errors import ModelError
from taskweaver.llm.prompts import PROMPTS_FILE
from taskweaver.llm.transport.endpoint import ModelConnection
from taskweaver.module.event_emitter import RoundEventType


def asked(play: Callable[[Call], None], *, how: Any = (), **config: Any) -> list[Call]:
    """Ask an endpoint as configured; return the requests it had."""
    with serving(play) as endpoint, api_at(endpoint.url, **config) as api:
        api.chat_completion(HELLO, **dict(how))
        return endpoint.calls


def answer(call: Call) -> None:
    call.stream(good("yes"))


def test_keys_of_a_request_are_sent_unless_the_caller_says_otherwise() -> None:
    sent = {"model": "m2", "temperature": 0.25, "top_p": 0.5, "max_tokens": 77, "seed": 5}
    more = {"stop_token": ["<end>"], "reasoning_effort": "low", "api_key": "k2"}
    (call,) = asked(answer, **sent, **more)
    expected = sent | {"stop": ["<end>"], "reasoning_effort": "low"}
    assert {name: call.body[name] for name in expected} == expected
    assert call.headers["authorization"] == "Bearer k2"
    (call,) = asked(answer, how={"reasoning_effort": "high"}, reasoning_effort="low")
    assert call.body["reasoning_effort"] == "high"


def test_an_azure_endpoint_is_asked_in_its_version() -> None:
    (call,) = asked(answer, api_type="azure", api_version="2099-01-01")
    assert call.path.endswith("api-version=2099-01-01")
    assert call.headers["api-key"] == "k1"


@pytest.mark.parametrize(
    ("form", "sent"), [("json_object", {"type": "json_object"}), ("text", None)]
)
def test_structured_replies_are_asked_for_as_configured(form: str, sent: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    (call,) = asked(answer, how={"json_schema": schema}, response_format=form)
    assert call.body.get("response_format") == sent


def pause(call: Call) -> None:
    call.start()
    call.send(event("ye"))
    call.stall()


@pytest.mark.parametrize(
    ("key", "play", "words"),
    [
        ("first_token_timeout_s", Call.stall, "no reply began for 0.2 s"),
        ("gap_timeout_s", pause, "the reply paused for 0.2 s"),
        ("call_timeout_s", Call.stall, "longer than 0.2 s"),
    ],
)
def test_a_long_wait_is_given_up(key: str, play: Callable[[Call], None], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        asked(play, **{key: 0.2})


def test_waits_between_tries_are_bounded_together() -> None:
    requests: list[Call] = []

    def play(call: Call) -> None:
        requests.append(call)
        call.answer(429, {"error": {"message": "slow down"}}, Retry_After="30")

    with pytest.raises(ModelError, match="slow down"):
        asked(play, max_retries=5, max_retry_time_s=1.0)
    assert len(requests) == 1


@pytest.mark.parametrize("is_wanted", [True, False])
def test_prompts_and_replies_are_written_as_they_were(tmp_path: Path, is_wanted: bool) -> None:
    secret = "api_key=abcdefgh1234"

    def play(call: Call) -> None:
        call.stream([event(planner_reply("User", secret)), event(finish="stop"), USAGE_EVENT, DONE])

    with serving(play) as endpoint:
        keys = {"llm.model": "m1", "llm.api_base": endpoint.url, "llm.log_prompts": is_wanted}
        with TaskWeaverApp(make_project(tmp_path / "p", keys)) as app:
            session = app.get_session()
            round_ = session.send_message(f"say {secret}")
            (record,) = session.prompts.records(round_.id)
            file = session.workspace / PROMPTS_FILE
    assert record.role == "Planner"
    assert secret in record.reply
    assert file.exists() is is_wanted
    if is_wanted:
        assert file.stat().st_mode & 0o777 == 0o600
        (line,) = map(json.loads, file.read_text().splitlines())
        assert line["sent"] == endpoint.calls[0].body
        assert line["received"] == record.reply
        assert (line["round"], line["role"], line["model"]) == (round_.id, "Planner", "m1")
        assert (line["finish"], line["error"], line["prompt_tokens"]) == ("stop", "", 11)


def test_a_file_that_cannot_be_written_is_noted_once_and_ends_no_round(tmp_path: Path) -> None:
    script = Script([planner_reply("User", "x")] * 2)
    project = make_project(tmp_path / "p", {"llm.log_prompts": True})
    with TaskWeaverApp(project, model=script) as app:
        session = app.get_session()
        (session.workspace / PROMPTS_FILE).mkdir()
        listener = Listener()
        rounds = [session.send_message("go", listener) for _ in range(2)]
    assert [round_.state for round_ in rounds] == ["finished"] * 2
    (warning,) = listener.messages(RoundEventType.round_warning)
    assert f"{PROMPTS_FILE} cannot be written" in warning


def test_the_wait_for_a_connection_is_the_configured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    opened = ModelConnection.open

    def note(self: ModelConnection, body: Any, *, connect_s: float, read_s: float) -> Any:
        waits.append(connect_s)
        return opened(self, body, connect_s=connect_s, read_s=read_s)

    monkeypatch.setattr(ModelConnection, "open", note)
    asked(answer, connect_timeout_s=1.25)
    assert waits == [1.25]
