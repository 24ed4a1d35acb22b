"""Scripts of an endpoint: one script is one case, whole and in pieces of one byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fake_endpoint import DONE, USAGE_EVENT, Call, serving

from taskweaver.llm.dialects.switch import DialectName, DialectSwitch, dialect_named
from taskweaver.llm.errors import ModelError
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.providers.abilities import FormLadder
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest, ModelTool, ToolCall

RUN = ModelTool(
    "run_python",
    "Run a cell.",
    {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
)
MESSAGES: list[ChatMessage] = [{"role": "user", "content": "count to 3"}]
Script = Callable[[Call], None]


def delta(finish: str | None = None, **fields: Any) -> bytes:
    """Return an event with a delta."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def piece(arguments: Any = None, *, name: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a piece of a call; what is None is not in it."""
    return _given(**more, type="function", function=_given(name=name, arguments=arguments))


def calls(*pieces: dict[str, Any]) -> bytes:
    """Return an event with pieces of calls."""
    return delta(tool_calls=list(pieces))


def ending(finish: str = "tool_calls") -> list[bytes]:
    """Return the events that end a reply."""
    return [delta(finish), USAGE_EVENT, DONE]


@dataclass
class Outcome:
    """A reply as its caller sees it, and the requests that were made for it."""

    chunks: list[Chunk] = field(default_factory=list)
    error: ModelError | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    form: str = ""

    @property
    def text(self) -> str:
        begins = [at for at, chunk in enumerate(self.chunks) if chunk.begins_again]
        return "".join(chunk.text for chunk in self.chunks[begins[-1] if begins else 0 :])

    @property
    def reasoning(self) -> str:
        return "".join(chunk.reasoning for chunk in self.chunks)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.chunks[-1].calls if self.chunks else ()

    @property
    def finish(self) -> str | None:
        return self.chunks[-1].finish if self.chunks else None

    def streamed(self, position: int) -> str:
        """Return the arguments of a call as they were handed on piece by piece."""
        deltas = [chunk.call for chunk in self.chunks if chunk.call is not None]
        return "".join(item.text for item in deltas if item.position == position)


def play(*blocks: bytes, in_bytes: bool = False, **more: Any) -> Outcome:
    """Return the outcome of a reply of these events."""
    body = b"".join(blocks)
    cut = [body[at : at + 1] for at in range(len(body))] if in_bytes else list(blocks)
    return outcome(lambda call: call.stream(cut), **more)


def outcome(
    script: Script,
    *,
    messages: Sequence[ChatMessage] = MESSAGES,
    tools: Sequence[ModelTool] = (RUN,),
    dialect: DialectName = "chat",
    dialects: DialectSwitch | None = None,
    **more: Any,
) -> Outcome:
    """Return the outcome of a request to an endpoint that follows a script."""
    seen = Outcome()
    forms = FormLadder(lambda: "tools")
    with serving(script) as endpoint:
        address = Endpoint(endpoint.url, "m1", "a-key-0123456789")
        spoken = dialects or DialectSwitch(dialect_named(dialect))
        service = EndpointService(EndpointFacts(address), dialects=spoken, forms=forms)
        try:
            for chunk in service.stream(ModelRequest(messages, tools=tools, **more)):
                seen.chunks.append(chunk)
        except ModelError as error:
            seen.error = error
        finally:
            service.close()
        seen.bodies = [call.body for call in endpoint.calls]
        seen.paths = [call.path for call in endpoint.calls]
    seen.form = forms.current
    return seen
