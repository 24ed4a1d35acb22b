"""One model call as observed: the span, the metrics, the prompt log, and the reply."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from taskweaver.llm.base import EmbeddingService
from taskweaver.llm.dialects.dialect import given
from taskweaver.llm.errors import ModelError
from taskweaver.llm.prompts import CallLog
from taskweaver.llm.records import restored
from taskweaver.llm.services import Model, ModelServices
from taskweaver.llm.transport.retry import Backoff
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest, ToolCall, Usage, function_of
from taskweaver.llm.usage import TokenEstimator
from taskweaver.logging.spans import (
    FIRST_CHUNK,
    INPUT,
    OUTPUT,
    RESPONSE_MODEL,
    TOKEN_TYPE,
    TOKENS,
    Operation,
    model_call,
)
from taskweaver.logging.tracing import Tracing, current_agent, error_type
from taskweaver.utils.system.cancel import CancelToken

_BACKGROUND = "summary"


class CallsInFlight:
    """The calls under way of one session, or of one branch. Thread-safe."""

    def __init__(self, session: CallsInFlight | None = None) -> None:
        """Begin without a call. The calls of a branch are calls of the `session` as well."""
        self._session = session
        self._lock = threading.Lock()
        self._tokens: set[CancelToken] = set()
        self._is_interrupted = False
        self._is_closed = False

    @property
    def is_refused(self) -> bool:
        """Whether calls are refused, until `resume` or for good."""
        is_refused = self._session is not None and self._session.is_refused
        return self._is_interrupted or self._is_closed or is_refused

    def interrupt(self) -> None:
        """Cancel every call, and refuse further calls until `resume`."""
        with self._lock:
            self._is_interrupted = True
            tokens = list(self._tokens)
        for token in tokens:
            token.cancel()

    def resume(self) -> None:
        """Take calls again after `interrupt`, but not after `close`."""
        self._is_interrupted = False

    def close(self) -> None:
        """Cancel every call, and refuse further calls for good."""
        self._is_closed = True
        self.interrupt()

    def check(self) -> None:
        """Raise the error of a refused call, if calls are refused now.

        Raises:
            ModelError: Of kind ``cancelled``, if calls are refused.
        """
        if self.is_refused:
            raise ModelError("cancelled", "the call was given up.")

    @contextmanager
    def call(self) -> Iterator[CancelToken]:
        """Surround a call, and yield the token that cancels the call.

        Raises:
            ModelError: Of kind ``cancelled``, if calls are refused.
        """
        with nullcontext(CancelToken()) if self._session is None else self._session.call() as token:
            with self._lock:
                self.check()
                self._tokens.add(token)
            try:
                yield token
            finally:
                with self._lock:
                    self._tokens.discard(token)


class ObservedCall:
    """A call under way, and the reply. Every call is closed once.

    Attributes:
        request: The request as it is to be made.
        last: The newest piece of the reply; None before the first.
    """

    def __init__(
        self,
        tracing: Tracing,
        prompts: CallLog,
        model: Model,
        request: ModelRequest,
        round_id: str = "",
    ) -> None:
        """Begin the call's span.

        Args:
            tracing: Records the span.
            prompts: Keeps the prompt and the reply.
            model: The model that is asked.
            request: The request; its `on_sent` is observed too.
            round_id: The round it belongs to; empty for the newest of the session.
        """
        self._prompts = prompts
        self._round_id = round_id or prompts.round_id
        self._model = model
        self._role = current_agent() or _BACKGROUND
        self._began_at = datetime.now(UTC)
        self._began = time.perf_counter()
        self._sent: Mapping[str, Any] | None = None
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._written: list[str] = []
        self._calls: tuple[ToolCall, ...] = ()
        self._finish = ""
        self._span = tracing.begin(chat(model, request))
        self.request = replace(request, on_sent=self._note_sent)
        self.last: Chunk | None = None

    def _note_sent(self, body: Mapping[str, Any]) -> None:
        self._sent = body  # that of the last try

    def take(self, chunk: Chunk) -> None:
        """Take a piece of the reply."""
        self.last = chunk
        written = f"{chunk.text}{chunk.reasoning}{chunk.call.text if chunk.call else ''}"
        if written or chunk.call:
            if not self._written:
                waited_s = time.perf_counter() - self._began
                self._span.set("gen_ai.response.time_to_first_chunk", waited_s)
                self._span.measure(FIRST_CHUNK, waited_s, {})
            self._written.append(written)
        if chunk.begins_again:
            self._texts.clear()
        self._texts.append(chunk.text)
        self._reasoning.append(chunk.reasoning)
        if chunk.finish is not None:
            self._calls = chunk.calls
            self._finish = chunk.finish
            self._span.set("gen_ai.response.finish_reasons", [chunk.finish])
        if chunk.model:
            self._span.set(RESPONSE_MODEL, chunk.model)

    def usage(self, estimator: TokenEstimator) -> Usage:
        """Return the consumption with its cost: reported, or an estimate marked as one."""
        name, messages = self._model.service.model, self.request.messages
        reported = self.last.usage if self.last is not None else None
        if reported is not None:
            estimator.learn(name, messages, reported)
        usage = reported or estimator.estimate(name, messages, "".join(self._written))
        return self._model.prices.apply(usage)

    def check(self) -> None:
        """Refuse a reply that is cut off without a sign of that.

        Raises:
            ModelError: If it is refused.
        """
        name = self._model.service.model
        if not self._finish:
            raise ModelError("truncated", "the reply ended before it was complete.", name)
        if self._finish == "content_filter":
            detail = "the reply was withheld by the service's filter."
            raise ModelError("content_filter", detail, name, "Rephrase the request.")

    def close(self, usage: Usage | None, error: BaseException | None = None) -> None:
        """End the call. `error` is the failure, None where the call succeeded or was given up."""
        if error is not None:
            self._span.fail(error_type(error), str(error))
        reply = "".join(self._texts)
        if usage is not None:
            self._count(usage)
        messages = restored(self.request.messages, "")  # records are for providers alone
        self._span.content(
            INPUT, lambda: json.dumps([_spoken(item) for item in messages], ensure_ascii=False)
        )
        self._span.content(OUTPUT, lambda: json.dumps(self._output(reply), ensure_ascii=False))
        self._span.end()
        self._prompts.add(
            round_id=self._round_id,
            role=self._role,
            model=self._model.service.model,
            messages=messages,
            sent=self._sent,
            reply=reply,
            finish=self._finish,
            error="" if error is None else str(error) or type(error).__name__,
            usage=usage,
            calls=self._calls,
            reasoning="".join(self._reasoning),
            began_at=self._began_at,
            duration_s=time.perf_counter() - self._began,
        )

    def _count(self, usage: Usage) -> None:
        span = self._span
        span.set("gen_ai.usage.input_tokens", usage.prompt_tokens)
        span.set("gen_ai.usage.output_tokens", usage.completion_tokens)
        if usage.cached_tokens:
            span.set("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens)
        if usage.reasoning_tokens:
            span.set("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens)
        if usage.is_estimated:
            span.set("taskweaver.usage.estimated", True)
            return
        span.measure(TOKENS, usage.prompt_tokens, {TOKEN_TYPE: "input"})
        span.measure(TOKENS, usage.completion_tokens, {TOKEN_TYPE: "output"})

    def _output(self, reply: str) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = [{"type": "text", "content": reply}]
        parts += [_call(call.to_dict()) for call in self._calls]
        return [{"role": "assistant", "parts": parts, "finish_reason": self._finish}]


def embedded(
    services: ModelServices, service: EmbeddingService, texts: Sequence[str], cancel: CancelToken
) -> list[list[float]]:
    """Return the vectors of texts. Failed calls are made again.

    Raises:
        ModelError: If they fail for good, or are cancelled.
    """
    backoff = Backoff(services.model().retry, cancel)
    operation = model_call("embeddings", service.model, services.embedding_origin.attributes())
    with services.tracing.running(operation):
        while True:
            try:
                return service.get_embeddings(texts)
            except ModelError as error:
                backoff.wait(error)


class FreeText:
    """Check of a reply without a schema, which must be whole, and not empty."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        """Check nothing where there is a schema: the form of the reply shows what is missing."""
        self._is_checked = schema is None
        self._is_empty = True

    def take(self, chunk: Chunk) -> None:
        """Take a piece.

        Raises:
            ModelError: Of kind ``truncated`` or ``malformed``, if the reply ends cut off or empty.
        """
        self._is_empty = not chunk.text.strip() and (self._is_empty or chunk.begins_again)
        if not self._is_checked or chunk.finish is None:
            return
        if chunk.finish == "length":
            detail = "the reply was cut off at the length limit."
            raise ModelError("truncated", detail, chunk.model, "Raise llm.max_tokens.")
        if self._is_empty and not chunk.calls:
            raise ModelError("malformed", "the reply is empty.", chunk.model, "Try again.")


def chat(model: Model, request: ModelRequest) -> Operation:
    """Return the operation of a chat request."""
    values = {
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.top_p": request.top_p,
        "gen_ai.request.stop_sequences": list(request.stop or ()) or None,
        "gen_ai.request.stream": True,
        "gen_ai.output.type": "text" if request.schema is None else "json",
    }
    return model_call("chat", model.service.model, {**model.origin.attributes(), **given(values)})


def _spoken(message: ChatMessage) -> dict[str, Any]:
    """Return a message as spans hold messages. An image is only named as one."""
    content = message["content"] or ""
    given = [{"text": content}] if isinstance(content, str) else content
    parts: list[dict[str, Any]] = [
        {"type": "text", "content": part["text"]} if "text" in part else {"type": "uri", "uri": ""}
        for part in given
    ]
    if message["role"] == "tool":
        call_id = message.get("tool_call_id", "")
        parts = [{"type": "tool_call_response", "id": call_id, "response": parts}]
    parts += [_call(call) for call in message.get("tool_calls", ())]
    return {"role": message["role"], "parts": parts}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    name, arguments = function_of(call)
    return {"type": "tool_call", "id": call.get("id", ""), "name": name, "arguments": arguments}
