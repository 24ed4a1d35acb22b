"""Keys of the environment go to hosts that the user chose; new hosts are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asking import HELLO
from fake_endpoint import Call, good, serving

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.providers.presets import PRESETS
from taskweaver.llm.services import ModelServices

KEY = "sk-proj-the-users-own-key-0123456789"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def of_file(folder: Path, keys: dict[str, Any], *, is_trusted: bool = False) -> AppConfigSource:
    """Return a configuration that a project's file sets."""
    file = folder / "taskweaver_config.json"
    file.write_text(json.dumps({"llm.max_retries": 0, "llm.model": "m"} | keys))
    src = AppConfigSource(file)
    src.trusts_addresses = is_trusted
    return src


def answer(call: Call) -> None:
    if "embeddings" in call.path:
        call.answer(200, {"data": [{"index": 0, "embedding": [0.5]}]})
    else:
        call.stream(good("yes"))


PLAIN = {"llm.api_base": "URL"}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "usual": ("OPENAI_API_KEY", PLAIN),
    "common": ("LLM_API_KEY", PLAIN),
    "own": ("LLM_OPENAI_API_KEY", PLAIN),
    "preset": ("GROQ_API_KEY", {"llm.api_type": "groq", "llm.api_base": "URL"}),
    "provider": ("GROQ_API_KEY", {"llm.groq.api_base": "URL", "llm.api_type": "groq"}),
    "azure": ("LLM_API_KEY", {"llm.api_type": "azure", "llm.api_base": "URL"}),
    "alias": ("OPENAI_API_KEY",
              {"ext_llms.llm_configs": {"other": {"llm.api_base": "URL", "llm.model": "m"}}}),
    "embedding": ("OPENAI_API_KEY",
                  {"llm.embedding_api_type": "openai", "llm.embedding_api_base": "URL"}),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_file_must_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    variable, keys = WAYS[way]
    monkeypatch.setenv(variable, KEY)

    def ask(services: ModelServices) -> None:
        if way == "embedding":
            services.embedding().get_embeddings(["a"])  # type: ignore[union-attr]
        else:
            LLMApi(services).chat_completion(HELLO, llm_alias="other" if way == "alias" else "")

    with serving(answer) as endpoint:
        own = json.loads(json.dumps(keys).replace("URL", endpoint.url))
        own["llm.embedding_model"] = "e"
        services = ModelServices(of_file(tmp_path, own))
        with services, pytest.raises(ModelError, match="is not sent to"):
            ask(services)
        assert endpoint.calls == []
        with ModelServices(of_file(tmp_path, own, is_trusted=True)) as services:
            ask(services)
        assert KEY in str(endpoint.calls[0].headers)


def test_addresses_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(answer) as endpoint:
        src = AppConfigSource(None, {"llm.api_base": endpoint.url, "llm.model": "m"})
        src.trusts_addresses = False
        with ModelServices(src) as services:
            LLMApi(services).chat_completion(HELLO)
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        with ModelServices(of_file(tmp_path, {})) as services:
            LLMApi(services).chat_completion(HELLO)
        assert len(endpoint.calls) == 2


def test_embeddings_take_no_other_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", KEY)
    keys = {"llm.api_type": "mistral", "llm.embedding_api_type": "openai"}
    with ModelServices(of_file(tmp_path, keys | {"llm.embedding_model": "e"})) as services:
        services.embedding()
        assert services.embedding_origin.host == "api.mistral.ai"


def test_hosts_of_a_provider_are_its_own_by_https_alone() -> None:
    openai = PRESETS["openai"]
    assert openai.owns("https://api.openai.com/v1")
    assert openai.owns("https://eu.api.openai.com/v1")
    for other in (
        "http://api.openai.com/v1", "https://api.openai.com.evil.example/v1",
        "https://evil-api.openai.com/v1", "https://evil.example/api.openai.com",
        "https://api.openai.com@evil.example/v1",
    ):  # fmt: skip
        assert not openai.owns(other), other


def test_a_redirect_takes_no_key_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def send_on(call: Call) -> None:
        call.answer(307, "", Location=f"{elsewhere.url}/chat/completions")

    with serving(answer) as elsewhere, serving(send_on) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        with ModelServices(of_file(tmp_path, {})) as services, pytest.raises(ModelError):
            LLMApi(services).chat_completion(HELLO)
        assert len(endpoint.calls) == 1
        assert elsewhere.calls == []


def test_the_first_call_to_a_host_is_named_once(tmp_path: Path) -> None:
    keys = {"llm.api_key": "k", "llm.model": "m"}
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "taskweaver_config.json").write_text(
        json.dumps(keys | {"llm.api_base": "https://models.example:8443/v1"})
    )
    for is_first in (True, False):
        with TaskWeaverApp(folder) as app:
            assert ("first call to this host" in app.announcement) is is_first
    log = (folder / "logs" / "task_weaver.log").read_text()
    assert log.count("first call to the model host models.example:8443") == 1
    with ModelServices(AppConfigSource(None, keys | {"llm.api_type": "vllm"})) as services:
        assert "first call" not in services.announcement  # this machine
