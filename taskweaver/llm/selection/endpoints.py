"""Protocol, provider and address of the endpoint that was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from taskweaver.llm.base import CompletionService
from taskweaver.llm.dialects.dialect import Dialect
from taskweaver.llm.dialects.ollama import OllamaChatDialect
from taskweaver.llm.dialects.responses import reasons
from taskweaver.llm.dialects.switch import DialectName, DialectSwitch, dialect_named
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.providers.function import FunctionService
from taskweaver.llm.providers.presets import PRESETS, provider_at
from taskweaver.llm.providers.recorded import RecordedService
from taskweaver.llm.transport.endpoint import Endpoint


def dialects_at(endpoint: Endpoint, preset: DialectName, wanted: str) -> DialectSwitch:
    """Return the dialects of an endpoint.

    OpenAI's models that reason do so beside tools in Responses alone: they are asked there from
    the beginning at OpenAI's own address, and elsewhere once chat completions refuse them.

    Args:
        endpoint: The endpoint.
        preset: The dialect of its provider.
        wanted: The configured dialect; ``auto`` for the best.
    """
    is_own = PRESETS["openai"].owns(endpoint.api_base)

    def named(name: DialectName) -> Dialect:
        return dialect_named(name, endpoint.model, has_cache_key=is_own)

    if preset == "ollama" and wanted == "auto":
        return DialectSwitch(named("ollama"), fallback=OllamaChatDialect())
    if preset == "anthropic":
        return DialectSwitch(named("anthropic"))
    chat, responses = named("chat"), named("responses")
    if wanted == "responses":
        return DialectSwitch(responses)
    if wanted == "chat" or endpoint.api_version:
        return DialectSwitch(chat)
    if is_own and reasons(endpoint.model):
        return DialectSwitch(responses, fallback=chat)
    return DialectSwitch(chat, for_reasoning=responses)


_CONVENTIONAL = {
    "azure": "azure.ai.openai",
    "google_genai": "gcp.gemini",
    "mistral": "mistral_ai",
}
_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """Provider and address of a model.

    Attributes:
        provider: Value of ``gen_ai.provider.name``.
        host: Host of the endpoint; empty for a model in this process.
        port: Its port.
    """

    provider: str
    host: str = ""
    port: int = 0

    def attributes(self) -> Mapping[str, str | int]:
        """Return the attributes of spans and metrics."""
        known: dict[str, str | int] = {"gen_ai.provider.name": self.provider}
        if self.host:
            known |= {"server.address": self.host, "server.port": self.port}
        return known


def origin_of(service: CompletionService, api_type: str) -> ModelOrigin:
    """Return the origin of a model.

    Args:
        service: The model.
        api_type: The configured type; one that names no provider leaves it to the address.
    """
    if isinstance(service, RecordedService):
        return ModelOrigin("recorded")
    if isinstance(service, FunctionService):
        return ModelOrigin("function")
    if not isinstance(service, EndpointService):
        return ModelOrigin("offline")
    return origin_at(service.endpoint, api_type)


def origin_at(endpoint: Endpoint, api_type: str = "") -> ModelOrigin:
    """Return the origin of a model at an endpoint; see `origin_of`."""
    parts = urlsplit(endpoint.api_base)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    if endpoint.api_version:
        api_type = "azure"
    name = provider_at(endpoint.api_base) or api_type
    if name in {"auto", "other", ""}:
        name = "openai"  # the protocol it speaks
    return ModelOrigin(_CONVENTIONAL.get(name, name), parts.hostname or "", port)
