"""Keys and addresses of different layers, and servers and files of others that are hostile."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from fake_endpoint import Call, good, serving

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.files import (
    KeptEndpoint,
    change_file,
    keep_endpoint,
    kept_endpoints,
    user_file,
)
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.selection.auto import list_models, local_servers
from taskweaver.llm.services import ModelServices

KEY = "sk-of-another-layer-0123456789"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TASKWEAVER_NO_DISCOVERY", "1")


def resolved(folder: Path, project: Mapping[str, Any], user: Mapping[str, Any]) -> str:
    """Return the address and the key that a trusted project and the user's file lead to."""
    file = folder / "taskweaver_config.json"
    file.write_text(json.dumps(project))
    with ModelServices(AppConfigSource(file, user=user)) as services:
        try:
            endpoint = getattr(services.get(), "endpoint", None)
        except ModelError as error:
            return str(error)
    return f"{endpoint.api_base} {endpoint.api_key}" if endpoint else "offline"


HOST = "https://models.example/v1"
CHOSEN = {"llm.api_type": "openai", "llm.openai.api_base": HOST, "llm.openai.model": "m"}


@pytest.mark.parametrize(
    ("variable", "project", "user"),
    [
        ("LLM_API_KEY", {}, CHOSEN),
        ("LLM_OPENAI_API_KEY", {}, CHOSEN),
        ("OPENAI_API_KEY", {}, CHOSEN),
        ("", {"llm.api_type": "openai", "llm.api_key": KEY}, CHOSEN),
        ("", {"llm.openai.api_base": HOST, "llm.model": "m"}, {"llm.api_key": KEY}),
        ("", {"llm.api_base": HOST, "llm.model": "m"}, {"llm.openai.api_key": KEY}),
    ],
)
def test_a_key_of_the_environment_or_a_file_goes_to_no_address_of_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, project: Any, user: Any
) -> None:
    if variable:
        monkeypatch.setenv(variable, KEY)
    for _ in range(2):
        found = resolved(tmp_path, project, user)
        assert "models.example" not in found or KEY not in found
        keep_endpoint(KeptEndpoint("other", HOST, "m", "sk-of-the-host-0123456789"))


def test_the_users_key_goes_to_no_address_for_embeddings_of_a_project(tmp_path: Path) -> None:
    file = tmp_path / "taskweaver_config.json"
    keys = {"llm.embedding_api_base": HOST, "llm.embedding_model": "e"}
    file.write_text(json.dumps(keys | {"llm.embedding_api_type": "openai"}))
    services = ModelServices(AppConfigSource(file, user={"llm.api_key": KEY}))
    with services, pytest.raises(ModelError, match=r"is not sent to models\.example"):
        services.embedding()


def test_the_users_own_key_goes_to_the_users_own_address(tmp_path: Path) -> None:
    assert resolved(tmp_path, {}, CHOSEN | {"llm.openai.api_key": KEY}) == f"{HOST} {KEY}"


def test_an_own_address_needs_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(lambda call: call.stream(good("hello"))) as endpoint:
        keys = {"llm.api_type": "other", "llm.other.api_base": endpoint.url, "llm.model": "m"}
        with ModelServices(AppConfigSource(None, keys)) as services:
            assert "no key needed" in services.announcement
            LLMApi(services).chat_completion([{"role": "user", "content": "hello"}])
    assert KEY not in str(endpoint.calls[0].headers)
    assert resolved(tmp_path, {}, keys | {"llm.other.api_base": HOST}) == f"{HOST} "


def test_a_key_stays_when_another_model_of_its_host_is_added() -> None:
    keep_endpoint(KeptEndpoint("other", HOST, "m1", KEY))
    keep_endpoint(KeptEndpoint("other", HOST, "m2"))
    assert [(one.model, one.key) for one in kept_endpoints()] == [("m2", KEY)]


def test_keys_behind_a_link_are_neither_read_nor_written(tmp_path: Path) -> None:
    file = user_file("keys.json")
    assert file is not None
    file.parent.mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_text("{}")
    file.symlink_to(tmp_path / "elsewhere.json")
    for act in (kept_endpoints, lambda: keep_endpoint(KeptEndpoint("other", HOST, "m", KEY))):
        with pytest.raises(ConfigError, match="is a link"):
            act()
    assert (tmp_path / "elsewhere.json").read_text() == "{}"
    change_file(user_file(), lambda before: before)  # links of settings are the user's matter


def test_a_server_that_drips_is_left_in_time() -> None:
    is_left = threading.Event()

    def drip(call: Call) -> None:
        call.start()
        for _ in range(100):
            call.send(b" ")
            is_left.wait(0.05)

    with serving(drip) as endpoint:
        since = monotonic()
        assert list_models(endpoint.url, "", timeout_s=0.4) == []
        assert monotonic() - since < 2


@pytest.mark.parametrize("data", [5, {"a": 1}, "text", [5, None, {"id": 3}, {"id": ["m"]}]])
def test_a_list_of_another_form_has_no_models(data: Any) -> None:
    with serving(lambda call: call.answer(200, {"data": data})) as endpoint:
        assert list_models(endpoint.url, "", timeout_s=5) == []


def test_names_and_sizes_of_models_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = ["two\nlines", "esc\x1b[2J", "a" * 3000, "\u202egnp.exe", ""]
    names = [*odd, *(f"model-{number}" for number in range(20_000))]
    entries = [{"id": name, "owned_by": "vllm", "meta": {"size": 10**400}} for name in names]
    with serving(lambda call: call.answer(200, {"data": entries})) as endpoint:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{endpoint.port}")
        assert local_servers({}, timeout_s=20) == []  # more than is read
        del entries[1000:]
        (server,) = local_servers({}, timeout_s=20)
    assert len(server.models) == 200
    assert next(iter(server.models)) == "model-0"
    assert set(server.models.values()) == {0}
