"""The one way roles talk to models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, Literal

from taskweaver.llm.base import CompletionService, EmbeddingService
from taskweaver.llm.calls import ObservedCall
from taskweaver.llm.errors import ModelError
from taskweaver.llm.prompts import CallLog
from taskweaver.llm.services import Model, ModelServices
from taskweaver.llm.transport.retry import Backoff, StatusListener, stream_with_retries
from taskweaver.llm.types import (
    ChatMessage,
    Chunk,
    Form,
    ModelRequest,
    ModelTool,
    Usage,
    format_chat_message,
)
from taskweaver.llm.usage import UsageLedger
from taskweaver.logging.spans import model_call
from taskweaver.utils.system.cancel import CancelToken

_FITTINGS = 4
"""Most tries of a call whose prompt does not fit the model's window."""

_NOT_SENT = frozenset({"stream", "use_smoother", "use_backup_engine"})


class LLMApi:
    """A session's access to the models: adds up the consumption of its calls, and can cancel them.

    Attributes:
        prompts: The newest prompts and replies.
    """

    def __init__(self, services: ModelServices) -> None:
        self.prompts = CallLog()
        self._services = services
        self._ledger = UsageLedger()
        self._lock = threading.Lock()
        self._in_flight: set[CancelToken] = set()
        self._is_interrupted = False
        self._is_closed = False

    @property
    def usage(self) -> Usage:
        """Consumption of the calls made here so far."""
        return self._ledger.total

    @property
    def completion_service(self) -> CompletionService:
        """The main model.

        Raises:
            ModelError: Of kind ``configuration``, if it cannot be reached as configured.
        """
        return self._services.get()

    @property
    def embedding_service(self) -> EmbeddingService | None:
        """The embedding model; None when none is configured.

        Raises:
            ModelError: Of kind ``configuration``, if it cannot be reached as configured.
        """
        return self._services.embedding()

    @property
    def ext_llms(self) -> dict[str, CompletionService]:
        """The further models, by their aliases in ``ext_llms.llm_configs``.

        Raises:
            ModelError: Of kind ``configuration``, if one cannot be reached as configured.
        """
        return {alias: self._services.get(alias) for alias in self._services.aliases}

    @property
    def is_interrupted(self) -> bool:
        """Whether calls are refused, until `resume` or for good."""
        return self._is_interrupted or self._is_closed

    def takes_corrections(self, llm_alias: str = "") -> bool:
        """Return whether a model can correct an answer; the built-in offline analyst cannot.

        Raises:
            ModelError: Of kind ``configuration``, if the alias names no model.
        """
        service = self._services.model(llm_alias).service
        return bool(getattr(service, "takes_corrections", True))

    def interrupt(self) -> None:
        """Cancel every call in flight, and refuse further ones until `resume`.

        Their callers get a `ModelError` of kind ``cancelled``. A caller between two calls is
        stopped at its next call.
        """
        with self._lock:
            self._is_interrupted = True
            tokens = list(self._in_flight)
        for token in tokens:
            token.cancel()

    def resume(self) -> None:
        """Take calls again after `interrupt`; not after `close`."""
        self._is_interrupted = False

    def close(self) -> None:
        """Give up every call in flight, and refuse further ones for good."""
        self._is_closed = True
        self.interrupt()

    def check(self) -> None:
        """Raise the error of a refused call, if calls are refused now.

        Raises:
            ModelError: Of kind ``cancelled``, if calls are refused.
        """
        if self.is_interrupted:
            raise ModelError("cancelled", "the call was given up.")

    def chat_completion(  # noqa: PLR0913 - each sampling option is a name of its own
        self,
        messages: Sequence[ChatMessage],
        *,
        llm_alias: str | None = None,
        json_schema: Mapping[str, Any] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
        stop: Sequence[str] | None = None,
        **extra: Any,
    ) -> ChatMessage:
        """Ask a model; return its whole reply.

        Args and errors are those of `chat_completion_stream`.
        """
        pieces = self.chat_completion_stream(
            messages,
            llm_alias=llm_alias,
            json_schema=json_schema,
            temperature=temperature,
            max_tokens=max_tokens,
            top_p=top_p,
            stop=stop,
            **extra,
        )
        return format_chat_message("assistant", "".join(str(piece["content"]) for piece in pieces))

    def chat_completion_stream(  # noqa: PLR0913 - as chat_completion
        self,
        messages: Sequence[ChatMessage],
        *,
        llm_alias: str | None = None,
        json_schema: Mapping[str, Any] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
        stop: Sequence[str] | None = None,
        on_status: StatusListener | None = None,
        **extra: Any,
    ) -> Iterator[ChatMessage]:
        """Ask a model; yield its reply piece by piece. Closing the generator cancels the call.

        Args:
            messages: The chat so far.
            llm_alias: Which model; empty or None is the main one.
            json_schema: Schema of a structured reply. One that is cut off at the length limit
                is passed on as it is, since its form shows that.
            temperature: Sampling temperature; None leaves it to the configuration.
            max_tokens: Longest reply in tokens; None leaves it to the configuration.
            top_p: Nucleus sampling; None leaves it to the configuration.
            stop: Texts that end the reply; None leaves it to the configuration.
            on_status: Receives a short text when the call waits before a retry.
            extra: Options of the endpoint, passed through; options of older callers about
                reading a reply (`stream`, `use_smoother`) are dropped.

        Yields:
            Assistant messages whose contents are the new text.

        Raises:
            ModelError: If the call fails or is cancelled, or free text is empty, filtered or
                cut off.
        """
        request = ModelRequest(
            messages,
            json_schema,
            temperature,
            max_tokens,
            top_p,
            [stop] if isinstance(stop, str) else stop,
            {name: value for name, value in extra.items() if name not in _NOT_SENT},
        )
        with closing(self._asked(request, llm_alias or "", on_status)) as pieces:
            for piece in pieces:
                if piece.text:
                    yield {"role": "assistant", "content": piece.text}

    def form(self, llm_alias: str = "") -> Form:
        """Return the form of replies that is in force for a model.

        Raises:
            ModelError: Of kind ``configuration``, if the alias names no model.
        """
        service = self._services.model(llm_alias).service
        form: Form = getattr(service, "form", "json")
        return form

    def stream_chunks(
        self,
        messages: Sequence[ChatMessage],
        *,
        llm_alias: str = "",
        tools: Sequence[ModelTool] = (),
        tool_choice: Literal["auto", "none"] = "auto",
        json_schema: Mapping[str, Any] | None = None,
        on_status: StatusListener | None = None,
    ) -> Iterator[Chunk]:
        """Ask a model for a reply in a form; yield its pieces. Closing cancels the call.

        A reply that is cut off at the length limit, or empty, is passed on as it is.

        Args:
            messages: The chat so far.
            llm_alias: Which model; empty is the main one.
            tools: Actions it may call.
            tool_choice: ``none`` asks for an answer in words all the same.
            json_schema: Schema of a structured reply, where there are no tools.
            on_status: Receives a short text when the call waits before a retry.

        Raises:
            ModelError: If the call fails or is cancelled; of kind ``form`` if the endpoint refuses
                the form, after which `form` returns another one.
        """
        request = ModelRequest(
            messages, None if tools else json_schema, tools=tools, tool_choice=tool_choice
        )
        yield from self._asked(request, llm_alias, on_status)

    def _asked(
        self, request: ModelRequest, llm_alias: str, on_status: StatusListener | None
    ) -> Generator[Chunk]:
        """Yield the pieces of a reply to a prompt that fits the model's window."""
        model, windows = self._services.model(llm_alias), self._services.windows
        with self._call() as token:
            for tries_left in reversed(range(_FITTINGS)):
                given = replace(request, cancel=token)
                fitting = windows.fitting(model.service.model, given, model.window)
                refusal = yield from self._unless_too_long(model, fitting, on_status)
                if refusal is None:
                    return
                if not tries_left:
                    raise refusal
                windows.learn(model.service.model, fitting, refusal)
                if on_status is not None:
                    on_status("the conversation is shortened to fit the model's window")

    def _unless_too_long(
        self, model: Model, request: ModelRequest, on_status: StatusListener | None
    ) -> Generator[Chunk, None, ModelError | None]:
        """Yield the pieces of a reply; return the error of a prompt that is too long."""
        is_begun = False
        try:
            with closing(self._stream(model, request, on_status)) as pieces:
                for piece in pieces:
                    is_begun = True
                    yield piece
        except ModelError as error:
            if error.kind != "context_overflow" or is_begun:
                raise
            return error
        return None

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        """Return a model's reply to `text` under `instructions`.

        Raises:
            ModelError: If the call fails.
        """
        messages = [
            format_chat_message("system", instructions),
            format_chat_message("user", text),
        ]
        return str(self.chat_completion(messages, llm_alias=llm_alias)["content"])

    def get_embedding(self, text: str) -> list[float]:
        """Return the vector of a text.

        Raises:
            ModelError: If the call fails, or no embedding model is configured.
        """
        return self.get_embedding_list([text])[0]

    def get_embedding_list(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order.

        Raises:
            ModelError: If the call fails, or no embedding model is configured.
        """
        service = self._services.embedding()
        if service is None:
            hint = "Set llm.embedding_api_type and llm.embedding_model."
            raise ModelError("configuration", "no embedding model is configured.", hint=hint)
        with self._call() as token:
            backoff = Backoff(self._services.model().retry, token)
            origin = self._services.embedding_origin.attributes()
            operation = model_call("embeddings", service.model, origin)
            with self._services.tracing.running(operation):
                while True:
                    try:
                        return service.get_embeddings(texts)
                    except ModelError as error:
                        backoff.wait(error)

    @contextmanager
    def _call(self) -> Iterator[CancelToken]:
        token = CancelToken()
        with self._lock:
            self.check()
            self._in_flight.add(token)
        try:
            with self._services.meter.call(token):
                yield token
        finally:
            with self._lock:
                self._in_flight.discard(token)

    def _stream(
        self, model: Model, request: ModelRequest, on_status: Callable[[str], None] | None
    ) -> Generator[Chunk]:
        texts: list[str] = []
        last: Chunk | None = None
        usage: Usage | None = None
        call = ObservedCall(self._services.tracing, self.prompts, model, request)
        chunks = stream_with_retries(model.service, call.request, model.retry, on_status)
        try:
            try:
                for chunk in chunks:
                    last = chunk
                    call.take(chunk)
                    texts.append(chunk.text or (chunk.call.text if chunk.call else ""))
                    yield chunk
            finally:
                if last is not None:
                    usage = self._account(model, request, texts, last.usage)
            self._check(model, request, texts, last)
        except GeneratorExit:  # its caller has read as much as it needs
            call.end(usage)
            raise
        except BaseException as error:
            call.fail(usage, error)
            raise
        call.end(usage)

    def _account(
        self, model: Model, request: ModelRequest, texts: Sequence[str], reported: Usage | None
    ) -> Usage:
        estimator, name = self._services.estimator, model.service.model
        if reported is not None:
            estimator.learn(name, request.messages, reported)
        usage = reported or estimator.estimate(name, request.messages, "".join(texts))
        usage = model.prices.apply(usage)
        self._ledger.add(usage)
        self._services.meter.add(usage)
        return usage

    def _check(
        self, model: Model, request: ModelRequest, texts: Sequence[str], last: Chunk | None
    ) -> None:
        """Refuse a reply that is not whole and does not show it."""
        name = model.service.model
        finish = last.finish if last is not None else None
        if finish is None:
            raise ModelError("truncated", "the reply ended before it was complete.", name)
        if finish == "content_filter":
            detail = "the reply was withheld by the service's filter."
            raise ModelError("content_filter", detail, name, "Rephrase the request.")
        if request.schema is not None or request.tools:
            return
        if finish == "length":
            detail = "the reply was cut off at the length limit."
            raise ModelError("truncated", detail, name, "Raise llm.max_tokens.")
        if not "".join(texts).strip():
            raise ModelError("malformed", "the reply is empty.", name, "Try again.")
