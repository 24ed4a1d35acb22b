"""Models behind an OpenAI-compatible endpoint, Azure included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.reply import ReplyReader
from taskweaver.llm.parsing.wire import chat_body, without_secrets
from taskweaver.llm.providers.forms import FormMemory, is_about_tools
from taskweaver.llm.providers.parameters import ParameterMemory
from taskweaver.llm.providers.structured import (
    FormatMemory,
    ResponseFormat,
    format_option,
    is_about_format,
    with_instruction,
)
from taskweaver.llm.transport.endpoint import ConnectionPool, Endpoint
from taskweaver.llm.transport.exchange import Deadlines, HttpExchange
from taskweaver.llm.transport.failures import error_words, failure
from taskweaver.llm.types import Chunk, Form, ModelRequest

_LINGER_S = 2.0
"""How long after the reply its usage may come."""

_CLOSING_S = 0.2
"""How long after the last event the body may end, so that the connection can be kept."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters for requests that do not set them; None leaves one to the endpoint."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: list[str] | None = None
    seed: int | None = None


class OpenAIService:
    """A model at an endpoint; thread-safe, keeps connections and remembers rejected parameters."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        sampling: Sampling | None = None,
        deadlines: Deadlines | None = None,
        response_format: str = "auto",
        form: str = "auto",
    ) -> None:
        self._endpoint = endpoint
        self._sampling = sampling or Sampling()
        self._deadlines = deadlines or Deadlines()
        self._pool = ConnectionPool(endpoint)
        self._parameters = ParameterMemory()
        self._format = FormatMemory(response_format)
        self._forms = FormMemory(form)

    @property
    def form(self) -> Form:
        """The form of replies that is in force."""
        return self._forms.current

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._endpoint.model

    @property
    def endpoint(self) -> Endpoint:
        """Address of the model."""
        return self._endpoint

    def stream(self, request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request; asks again at once without parameters the model rejects.

        Raises:
            ModelError: If the call fails or is cancelled.
        """
        while True:
            form = self._format.current
            body = self._body(request, form)
            try:
                yield from self._ask(body, request)
            except ModelError as error:
                if not self._adapt(error, body, form):
                    raise
            else:
                return

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _body(self, request: ModelRequest, form: ResponseFormat) -> dict[str, Any]:
        usual = self._sampling
        messages = request.messages
        if not self._endpoint.is_loopback:
            messages = without_secrets(messages)
        parameters: dict[str, Any] = {
            "stream_options": {"include_usage": True},
            "temperature": _first(request.temperature, usual.temperature),
            "top_p": _first(request.top_p, usual.top_p),
            "max_tokens": _first(request.max_tokens, usual.max_tokens),
            "stop": list(request.stop) if request.stop is not None else usual.stop,
            "seed": usual.seed,
        }
        if request.tools:
            parameters["tool_choice"] = "none" if request.tool_choice == "none" else None
        elif request.schema is not None:
            parameters["response_format"] = format_option(request.schema, form)
            messages = with_instruction(messages, request.schema, form)
        parameters |= request.extra
        return chat_body(self.model, messages, self._parameters.apply(parameters), request.tools)

    def _adapt(self, error: ModelError, body: dict[str, Any], form: ResponseFormat) -> bool:
        """Learn from a rejection; return whether asking again can help."""
        cause: Any = error.__cause__
        status = getattr(cause, "status_code", None)
        words = error_words(cause.body) or error.detail if status else ""
        if status in (400, 422, 500, 501) and "response_format" in body and is_about_format(words):
            return self._format.step_down(form)
        if "tools" in body and status in (400, 404, 422, 500, 501) and is_about_tools(words):
            self._forms.step_down("tools")
            raise ModelError("form", error.detail, self.model) from error
        if status not in (400, 422):
            return False
        return self._parameters.learn(body, words, str(cause.param or "")) is not None

    def _ask(self, body: dict[str, Any], request: ModelRequest) -> Iterator[Chunk]:
        reader = ReplyReader(self.model)
        request.on_sent(body)
        with HttpExchange(self._pool, body, self._deadlines, request.cancel) as exchange:
            try:
                for pieces in self._pieces(exchange, reader):
                    yield from pieces
            except ModelError as error:
                if reader.finish is None:
                    raise self._in_context(error, reader) from error.__cause__
        yield reader.last()

    def _pieces(self, exchange: HttpExchange, reader: ReplyReader) -> Iterator[list[Chunk]]:
        for block in exchange.blocks():
            seen = reader.events
            yield reader.feed(block)
            if reader.finish is not None:
                exchange.hurry(_CLOSING_S if reader.is_done or reader.usage else _LINGER_S)
            elif reader.is_done:
                return
            elif reader.events > seen:
                exchange.note_progress()
        yield reader.end()

    def _in_context(self, error: ModelError, reader: ReplyReader) -> ModelError:
        if error.kind == "connection" and reader.length:
            detail = f"the connection broke in the middle of the reply: {error.detail}"
            return failure("truncated", detail, self.model, hint="Try again.")
        return error


def _first(wanted: Any, usual: Any) -> Any:
    return usual if wanted is None else wanted
