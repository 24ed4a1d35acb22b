"""The setup of a model: what is found, the test question, files, keys, and faults of each."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from asking import HELLO
from fake_endpoint import Call, FakeEndpoint, event, good, serving
from full_disks import largest_file
from ollama_server import line
from scripted_server import calls, ending, piece
from support import trust_project

from taskweaver.config.errors import ConfigError
from taskweaver.config.files import KeptEndpoint, keep_endpoint, user_file, user_values
from taskweaver.llm.api import LLMApi
from taskweaver.llm.selection.auto import ollama_host
from taskweaver.llm.services import ModelServices
from taskweaver.llm.setup import FoundModel, ModelSetup
from taskweaver.trust.opening import read_project

KEY = "sk-entered-in-the-setup-0123456789"
CALL = {"id": "c1", "function": {"name": "multiply", "arguments": {"a": 6, "b": 7}}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folders of this test, and no server at the usual ports."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LLM_AUTO_DETECT", "true")
    for module in ("setup", "selection.auto"):
        monkeypatch.setattr(f"taskweaver.llm.{module}.LOCAL_PORTS", {})
    for name in ("OLLAMA_HOST", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@contextmanager
def opened(folder: Path, keys: Mapping[str, Any] | None = None) -> Iterator[ModelSetup]:
    """Open a project with some keys, or a folder that is none."""
    folder.mkdir(exist_ok=True)
    if keys is not None:
        (folder / "taskweaver_config.json").write_text(json.dumps(keys))
    read = read_project(folder, {}, None, lambda _: True)
    with ModelServices(read.src) as services:
        yield ModelSetup(read.src, services, lambda _: True, is_trusted=not read.withheld)


def own_file(name: str) -> Path:
    """Return the path of a file of the user."""
    file = user_file(name)
    assert file is not None
    return file


def asked(setup: ModelSetup) -> str:
    """Ask a question with the present model."""
    return str(LLMApi(setup._services).chat_completion(HELLO)["content"])


def play_ollama(call: Call) -> None:
    """Play an Ollama with two models, one of which calls tools."""
    names = {"qwen3:8b": 5_200_000_000, "gemma3:4b": 3_300_000_000, "bge-m3:latest": 1}
    model = call.body.get("model")
    if call.path == "/v1/models":
        call.answer(200, {"data": [{"id": name, "owned_by": "library"} for name in names]})
    elif call.path == "/api/tags":
        call.answer(200, {"models": [{"name": name, "size": size} for name, size in names.items()]})
    elif call.path == "/api/show":
        tools = ["completion"] + (["tools"] if model == "qwen3:8b" else [])
        call.answer(200, {"capabilities": tools})
    elif call.path == "/api/chat":
        is_second = any(one["role"] == "tool" for one in call.body["messages"])
        has_tools = call.body.get("tools") and not is_second
        text = "42" if "6 times 7" in str(call.body) else f"I am {model}."
        first = line(calls=[CALL]) if has_tools else line(text)
        counts = {"prompt_eval_count": 100, "eval_count": 6}
        call.stream([first, line(done=True, done_reason="stop", **counts)])
    else:
        call.answer(404, "404 page not found")


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    with serving(play_ollama, states_facts=True) as endpoint:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{endpoint.port}")
        yield endpoint


def test_found_models(home: Path, ollama: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    with opened(home / "p", {}) as setup:
        models, present = setup.found()
    assert [model.name for model in models] == [
        "qwen3:8b", "gemma3:4b", "llama-3.3-70b-versatile", "No model",
    ]  # fmt: skip
    assert models[0].line == "Ollama, 5.2 GB (local, free)"
    assert models[2].line == "Groq, key in GROQ_API_KEY (remote, paid)"
    assert models[2].id == "groq/llama-3.3-70b-versatile"
    assert models[0].id == f"ollama/qwen3:8b@{ollama.url}"
    assert present == models[0]
    assert KEY not in repr(models)


def test_the_chosen_model_answers_the_next_question(home: Path, ollama: FakeEndpoint) -> None:
    with opened(home / "p", {}) as setup:
        assert asked(setup) == "I am qwen3:8b."
        (small,) = [model for model in setup.found()[0] if model.name == "gemma3:4b"]
        assert setup.scopes == ["project", "user"]
        assert setup.choose(small, "project") == ""
        assert asked(setup) == "I am gemma3:4b."
        setup.undo()
        assert asked(setup) == "I am qwen3:8b."
        assert not setup.can_undo()
    assert json.loads((home / "p" / "taskweaver_config.json").read_text()) == {}


def test_a_choice_for_all_projects(home: Path, ollama: FakeEndpoint) -> None:
    with opened(home / "plain") as setup:
        assert setup.scopes == ["user"]
        setup.choose(setup.found()[0][1], "user")
    file = own_file("config.json")
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    with opened(home / "other", {}) as setup:
        assert setup.present().name == "gemma3:4b"
    with opened(home / "own", {"llm.api_type": "ollama", "llm.model": "qwen3:8b"}) as setup:
        assert setup.present().name == "qwen3:8b"
        remark = setup.choose(setup.found()[0][1], "user")
    assert remark.startswith("This project keeps qwen3:8b: its taskweaver_config.json sets it. ")
    assert "Choose for this project" in remark


@pytest.mark.parametrize("name", ["LLM_API_TYPE", "LLM_MODEL"])
def test_the_environment_goes_before_a_choice(
    home: Path, ollama: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "ollama" if name == "LLM_API_TYPE" else "qwen3:8b")
    with opened(home / "p", {}) as setup:
        assert setup.scopes == []
        with pytest.raises(ConfigError, match=f"{name} of the environment decides"):
            setup.choose(FoundModel("offline", "No model"), "user")


def test_a_choice_wins(home: Path, ollama: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with opened(home / "p", {}) as setup:
        assert setup.present().name == "gpt-4.1-mini"
        setup.choose(setup.found()[0][0], "user")
        assert setup.present().name == "qwen3:8b"


def test_an_address_of_the_environment_does_not_mix_with_the_users_file(
    home: Path, ollama: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home / "p", {}) as setup:
        setup.choose(setup.found()[0][0], "user")
    with serving(lambda call: call.stream(good("elsewhere"))) as endpoint:
        monkeypatch.setenv("LLM_API_BASE", endpoint.url)
        monkeypatch.setenv("LLM_MODEL", "m")
        with opened(home / "p") as setup:
            assert asked(setup) == "elsewhere"


def test_a_model_with_tools_works(home: Path, ollama: FakeEndpoint) -> None:
    with opened(home / "p", {}) as setup:
        works, plain = (setup.test(model) for model in setup.found()[0][:2])
    assert works.state == "works"
    assert works.detail.startswith("Right answer in ")
    assert works.detail.endswith("tool calls work, 212 tokens, no cost.")
    assert plain.state == "no-tools"
    assert plain.detail.startswith("Right answer, but no tool calls")


def at(endpoint: FakeEndpoint) -> FoundModel:
    return FoundModel("openai", "m", endpoint.url)


def test_a_wrong_answer_is_said(home: Path) -> None:
    reply = good("It is 41.")
    with serving(lambda call: call.stream(reply)) as endpoint, opened(home / "p", {}) as setup:
        test = setup.test(at(endpoint))
    assert (test.state, test.is_usable) == ("wrong", False)
    assert test.detail.startswith("Wrong answer: It is 41. instead of 42. Small models often")


def test_a_refusal_of_tools_leads_to_a_plain_question(home: Path) -> None:
    def play(call: Call) -> None:
        if call.body.get("tools"):
            call.refuse(400, "this model does not support tools")
        else:
            call.stream(good("42"))

    with serving(play) as endpoint, opened(home / "p", {}) as setup:
        assert setup.test(at(endpoint)).state == "no-tools"


def test_a_key_is_kept_only_after_an_answer_and_goes_to_its_host_alone(home: Path) -> None:
    def play(call: Call) -> None:
        if call.headers.get("authorization") != f"Bearer {KEY}":
            call.refuse(401, "Incorrect API key provided")
        elif any(message["role"] == "tool" for message in call.body["messages"]):
            call.stream(good("42"))
        elif "6 times 7" in str(call.body):
            arguments = json.dumps(CALL["function"]["arguments"])  # type: ignore[index]
            call.stream([calls(piece(arguments, index=0, id="a", name="multiply")), *ending()])
        else:
            call.stream(good("hello"))

    with serving(play) as endpoint, serving(play) as other, opened(home / "p", {}) as setup:
        model = setup.new_model("other", "m", endpoint.url)
        test, added = setup.add(model, "sk-wrong-0123456789")
        assert (test.state, added) == ("failed", None)
        assert "auth" in test.detail
        assert "sk-wrong" not in test.detail
        assert user_values("keys.json") == {}
        test, added = setup.add(model, KEY)
        assert added is not None
        assert test.state == "works", test
        assert setup.choose(added, "project") == ""
        assert asked(setup) == "hello"
        assert setup.found()[0][0].key_from == "keys.json"
        setup.choose(setup.new_model("other", "m", other.url), "user")
    assert own_file("keys.json").stat().st_mode & 0o777 == 0o600
    for file in [*(home / "p").rglob("*"), own_file("config.json")]:
        assert KEY not in file.read_text()
    assert all(KEY not in str(call.headers) for call in other.calls)


def test_a_key_of_the_file_goes_to_no_model_that_is_chosen_later(home: Path) -> None:
    sent: list[str] = []

    def play(call: Call) -> None:
        sent.append(call.headers.get("authorization", ""))
        call.stream(good("42"))

    with serving(play) as one, serving(play) as two:
        keys = {"llm.api_base": one.url, "llm.api_key": KEY, "llm.model": "m"}
        with opened(home / "p", keys) as setup:
            trust_project(home / "p")
            asked(setup)
            assert KEY in sent.pop()
            chosen = at(two)
            setup.test(chosen)
            setup.choose(chosen, "project")
            asked(setup)
            assert len(sent) >= 2
            assert KEY not in str(sent)
            setup.undo()
            asked(setup)
            assert KEY in sent.pop()


def test_a_test_is_cancelled(home: Path) -> None:
    begun = threading.Event()

    def play(call: Call) -> None:
        begun.set()
        call.stall()

    with serving(play) as endpoint, opened(home / "p", {}) as setup, ThreadPoolExecutor() as pool:
        running = pool.submit(setup.test, at(endpoint))
        assert begun.wait(10)
        setup.cancel_test("openai/another")
        assert not running.done()
        setup.cancel_test(at(endpoint).id)
        cancelled = running.result(10)
    assert (cancelled.state, cancelled.detail) == ("cancelled", "Cancelled. Nothing was saved.")


def test_a_reply_under_way_ends_although_another_model_is_chosen(home: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def play(call: Call) -> None:
        call.start()
        call.send(event("one "))
        begun.set()
        assert go_on.wait(10)
        for block in good("two"):
            call.send(block)
        call.end()

    with serving(play) as endpoint, opened(home / "p", {}) as setup, ThreadPoolExecutor() as pool:
        setup.choose(at(endpoint), "user")
        running = pool.submit(asked, setup)
        assert begun.wait(10)
        setup.choose(FoundModel("offline", "No model"), "user")
        go_on.set()
        assert running.result(10) == "one two"
        assert setup.present().id == "offline"


@pytest.mark.parametrize("play", [Call.stall, Call.hang_up, lambda call: call.answer(200, "<p>")])
def test_another_program_at_a_port(home: Path, monkeypatch: pytest.MonkeyPatch, play: Any) -> None:
    with serving(play) as endpoint:
        monkeypatch.setenv("OLLAMA_HOST", f"http://127.0.0.1:{endpoint.port}")
        with opened(home / "p", {}) as setup:
            since = monotonic()
            models, present = setup.found()
            assert monotonic() - since < 3
    assert [model.name for model in models] == ["No model"]
    assert present == models[0]


def test_a_full_disk_leaves_the_keys_as_they_were(home: Path) -> None:
    keep_endpoint(KeptEndpoint("groq", "https://api.groq.com/openai/v1", "m", KEY))
    file = own_file("keys.json")
    before = file.read_bytes()
    with largest_file(10), pytest.raises(ConfigError, match="It is as it was"):
        keep_endpoint(KeptEndpoint("openai", "https://api.openai.com/v1", "m", "k" * 5000))
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_two_that_add_keys_at_once_keep_both(home: Path) -> None:
    def add(number: int) -> None:
        keep_endpoint(KeptEndpoint("openai", f"https://host{number}.example/v1", "m", "k"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert len(user_values("keys.json")) == 40


@pytest.mark.parametrize("damage", ["{", "[]", "folder"])
def test_a_damaged_file_is_not_overwritten(home: Path, ollama: FakeEndpoint, damage: str) -> None:
    for file in map(own_file, ("config.json", "keys.json")):
        if damage == "folder":
            file.mkdir(parents=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(damage)
    with opened(home / "p", {}) as setup:
        assert "config.json" in setup._src.user_problem
        assert asked(setup) == "I am qwen3:8b."
        with pytest.raises(ConfigError, match=r"config\.json"):
            setup.choose(setup.found()[0][0], "user")
        with pytest.raises(ConfigError, match=r"keys\.json"):
            keep_endpoint(KeptEndpoint("openai", "https://a.example/v1", "m", "k"))


def test_odd_entries_are_passed_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_endpoint(KeptEndpoint("groq", "https://api.groq.com/openai/v1", "m", KEY))
    file = own_file("keys.json")
    odd = [1, {"provider": "new"}, {"provider": "groq", "address": "x", "model": "m", "key": 1}]
    odd += [{"provider": "groq", "address": "x", "model": "m", "key": "k"}]
    file.write_text(json.dumps(user_values("keys.json") | dict(zip("abcd", odd, strict=True))))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "no address")
    with opened(home / "p", {}) as setup:
        assert [model.id for model in setup.found()[0]] == ["groq/m", "offline"]


def test_a_local_server_with_a_key_answers(home: Path) -> None:
    def play(call: Call) -> None:
        if call.headers.get("authorization") == f"Bearer {KEY}":
            call.answer(200, {"data": [{"id": "m"}]})
        else:
            call.refuse(401, "no key")

    with serving(play) as endpoint:
        keep_endpoint(KeptEndpoint("openai", endpoint.url, "m", KEY))
        keys = {"llm.api_type": "openai", "llm.model": "m", "llm.api_base": endpoint.url}
        with opened(home / "p", keys) as setup:
            models, present = setup.found()
            assert present is not None
            assert present.key_from == "keys.json"
            assert models[0] == present
            assert setup.answers(present) is True


def test_many_who_ask_whether_a_server_answers_share_one_look(home: Path) -> None:
    with serving(Call.stall) as endpoint:
        keys = {"llm.api_type": "other", "llm.model": "m", "llm.api_base": endpoint.url}
        with opened(home / "p", keys) as setup, ThreadPoolExecutor(8) as pool:
            present, since = setup.present(), monotonic()
            assert not any(pool.map(setup.answers, [present] * 8))
            assert monotonic() - since < 3
            assert len(endpoint.calls) == 1


def test_a_login_in_a_configured_address_is_not_shown(home: Path) -> None:
    keys = {"llm.api_base": "http://ann:pa55word@127.0.0.1:1/v1?key=pa55word", "llm.model": "m"}
    with opened(home / "p", {"llm.api_type": "other"} | keys) as setup:
        present = setup.present()
    assert present.address == "http://127.0.0.1:1/v1"
    assert "pa55word" not in f"{present} {present.id} {present.line}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_rights_is_named(home: Path) -> None:
    file = own_file("config.json")
    file.parent.mkdir(parents=True)
    file.parent.chmod(0)
    try:
        with opened(home / "p", {}) as setup:
            assert "cannot be read" in setup._src.user_problem
            with pytest.raises(ConfigError, match="cannot be"):
                setup.choose(FoundModel("offline", "No model"), "user")
    finally:
        file.parent.chmod(0o700)


def test_the_choice_of_a_project_is_trusted_with_it_and_changes_no_other_file(home: Path) -> None:
    with opened(home / "trusted", {}) as setup:
        setup.choose(FoundModel("groq", "m", "https://api.groq.com/openai/v1"), "project")
        assert setup.scopes == ["project", "user"]
    folder = home / "p"
    with opened(folder, {"llm.api_type": "groq"}):
        pass
    read = read_project(folder, {}, False, lambda _: True)
    with ModelServices(read.src) as services:
        setup = ModelSetup(read.src, services, lambda _: True, is_trusted=not read.withheld)
        assert setup.scopes == ["user"]
        with pytest.raises(ConfigError, match="not trusted"):
            setup.choose(FoundModel("offline", "No model"), "project")


@pytest.mark.parametrize(
    ("text", "address"),
    [("0.0.0.0", "http://127.0.0.1:11434/v1"), (":8000", "http://127.0.0.1:8000/v1"),
     ("gpu-box:1", "http://gpu-box:1/v1"), ("https://gpu-box", "https://gpu-box:11434/v1"),
     ("[::1]:5", "http://[::1]:5/v1"), ("ftp://x", ""), ("host:port", "")],
)  # fmt: skip
def test_forms_of_ollama_host(monkeypatch: pytest.MonkeyPatch, text: str, address: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", text)
    assert ollama_host() == address
