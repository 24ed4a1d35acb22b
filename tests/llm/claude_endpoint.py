"""Requests to an endpoint that speaks Anthropic messages and follows a script."""

from __future__ import annotations

import json
from typing import Any

from claude_replies import (
    reply,
    text,
)
from fake_endpoint import FakeEndpoint
from scripted_server import Outcome, Script, outcome

from taskweaver.llm.dialects.switch import DialectSwitch, dialect_named
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.types import ChatMessage


def ask(script: Script, **more: Any) -> Outcome:
    return outcome(script, dialect="anthropic", **more)


def play(*blocks: bytes, in_bytes: bool = False, **more: Any) -> Outcome:
    body = b"".join(blocks)
    cut = [body[at : at + 1] for at in range(len(body))] if in_bytes else list(blocks)
    return ask(lambda request: request.stream(cut), **more)


def sent(*messages: ChatMessage, **more: Any) -> dict[str, Any]:
    """Return the body that is sent for messages."""
    return play(*reply(text("ok")), messages=messages, **more).bodies[0]


def told(role: str, content: Any, **more: Any) -> ChatMessage:
    return {"role": role, "content": content, **more}  # type: ignore[typeddict-item,misc]


def made(id_: str, code: str) -> dict[str, Any]:
    arguments = json.dumps({"code": code})
    function = {"name": "run_python", "arguments": arguments}
    return {"id": id_, "type": "function", "function": function}


def service(endpoint: FakeEndpoint, model: str) -> EndpointService:
    address = Endpoint(endpoint.url, model)
    return EndpointService(address, dialects=DialectSwitch(dialect_named("anthropic")))
