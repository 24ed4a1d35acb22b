"""LearntFacts with models that a later session begins with, and the files it is kept in."""

from __future__ import annotations

import json
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from asking import HELLO, models_at
from fake_endpoint import Call, good, serving
from response_events import completed, created, message

from taskweaver.llm import learnt
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.learnt import LearntModel, forget_models, stored_facts
from taskweaver.llm.services import ModelServices
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.types import ChatMessage, ModelRequest, ModelTool, image_part

SECRET: list[ChatMessage] = [{"role": "user", "content": "a question with secrets"}]
LONG: list[ChatMessage] = [{"role": "user", "content": "word " * 3_000}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = ModelTool("run_python", "Run a cell.", {"type": "object"})
KEY = "sk-own-key-0123456789abcdef"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setattr(learnt, "state_folder", lambda: folder)
    return folder / "models"


def services(base: str, **config: Any) -> ModelServices:
    return models_at(base, **{"model": "m", "api_key": KEY} | config)


def particular(call: Call) -> None:
    """Answer as an endpoint that takes little."""
    body = call.body
    if "tools" in body:
        call.refuse(400, "this model does not support tools")
    elif "seed" in body:
        call.refuse(400, "Unsupported parameter: 'seed'", param="seed")
    elif "max_tokens" in body:
        words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        call.refuse(400, words, param="max_tokens")
    elif (body.get("response_format") or {}).get("type") == "json_schema":
        call.refuse(400, "response_format json_schema is not available")
    elif len(json.dumps(body["messages"])) > 9_000:
        call.refuse(400, "This model's maximum context length is 2048 tokens.")
    else:
        call.stream(good("{}"))


def ask_everything(base: str) -> str:
    """Ask as a session does; return the form it began with."""
    with services(base, seed=1, max_tokens=99) as models:
        api = LLMApi(models)
        began = api.form()
        if began == "tools":
            with pytest.raises(ModelError):
                list(api.stream_chunks(SECRET, tools=[TOOL]))
        api.chat_completion(SECRET, json_schema=SCHEMA)
        return began


def test_a_second_session_begins_in_the_form_found_and_repeats_no_refusal(state: Path) -> None:
    with serving(particular) as endpoint:
        assert ask_everything(endpoint.url) == "tools"
        first = len(endpoint.calls)
        assert ask_everything(endpoint.url) == "json"
        assert len(endpoint.calls) == first + 1
        body = endpoint.calls[-1].body
        address = endpoint.url
    assert body["response_format"] == {"type": "json_object"}
    assert body["max_completion_tokens"] == 99
    (kept,) = stored_facts()
    assert (kept.address, kept.model) == (address, "m")
    known = kept.facts
    assert (known.form, known.response_format) == ("json", "json_object")
    assert known.dropped == ("seed",)
    assert dict(known.renamed) == {"max_tokens": "max_completion_tokens"}
    (file,) = state.iterdir()
    text = file.read_text()
    assert KEY not in text
    assert "secrets" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_the_window_of_a_refusal_is_known_in_the_next_session() -> None:
    with serving(particular) as endpoint:
        with services(endpoint.url) as models, pytest.raises(ModelError):
            LLMApi(models).chat_completion(LONG)
        with services(endpoint.url) as models:
            for messages in (HELLO, LONG):
                assert models.model().window_for(ModelRequest(messages)) == 2_048
        with services(endpoint.url, context_window=5_000) as models:
            assert models.model().window_for(ModelRequest(LONG)) == 5_000


def note(base: str = "http://h:1/v1", model: str = "m", **changes: Any) -> None:
    LearntModel(Endpoint(base, model)).note(**(changes or {"form": "fences"}))


def form(base: str = "http://h:1/v1", model: str = "m") -> str:
    return LearntModel(Endpoint(base, model)).known.form


def test_an_address_is_kept_without_what_is_secret_in_it(state: Path) -> None:
    note("https://user:pass-word@h.example/v1?key=0123")
    (file,) = state.iterdir()
    assert "pass-word" not in file.read_text()
    assert "0123" not in file.read_text()
    assert stored_facts()[0].address == "https://h.example/v1"


def change(state: Path, **fields: Any) -> None:
    (file,) = state.iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"at": time.time() - 8 * 24 * 3600}, {"at": time.time() + 10_000}, {"at": "now"},
        {"version": "0.0.1"}, {"model": "another"}, {"address": "http://h:2/v1"},
        {"form": ["fences"]}, {"form": "a; b"},
    ],
)  # fmt: skip
def test_what_is_old_or_of_another_version_is_ignored(state: Path, fields: dict[str, Any]) -> None:
    note()
    assert form() == "fences"
    change(state, **fields)
    assert form() == ""


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 9_000, "\0", '{"at": 1e999}'])
def test_a_broken_file_is_ignored_and_written_anew(state: Path, text: str) -> None:
    note()
    (file,) = state.iterdir()
    file.write_text(text)
    assert form() == ""
    assert stored_facts() == []
    note(form="json")
    assert form() == "json"


