"""Azure is asked with a token of Azure AD, however the program signs in."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from asking import HELLO
from fake_endpoint import good, serving

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm import LLMApi, ModelError, ModelServices
from taskweaver.utils.redact import redact

KEYS: dict[str, Any] = {"llm.api_type": "azure_ad", "llm.azure_ad.model": "dep"}


class FakeIdentity(SimpleNamespace):
    """In place of the package, whose every credential asks a server on the internet.

    Attributes:
        made: The credentials that were made, by name and arguments.
        scopes: The scopes that tokens were asked for.
    """

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.scopes: list[str] = []
        super().__init__()

    def __getattr__(self, name: str) -> Any:
        def make(*args: Any, **kwargs: Any) -> str:
            self.made.append((name, *args, *sorted(kwargs.items())))
            return name

        return make

    def get_bearer_token_provider(self, credential: str, *scopes: str) -> Any:
        self.scopes += scopes
        return lambda: f"token-of-{credential}"


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> FakeIdentity:
    fake, real = FakeIdentity(), importlib.import_module

    def found(name: str, package: str | None = None) -> Any:
        return fake if name == "azure.identity" else real(name, package)

    monkeypatch.setattr(importlib, "import_module", found)
    return fake


def ask(**config: Any) -> str:
    """Ask a model; return the authorization the endpoint got."""
    with serving(lambda call: call.stream(good("hello"))) as endpoint:
        keys = KEYS | {"llm.api_base": endpoint.url.removesuffix("/v1")}
        keys |= {f"llm.azure_ad.{name}": value for name, value in config.items()}
        with ModelServices(AppConfigSource(None, keys)) as services:
            assert LLMApi(services).chat_completion(HELLO)["content"] == "hello"
    (call,) = endpoint.calls
    assert call.path == "/openai/deployments/dep/chat/completions?api-version=2024-10-21"
    assert "api-key" not in call.headers
    return str(call.headers["authorization"])


def test_the_machines_own_sign_in_is_the_default(identity: FakeIdentity) -> None:
    assert ask() == "Bearer token-of-DefaultAzureCredential"
    assert identity.made == [("DefaultAzureCredential",)]
    assert identity.scopes == ["https://cognitiveservices.azure.com/.default"]
    assert "token-of" not in redact("token-of-DefaultAzureCredential")


def test_an_application_signs_in_with_its_secret(identity: FakeIdentity) -> None:
    config = {"aad_tenant_id": "t", "aad_client_id": "c", "aad_client_secret": "s-private"}
    config |= {"aad_api_resource": "https://x.example", "aad_api_scope": "/all.read"}
    sent = ask(aad_auth_mode="aad_app", **config)
    assert sent == "Bearer token-of-ClientSecretCredential"
    assert identity.made == [("ClientSecretCredential", "t", "c", "s-private")]
    assert identity.scopes == ["https://x.example/all.read"]


def test_sign_in_with_a_code(identity: FakeIdentity, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(aad_auth_mode="device_login") == "Bearer token-of-DeviceCodeCredential"
    ((name, (_, show), tenant),) = identity.made
    assert (name, tenant) == ("DeviceCodeCredential", ("tenant_id", "common"))
    show("https://login.example", "ABC", None)
    shown = capsys.readouterr()
    assert shown.err == "To sign in to Azure, open https://login.example and enter ABC.\n"
    assert shown.out == ""


def test_what_is_missing_is_named(identity: FakeIdentity) -> None:
    assert identity.made == []
    with pytest.raises(ModelError, match=r"needs llm\.azure_ad\.aad_client_id and llm\.azure_ad"):
        ask(aad_auth_mode="aad_app")
    with (
        ModelServices(AppConfigSource(None, KEYS)) as services,
        pytest.raises(ModelError, match=r"Azure needs llm\.api_base"),
    ):
        services.get()


def test_without_the_package_the_error_names_it() -> None:
    keys = KEYS | {"llm.api_base": "https://x.example"}
    with (
        ModelServices(AppConfigSource(None, keys)) as services,
        pytest.raises(ModelError, match='pip install "azure-identity>=') as missing,
    ):
        services.get()
    assert missing.value.kind == "configuration"
