"""Rounds over a scripted Ollama, in its own protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call
from ollama_server import MODEL, Ollama, last, line, ollama, said
from support import make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.facts import learnt
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round

pytestmark = pytest.mark.usefixtures("no_states")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def cell(code: str, intent: str = "look") -> dict[str, Any]:
    function = {"name": "run_python", "arguments": {"intent": intent, "code": code}}
    return {"function": function}


def thinking_first(*calls: dict[str, Any]) -> list[bytes]:
    return [line(thinking="I compute "), line(thinking="it."), line(calls=list(calls)), last()]


def play(
    project: Path, *bodies: list[bytes], rounds: int = 1, facts: dict[str, Any] | None = None
) -> tuple[list[Round], Ollama]:
    """Play rounds with a server that answers with these bodies, in order."""
    left = iter(bodies)

    def answer(call: Call) -> None:
        call.stream(next(left), content_type="application/x-ndjson")

    with ollama(answer, **(facts or {})) as (endpoint, server):
        keys = {"llm.api_type": "ollama", "llm.api_base": endpoint.url, "llm.model": MODEL}
        with TaskWeaverApp(project, config=keys | {"llm.max_retries": 0}) as app:
            for _ in range(rounds):
                with app.get_session() as session:
                    played = [session.send_message("go")]
    return played, server


def outcomes(round_: Round) -> list[str]:
    kind = AttachmentType.execution_status
    return [item.content for post in round_.post_list for item in post.get_attachment(kind)]


def test_calls_run_and_their_results_and_thinking_go_back(project: Path) -> None:
    cells = thinking_first(cell("a = 6"), cell("a * 7"))
    (round_,), server = play(project, cells, said("It is 42."))
    assert round_.state == "finished"
    assert round_.post_list[-1].message == "It is 42."
    assert outcomes(round_) == ["SUCCESS"] * 2
    first, second = (call.body for call in server.chats)
    assert first["options"]["num_ctx"] == second["options"]["num_ctx"] == 16_384
    own, *results = second["messages"][-3:]
    assert own["tool_calls"][0]["function"]["arguments"]["code"] == "a = 6"
    assert [result["tool_name"] for result in results] == ["run_python"] * 2
    assert "42" in results[1]["content"]
    assert own["thinking"] == "I compute it."


def test_row_83_a_model_without_tools_writes_fences_from_the_first_prompt(project: Path) -> None:
    facts = {"capabilities": ["completion"]}
    fence = said("I look.\n```python\n6 * 7\n```")
    (round_,), server = play(project, fence, said("It is 42."), facts=facts)
    assert round_.post_list[-1].message == "It is 42."
    assert outcomes(round_) == ["SUCCESS"]
    assert "tools" not in server.chats[0].body
    assert "```python" in server.chats[0].body["messages"][0]["content"]


def test_a_second_session_begins_in_the_form_that_the_first_found(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learnt, "state_folder", lambda: tmp_path / "state")
    refusals = 0

    def answer(call: Call) -> None:
        nonlocal refusals
        if "tools" in call.body:
            refusals += 1
            call.answer(
                400, {"error": f"registry.ollama.ai/library/{MODEL} does not support tools"}
            )
            return
        message = {"send_to": "User", "message": "yes"}
        call.stream(said(json.dumps({"response": message})))

    with ollama(answer, capabilities=None) as (endpoint, server):
        keys = {"llm.api_type": "ollama", "llm.api_base": endpoint.url, "llm.model": MODEL}
        for _ in range(2):
            with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
                assert session.send_message("go").post_list[-1].message == "yes"
        assert len(server.chats) == 3
    assert refusals == 1
