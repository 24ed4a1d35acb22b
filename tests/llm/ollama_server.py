"""A scripted Ollama: what it shows of a model, what it has loaded, and its lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fake_endpoint import Call, FakeEndpoint, serving

MODEL = "qwen3:8b"


def line(text: str = "", *, thinking: str = "", calls: Any = None, **more: Any) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    message |= {"thinking": thinking} if thinking else {}
    message |= {"tool_calls": calls} if calls else {}
    value = {"model": MODEL, "message": message, "done": False, **more}
    return json.dumps(value).encode() + b"\n"


def last(reason: str = "stop", **counts: Any) -> bytes:
    """Return the line that ends a reply."""
    counts = counts or {"prompt_eval_count": 120, "eval_count": 7}
    return line(done=True, done_reason=reason, **counts)


def call_of(code: str, **more: Any) -> dict[str, Any]:
    """Return a call of ``run_python``, as a line has it."""
    return {**more, "function": {"name": "run_python", "arguments": {"code": code}}}


def said(text: str) -> list[bytes]:
    """Return the body of a reply without calls."""
    return [line(text), last()]


@dataclass
class Ollama:
    """A server with one model.

    Attributes:
        answer: Answers a chat; one that raises nothing.
        capabilities: What it lists of the model; None for a version that lists nothing.
        trained: Window of the training; 0 for a server that shows nothing.
        parameters: Settings of the model.
        loaded: Window that it is loaded with now; 0 while it is not.
    """

    answer: Callable[[Call], None]
    capabilities: list[str] | None = field(default_factory=lambda: ["completion", "tools"])
    trained: int = 40_960
    parameters: str = ""
    loaded: int = 0
    questions: list[Call] = field(default_factory=list)
    chats: list[Call] = field(default_factory=list)

    def play(self, call: Call) -> None:
        if call.path == "/api/chat":
            self.chats.append(call)
            self.answer(call)
            return
        if call.path == "/v1/models":
            call.answer(200, {"data": [{"id": MODEL, "owned_by": "library"}]})
            return
        self.questions.append(call)
        if call.path == "/api/show" and self.trained:
            info = {"general.architecture": "qwen3", "qwen3.context_length": self.trained}
            shown = {"model_info": info, "parameters": self.parameters, "license": "x" * 9_000}
            shown |= {} if self.capabilities is None else {"capabilities": self.capabilities}
            call.answer(200, shown)
        elif call.path == "/api/ps":
            running = [{"name": "other:1b", "context_length": 2_048}]
            running += [{"name": MODEL, "context_length": self.loaded}] if self.loaded else []
            call.answer(200, {"models": running})
        else:
            call.answer(404, "404 page not found")

    @property
    def options(self) -> list[dict[str, Any]]:
        return [call.body.get("options", {}) for call in self.chats]


@contextmanager
def ollama(answer: Callable[[Call], None], **facts: Any) -> Iterator[tuple[FakeEndpoint, Ollama]]:
    server = Ollama(answer, **facts)
    with serving(server.play, states_facts=True) as endpoint:
        yield endpoint, server
