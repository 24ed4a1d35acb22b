"""Conversations longer than the window of the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_endpoint import Call, FakeEndpoint, good, serving
from sizes import some
from support import make_project
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.errors import ModelError
from taskweaver.llm.fitting import fitted, window_of
from taskweaver.llm.types import ChatMessage

pytestmark = pytest.mark.usefixtures("no_states")

WINDOW = 8_000
REFUSALS = {
    "named": "This model's maximum context length is {window} tokens. However, you requested"
    " {sent} tokens.",
    "both": "prompt is too long: {sent} tokens > {window} maximum: context window",
    "unnamed": "context_length_exceeded",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def tokens_in(call: Call) -> int:
    """Count tokens as this endpoint does: not as we estimate them."""
    return len(json.dumps(call.body["messages"])) // 3


def limited(words: str, refused: list[int]) -> Callable[[Call], None]:
    """Answer as a model with a window: each round prints a lot, then is answered."""

    def answer(call: Call) -> None:
        sent = tokens_in(call)
        if sent > WINDOW:
            refused.append(sent)
            call.refuse(400, words.format(window=WINDOW, sent=sent))
        elif call.body["messages"][-1]["role"] == "tool":
            call.stream(good("It is printed."))
        else:
            cell = ("run_python", {"intent": "print", "code": "print('word ' * 4_000)"})
            call.stream(called(cell))

    return answer


def keys(endpoint: FakeEndpoint) -> dict[str, object]:
    more = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m"}
    return {**more, "llm.api_key": "k", "llm.max_retries": 0, "planner.prompt_compression": False}


@pytest.mark.parametrize("name", some(["unnamed", "named", "both"], 1))
def test_a_session_goes_on_after_its_window_is_full(project: Path, name: str) -> None:
    refused: list[int] = []
    with (
        serving(limited(REFUSALS[name], refused)) as endpoint,
        TaskWeaverApp(project, config=keys(endpoint)) as app,
        app.get_session() as session,
    ):
        states = [session.send_message(f"print it, number {n}").state for n in range(12)]
    assert states == ["finished"] * 12
    assert 0 < len(refused) < 6  # what was learnt is kept


def test_a_configured_window_is_never_exceeded(project: Path) -> None:
    refused: list[int] = []
    with (
        serving(limited(REFUSALS["named"], refused)) as endpoint,
        TaskWeaverApp(project, config=keys(endpoint) | {"llm.context_window": 5_000}) as app,
        app.get_session() as session,
    ):
        rounds = [session.send_message("print it") for _ in range(6)]
    assert [round_.state for round_ in rounds] == ["finished"] * 6
    assert not refused


def test_a_question_larger_than_the_window_is_refused_with_the_numbers_and_the_next_one_works(
    project: Path,
) -> None:
    with (
        serving(limited(REFUSALS["named"], [])) as endpoint,
        TaskWeaverApp(project, config=keys(endpoint) | {"llm.context_window": 2_000}) as app,
        app.get_session() as session,
    ):
        errors: list[str] = []

        class Keeper:
            def handle(self, event: object) -> None:
                if event.t.value == "round_error":  # type: ignore[attr-defined]
                    errors.append(event.msg)  # type: ignore[attr-defined]

        failed = session.send_message("long " * 9_000, Keeper())
        good_one = session.send_message("short")
    assert (failed.state, good_one.state) == ("failed", "finished")
    assert "1,700 fit" in errors[0]


def chat(*contents: str) -> list[ChatMessage]:
    roles = ["system", *["user", "assistant"] * len(contents)]
    return [{"role": role, "content": text} for role, text in zip(roles, contents, strict=False)]  # type: ignore[misc]


def count(messages: object) -> int:
    return len(json.dumps(messages)) // 4


def test_long_outcomes_are_cut_before_messages_are_left_out() -> None:
    messages = chat("rules", "first", "x" * 40_000, "second", "answer", "third")
    kept = fitted(messages, 3_000, count)
    assert [m["role"] for m in kept] == [m["role"] for m in messages]
    assert "characters left out" in str(kept[2]["content"])
    assert kept[-1] == messages[-1]
    assert count(kept) <= 3_000


def test_of_many_messages_the_oldest_turns_go_and_rules_and_request_stay() -> None:
    messages = chat(
        "rules", *[f"message {n}" for n in range(some((400, 2_000), 1)[-1])], "last question"
    )
    if messages[-1]["role"] != "user":
        messages.append({"role": "user", "content": "last question"})
    kept = fitted(messages, 500, count)
    assert kept[0] == messages[0]
    assert str(kept[-1]["content"]).endswith("last question")
    assert "left out here" in str(kept[1]["content"])


@pytest.mark.parametrize(
    ("text", "tokens", "window"),
    [
        ("maximum context length is 8192 tokens. However, you requested 9011", 9_011, 8192),
        ("prompt is too long: 210,000 tokens > 200,000 maximum", 105_000, 100_000),
        ("n_prompt_tokens 5000 n_ctx 4096", 5_000, 4096),
        ("a context of 8192 tokens", 20_000, 8192),
        ("a context of 8192 tokens", 8_000, 7_600),
        ("HTTP 400: it is too long", 10_000, 6_000),
        ("only 100 words", 10_000, 6_000),
    ],
)
def test_the_window_is_read_from_a_refusal(text: str, tokens: int, window: int) -> None:
    assert window_of(ModelError("context_overflow", text), tokens) == window
