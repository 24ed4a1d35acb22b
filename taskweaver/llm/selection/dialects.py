"""Choice of the protocol that is spoken with an endpoint."""

from __future__ import annotations

from taskweaver.llm.dialects.dialect import Dialect
from taskweaver.llm.dialects.ollama import OllamaChatDialect
from taskweaver.llm.dialects.responses import reasons
from taskweaver.llm.dialects.switch import DialectName, DialectSwitch, dialect_named
from taskweaver.llm.providers.presets import PRESETS
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
