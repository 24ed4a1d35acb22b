"""Effort of reasoning: configured or asked for, and refused."""

from __future__ import annotations

from typing import Any

from fake_endpoint import Call, good, serving

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ChatMessage

HELLO: list[ChatMessage] = [{"role": "user", "content": "hello"}]
USUAL = {"llm.model": "m1", "llm.api_key": "k1", "llm.max_retries": 0}


def efforts(play: Any, keys: dict[str, Any], *hows: dict[str, Any]) -> list[str | None]:
    """Ask as configured, once for each of `hows`; return the efforts of the requests."""
    with serving(play) as endpoint:
        source = AppConfigSource(None, USUAL | {"llm.api_base": endpoint.url} | keys)
        with ModelServices(source) as services:
            api = LLMApi(services)
            for how in hows or ({},):
                list(api.stream_chunks(HELLO, **how))
        calls = [call for call in endpoint.calls if call.path.endswith("/chat/completions")]
        return [call.body.get("reasoning_effort") for call in calls]


def answer(call: Call) -> None:
    call.stream(good("yes"))


def test_a_request_goes_before_the_configuration() -> None:
    asked = {"reasoning_effort": "high"}
    assert efforts(answer, {"llm.reasoning_effort": "low"}, {}, asked) == ["low", "high"]
