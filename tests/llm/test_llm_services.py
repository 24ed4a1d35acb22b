"""Which model is asked, and why."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from asking import HELLO, configured
from fake_endpoint import SOON_S, Call, good, serving
from ports import free_port

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm import LLMApi, ModelError, ModelServices
from taskweaver.llm.providers.presets import PRESETS
from taskweaver.llm.selection.auto import Choice, choose, choose_preset
from taskweaver.llm.selection.config import LLMServiceConfig
from taskweaver.llm.transport.endpoint import Endpoint, is_loopback


def config_of(**config: Any) -> LLMServiceConfig:
    return LLMServiceConfig(configured(**config))


def listing(*models: Any) -> Any:
    def play(call: Call) -> None:
        if call.path == "/v1/models":
            call.answer(200, {"object": "list", "data": [{"id": model} for model in models]})
        elif call.path == "/api/chat":
            message = {"role": "assistant", "content": call.body["model"]}
            ended = {"message": message, "done": True, "done_reason": "stop"}
            call.stream([json.dumps(ended).encode() + b"\n"])
        else:
            call.stream(good(call.body["model"]))

    return play


# What is configured


def test_the_environment_comes_after_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "private-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    monkeypatch.setenv("OPENAI_MODEL", "m7")
    choice = choose(config_of())
    assert choice.endpoint == Endpoint("https://models.example/v1", "m7", "private-key")
    assert choice.reason == "key from OPENAI_API_KEY"
    choice = choose(config_of(api_key="my-key", api_base="https://mine.example/v1", model="m"))
    assert choice.endpoint == Endpoint("https://mine.example/v1", "m", "my-key")


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.needs_key])
def test_a_preset_finds_the_key_its_users_have(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = PRESETS[name].key_variable
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelError, match=variable):
        choose_preset(config_of(), name)
    monkeypatch.setenv(variable, "k")
    endpoint = choose_preset(config_of(), name).endpoint
    assert endpoint == Endpoint(PRESETS[name].api_base, PRESETS[name].model, "k")


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ModelError, match="mistral"):
        choose_preset(config_of(), "nonesuch")


@pytest.mark.parametrize("base", ["localhost:1234", "ftp://a/b", "http://", "http://[::1", "/v1"])
def test_an_address_that_is_none_is_refused(base: str) -> None:
    with pytest.raises(ModelError) as caught:
        choose_preset(config_of(api_base=base, model="m"), "ollama")
    assert caught.value.kind == "configuration"


def test_loopback_is_told_from_look_alikes() -> None:
    for host in ("localhost:1", "127.8.0.1", "[::1]:8", "my.localhost"):
        assert is_loopback(f"http://{host}/v1"), host
    for host in ("localhost.example", "127.0.0.1.example", "10.0.0.1"):
        assert not is_loopback(f"http://{host}/v1"), host


def test_a_server_that_has_no_model_is_a_clear_error() -> None:
    with pytest.raises(ModelError, match=r"llm\.model is not set"):
        choose_preset(config_of(api_base=f"http://127.0.0.1:{free_port()}/v1"), "vllm")


# What runs here


def test_a_local_server_is_found() -> None:
    with serving(listing("bge-m3", "llama")) as endpoint:
        choice = choose(config_of(auto_detect=True), {endpoint.port: "Ollama"})
    assert choice == Choice(
        Endpoint(endpoint.url, "llama"), "Ollama found on this machine", "ollama"
    )


@pytest.mark.parametrize(
    "variables",
    [{"LLM_AUTO_DETECT": "false"}, {"TASKWEAVER_NO_DISCOVERY": "1", "LLM_AUTO_DETECT": "1"}],
)
def test_looking_is_optional(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with serving(listing("m")) as endpoint:
        choice = choose(config_of(), {endpoint.port: "Ollama"})
        assert not endpoint.calls
    assert choice == Choice(
        None, "no key, not looking for a local server; `taskweaver setup` connects one"
    )


@pytest.mark.parametrize(
    "play",
    [
        lambda call: call.answer(200, "<html>my other project</html>"),
        lambda call: call.answer(200, {"data": [1, {"id": 2}, {"id": ""}, {}]}),
        lambda call: call.answer(200, [1]),
        lambda call: call.answer(404, {"data": [{"id": "m"}]}),
        lambda call: call.answer(302, {}, Location="http://127.0.0.1:1/v1/models"),
        Call.hang_up,
        Call.stall,
    ],
)
def test_something_else_on_the_port_is_passed_over_quickly(play: Any) -> None:
    with ExitStack() as stack:
        ports = {stack.enter_context(serving(play)).port: name for name in ("a", "b", "c")}
        since = monotonic()
        choice = choose(config_of(auto_detect=True), ports)
        assert monotonic() - since < SOON_S
    assert choice == Choice(None, "no key, no local server found; `taskweaver setup` connects one")


# The models of an application


def test_the_offline_model_is_the_last_resort() -> None:
    with ModelServices(configured()) as services:
        assert services.announcement == (
            "model: builtin/offline (no key, not looking for a local server;"
            " `taskweaver setup` connects one)"
        )
    with ModelServices(configured(api_type="offline")) as services:
        assert services.get().model == "builtin/offline"


def test_a_function_that_is_missing_is_a_clear_error() -> None:
    with pytest.raises(ModelError, match="no function was given"):
        ModelServices(configured(api_type="function")).get()


def test_recordings_are_played_without_a_key_and_made_with_a_function(tmp_path: Path) -> None:
    def recorded(**more: Any) -> AppConfigSource:
        own = {f"recorded.{name}": value for name, value in more.items()}
        return configured(api_type="recorded", **own, **{"recorded.path": str(tmp_path / "r.yaml")})

    itself = ModelServices(recorded(api_type="recorded"))
    with pytest.raises(ModelError, match=r"llm\.recorded\.api_type"):
        LLMApi(itself).chat_completion(HELLO)
    with ModelServices(recorded(api_type="function"), function=lambda _: "once") as services:
        LLMApi(services).chat_completion(HELLO)
    with ModelServices(recorded(mode="play")) as services:
        assert LLMApi(services).chat_completion(HELLO)["content"] == "once"
        assert services.announcement.startswith("model: recorded/r.yaml (play, ")


def with_aliases(main: dict[str, Any], **aliases: Any) -> ModelServices:
    config = {f"llm.{name}": value for name, value in main.items()}
    return ModelServices(AppConfigSource(config={**config, "ext_llms.llm_configs": aliases}))


def test_an_alias_is_a_model_of_its_own() -> None:
    with serving(listing("big")) as one, serving(listing("small")) as two:
        main = {"api_type": "openai", "api_base": one.url, "api_key": "main-key", "model": "big"}
        mini = {"llm.api_type": "ollama", "llm.api_base": two.url, "llm.prompt_price": 1.0}
        with with_aliases(main, mini=mini, hot={"llm.temperature": 2.0}) as services:
            api = LLMApi(services)
            replies = [
                api.chat_completion(HELLO, llm_alias=a)["content"] for a in ("", "mini", "hot")
            ]
        assert replies == ["big", "small", "big"]
        assert one.calls[-1].body["temperature"] == 2.0
        assert "main-key" not in str([call.headers for call in two.calls])
        assert api.usage.calls == 3
        assert api.usage.cost is not None


def test_an_alias_takes_what_is_set_for_the_provider_it_chooses() -> None:
    with serving(listing("big")) as one, serving(listing("small")) as two:
        main = {"api_type": "openai", "openai.api_base": one.url, "openai.api_key": "main-key"}
        main |= {"openai.model": "big", "ollama.api_base": two.url.removesuffix("/v1")}
        with with_aliases(main, mini={"llm.api_type": "ollama"}) as services:
            replies = [
                LLMApi(services).chat_completion(HELLO, llm_alias=alias)["content"]
                for alias in ("", "mini")
            ]
        assert replies == ["big", "small"]
        assert "main-key" in one.calls[-1].headers["authorization"]
        assert "main-key" not in str([call.headers for call in two.calls])


@pytest.mark.parametrize("prefix", ["", "openai."])
@pytest.mark.parametrize("address", ["llm.api_base", "llm.openai.api_base"])
@pytest.mark.parametrize("own", [{}, {"llm.api_type": "openai"}])
def test_no_other_address_gets_the_key(prefix: str, address: str, own: dict[str, str]) -> None:
    with serving(listing("m")) as one, serving(listing("m")) as two:
        keys = {"api_base": one.url, "api_key": "main-key", "model": "m"}
        main = {f"{prefix}{name}": value for name, value in keys.items()}
        with with_aliases(main, other={address: two.url, "llm.model": "m", **own}) as services:
            LLMApi(services).chat_completion(HELLO, llm_alias="other")
        assert two.calls
        assert "main-key" not in str([call.headers for call in two.calls])


@pytest.mark.parametrize(("alias", "words"), [("minni", "did you mean 'mini'"), ("zzz", "mini")])
def test_an_unknown_alias_is_a_clear_error(alias: str, words: str) -> None:
    services = with_aliases({}, mini={})
    with pytest.raises(ModelError, match=words) as caught:
        services.get(alias)
    assert caught.value.kind == "configuration"