def test_of_a_file_only_what_is_valid_is_used(state: Path) -> None:
    note(dropped=("seed",))
    change(state, dropped=["tools", "a b", 3, "seed"], renamed={"seed": 1}, window="x", form=1)
    known = LearntModel(Endpoint("http://h:1/v1", "m")).known
    assert known.dropped == ("tools", "seed")
    assert (known.form, known.window, dict(known.renamed)) == ("", 0, {})
    with serving(lambda call: call.stream(good("ok"))) as at, services(at.url) as models:
        note(at.url, dropped=("tools", "messages"))
        list(LLMApi(models).stream_chunks(HELLO, tools=[TOOL]))
        assert {"tools", "messages"} <= set(at.calls[0].body)


def test_what_another_session_learnt_meanwhile_is_not_lost() -> None:
    one, other = (LearntModel(Endpoint("http://h:1/v1", "m")) for _ in range(2))
    one.note(form="fences")
    other.note(window=4_096)
    known = LearntModel(Endpoint("http://h:1/v1", "m")).known
    assert (known.form, known.window) == ("fences", 4_096)


def test_many_sessions_at_once_leave_a_whole_file(state: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: note(form=("json", "fences")[number % 2]), range(80)))
    assert form() in ("json", "fences")
    assert len(list(state.iterdir())) == 1


def test_without_a_place_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").write_text("a file")
    note()
    assert form() == ""
    monkeypatch.setattr(learnt, "state_folder", lambda: None)
    note()
    assert stored_facts() == []
    assert forget_models() == 0


def test_it_can_be_forgotten(state: Path) -> None:
    for model in "mn":
        note(model=model)
    (state / "notes.txt").write_text("not a file of the models")
    assert forget_models() == 2
    assert stored_facts() == []
    assert (state / "notes.txt").exists()


def test_a_model_that_needs_responses_is_asked_there_at_once() -> None:
    paths: list[str] = []

    def play(call: Call) -> None:
        paths.append(call.path.rpartition("/")[2])
        if "input" in call.body:
            call.stream([created(), *message(0, "x"), completed()])
        else:
            words = "Function tools with reasoning_effort are not supported for m"
            call.refuse(400, f"{words} in /v1/chat/completions. Use /v1/responses instead.")

    with serving(play) as endpoint:
        for _ in range(2):
            with services(endpoint.url, form="tools") as models:
                list(LLMApi(models).stream_chunks(HELLO, tools=[TOOL]))
        assert paths == ["completions", "responses", "responses"]
        with services(endpoint.url, form="tools", dialect="chat") as models:
            assert models.model("").service.dialect.name == "chat"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("words", "is_kept"),
    [("image input is not supported by this model", True), ("image exceeds 5 MB", False)],
)
def test_a_model_that_takes_no_images_is_sent_none_later(words: str, *, is_kept: bool) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    part = image_part(url, name="a.png", instead="a chart")
    seen: ChatMessage = {"role": "user", "content": [{"type": "text", "text": "look"}, part]}

    def play(call: Call) -> None:
        if url in str(call.body):
            call.refuse(400, words)
        else:
            call.stream(good("x"))

    with serving(play) as endpoint:
        for _ in range(2):
            with services(endpoint.url, model="gpt-4o") as models:
                LLMApi(models).chat_completion([seen])
        with services(endpoint.url, model="gpt-4o", images="yes") as models:
            LLMApi(models).chat_completion([seen])
    sent = [url in str(call.body) for call in endpoint.calls]
    later = [False] if is_kept else [True, False]
    assert sent == [True, False, *later, True, False]
