"""Replies without any words: one request to answer now, then the last outcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_endpoint import Call, good, serving
from sizes import some
from support import make_project
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.round import Round

pytestmark = pytest.mark.usefixtures("no_states")

CELLS = {
    "tools": called(("run_python", {"intent": "multiply", "code": "6 * 7"})),
    "json": good(
        json.dumps({"response": {"send_to": "CodeInterpreter", "message": "go", "code": "6 * 7"}})
    ),
    "fences": good("```python\n6 * 7\n```"),
}
FORMS = tuple(CELLS)
EMPTY = good("")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def play(project: Path, form: str, *bodies: list[bytes]) -> tuple[Round, list[Call]]:
    """Play a round with an endpoint that answers with these bodies, in order."""
    with serving(lambda call: call.stream(bodies[call.number])) as endpoint:
        keys = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m"}
        more = {"llm.api_key": "k", "llm.max_retries": 0, "llm.form": form}
        with TaskWeaverApp(project, config={**keys, **more}) as app:
            return app.get_session().send_message("go"), endpoint.calls


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_24_after_two_empty_replies_the_outcome_is_the_answer(project: Path, form: str) -> None:
    round_, calls = play(project, form, CELLS[form], EMPTY, EMPTY)

    assert round_.state == "finished"
    assert "42" in round_.post_list[-1].message
    assert "Answer now" in str(calls[2].body["messages"][-1]["content"])
    assert calls[2].body.get("tool_choice") == ("none" if form == "tools" else None)


@pytest.mark.parametrize("form", some(("json", "fences", "tools"), 1))
def test_24_an_answer_after_the_nudge_counts(project: Path, form: str) -> None:
    answer = "It is 42."
    if form == "json":
        answer = json.dumps({"response": {"send_to": "User", "message": answer}})
    round_, _ = play(project, form, CELLS[form], EMPTY, good(answer))

    assert round_.post_list[-1].message == "It is 42."


@pytest.mark.parametrize("form", some(("fences", "tools", "json"), 1))
def test_empty_replies_without_an_outcome_end_the_round_alone(project: Path, form: str) -> None:
    round_, calls = play(project, form, *[EMPTY] * 6)

    assert round_.state == "failed"
    assert len(calls) == 4
