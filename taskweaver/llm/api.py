"""The one way roles talk to models."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal
from uuid import uuid4

from taskweaver.llm.base import CompletionService, EmbeddingService
from taskweaver.llm.calls import CallsInFlight, FreeText, ObservedCall, embedded
from taskweaver.llm.errors import ModelError
from taskweaver.llm.fitting import Shortener
from taskweaver.llm.images import without_images
from taskweaver.llm.prompts import CallLog
from taskweaver.llm.services import Model, ModelServices
from taskweaver.llm.transport.retry import StatusListener, stream_with_retries
from taskweaver.llm.types import (
    ChatMessage,
    Chunk,
    Effort,
    Form,
    ModelRequest,
    ModelTool,
    Usage,
    format_chat_message,
)
from taskweaver.llm.usage import UsageLedger
from taskweaver.utils.system.cancel import CancelToken

_NOT_SENT = frozenset({"stream", "use_smoother", "use_backup_engine"})
_IGNORED_TOOLS = 2
"""Replies of a session without the calls they should hold, after which the form is lowered."""


class LLMApi:
    """A session's access to the models: adds up the consumption of its calls, and can cancel them.

    Attributes:
        prompts: The newest prompts and replies.
        round_id: The round that calls belong to; empty for the newest of the session.
        cache_key: Key of the session for the caches of endpoints.
        ledger: Consumption of the calls made here, those of branches included.
        in_flight: Calls that are under way.
    """

    def __init__(self, services: ModelServices, session: LLMApi | None = None) -> None:
        self._services = services
        self._session = session
        self.prompts: CallLog = session.prompts if session else CallLog()
        self.round_id = ""
        self.cache_key: str = session.cache_key if session else uuid4().hex
        self.ledger: UsageLedger = UsageLedger(session.ledger if session else None)
        self.in_flight: CallsInFlight = CallsInFlight(session.in_flight if session else None)
        self._lock = threading.Lock()
        self._ignored: Counter[str] = Counter()

    def for_branch(self) -> LLMApi:
        """Return access for a branch, whose calls and consumption count here as well."""
        return LLMApi(self._services, self)

    @property
    def usage(self) -> Usage:
        """Consumption of the calls made here so far."""
        return self.ledger.total

    @property
    def completion_service(self) -> CompletionService:
        """The main model.

        Raises:
            ModelError: Of kind ``configuration``, if it cannot be reached as configured.
        """
        return self._services.get()

    @property
    def embedding_service(self) -> EmbeddingService | None:
        """The embedding model, or None if not configured.

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
        return self.in_flight.is_refused

    def takes_corrections(self, llm_alias: str = "") -> bool:
        """Return whether a model can correct an answer, as the built-in offline analyst cannot.

        Raises:
            ModelError: Of kind ``configuration``, if the alias names no model.
        """
        service = self._services.model(llm_alias).service
        return bool(getattr(service, "takes_corrections", True))

    def interrupt(self) -> None:
        """Cancel every call in flight, and refuse further calls until `resume`.

        Their callers get a `ModelError` of kind ``cancelled``, one between two calls at its next.
        """
        self.in_flight.interrupt()

    def resume(self) -> None:
        """Take calls again after `interrupt`, but not after `close`."""
        self.in_flight.resume()

    def close(self) -> None:
        """Give up every call in flight, and refuse further calls for good."""
        self.in_flight.close()

    def check(self) -> None:
        """Raise the error of a refused call, if calls are refused now.

        Raises:
            ModelError: Of kind ``cancelled``, if calls are refused.
        """
        self.in_flight.check()

    def chat_completion(
        self,
        messages: Sequence[ChatMessage],
        *,
        json_schema: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ChatMessage:
        """Ask a model, and return the whole reply.

        Args and errors are those of `chat_completion_stream`.
        """
        texts: list[str] = []
        check = FreeText(json_schema)
        with closing(self.stream_chunks(messages, json_schema=json_schema, **options)) as chunks:
            for chunk in chunks:
                if chunk.begins_again:
                    texts.clear()
                texts.append(chunk.text)
                check.take(chunk)
        return format_chat_message("assistant", "".join(texts))

    def chat_completion_stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        json_schema: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Iterator[ChatMessage]:
        """Ask a model, and yield the reply piece by piece. Closing the generator cancels the call.

        Args:
            messages: The chat so far.
            json_schema: Schema of a structured reply. One that is cut off at the length limit
                is passed on as it is, since its form shows that.
            options: Further arguments of `stream_chunks`.

        Yields:
            Assistant messages whose contents are the new text.

        Raises:
            ModelError: If the call fails or is cancelled, or free text is empty, filtered or
                cut off.
        """
        check = FreeText(json_schema)
        with closing(self.stream_chunks(messages, json_schema=json_schema, **options)) as chunks:
            for chunk in chunks:
                if chunk.text:
                    yield {"role": "assistant", "content": chunk.text}
                check.take(chunk)

    def form(self, llm_alias: str = "") -> Form:
        """Return the form of replies that is in force for a model.

        Raises:
            ModelError: Of kind ``configuration``, if the alias names no model.
        """
        return self._services.model(llm_alias).forms.current

    def takes(self, kind: Literal["tools", "images"], llm_alias: str = "") -> bool:
        """Return whether a model is known to receive the tools or images of requests."""
        model = self._services.model(llm_alias)
        return model.forms.takes_tools if kind == "tools" else model.images.are_taken

    def note_ignored_tools(self, llm_alias: str = "") -> None:
        """Note that a reply lacked the calls of tools.

        The second such reply lowers the form to fences.

        Args:
            llm_alias: Which model; empty is the main one.
        """
        if self._session is not None:
            self._session.note_ignored_tools(llm_alias)
            return
        with self._lock:
            self._ignored[llm_alias] += 1
        if self._ignored[llm_alias] >= _IGNORED_TOOLS:
            self._services.model(llm_alias).forms.step_down("json")  # fences are kept best

    def stream_chunks(  # noqa: PLR0913 - each sampling option is a name of its own
        self,
        messages: Sequence[ChatMessage],
        *,
        llm_alias: str | None = None,
        tools: Sequence[ModelTool] = (),
        tool_choice: Literal["auto", "none"] = "auto",
        json_schema: Mapping[str, Any] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
        stop: Sequence[str] | None = None,
        reasoning_effort: Effort | None = None,
        on_status: StatusListener | None = None,
        shortener: Shortener | None = None,
        **extra: Any,
    ) -> Generator[Chunk]:
        """Ask a model, and return the reply with reasoning and tool calls, piece by piece.

        The last chunk has a `finish` and the whole calls; with the finish ``length`` the reply is
        cut off, calls included, and that is no error here.

        Args:
            messages: The chat so far.
            llm_alias: Which model; empty or None is the main one.
            tools: Actions that the model may call; with tools, `json_schema` is not sent.
            tool_choice: ``none`` for a reply without calls.
            json_schema: Schema of a structured reply.
            temperature: Sampling temperature; None leaves it to the configuration.
            max_tokens: Longest reply in tokens; None leaves it to the configuration.
            top_p: Nucleus sampling; None leaves it to the configuration.
            stop: Texts that end the reply; None leaves it to the configuration.
            reasoning_effort: Effort of the reasoning; None leaves it to the configuration.
            on_status: Receives a short text when the call waits before a retry.
            shortener: Writes the prompt anew when it is too long; None cuts it only.
            extra: Options of the endpoint, passed through; options of older callers about
                reading a reply (`stream`, `use_smoother`) are dropped.

        Raises:
            ModelError: If the call fails or is cancelled, or the reply is filtered; of kind
                ``form`` if the model takes no tools: a lower form is in force then, and the
                caller composes its prompt again.
        """
        model = self._services.model(llm_alias or "")
        request = ModelRequest(
            without_images(messages) if model.images.are_refused else messages,
            None if tools else json_schema,
            temperature,
            max_tokens,
            top_p,
            [stop] if isinstance(stop, str) else stop,
            {name: value for name, value in extra.items() if name not in _NOT_SENT},
            tools=tools,
            tool_choice=tool_choice,
            reasoning_effort=reasoning_effort,
            cache_key=self.cache_key,
        )
        ask = partial(self._stream, model, on_status)
        window = self._services.window(model.service.model)
        return window.stream(request, model.window_for(request), ask, on_status, shortener)

    def window(self, llm_alias: str = "") -> int:
        """Return the tokens that a model takes, or 0 if unknown so far.

        Raises:
            ModelError: Of kind ``configuration``, if the alias names no model.
        """
        model = self._services.model(llm_alias)
        return self._services.window(model.service.model).known or model.window

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        """Return a model's reply to `text` under `instructions`.

        Raises:
            ModelError: If the call fails.
        """
        messages = [format_chat_message("system", instructions), format_chat_message("user", text)]
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
            return embedded(self._services, service, texts, token)

    @contextmanager
    def _call(self) -> Iterator[CancelToken]:
        with self.in_flight.call() as token, self._services.meter.call(token):
            yield token

    def _stream(
        self, model: Model, on_status: StatusListener | None, request: ModelRequest
    ) -> Generator[Chunk]:
        usage: Usage | None = None
        failure: BaseException | None = None
        with self._call() as token:  # a summary between two tries is a call of its own
            sent = replace(request, cancel=token)
            call = ObservedCall(self._services.tracing, self.prompts, model, sent, self.round_id)
            try:
                for chunk in stream_with_retries(
                    model.service, call.request, model.retry, on_status
                ):
                    call.take(chunk)
                    if chunk.finish is not None:
                        call.check()
                    yield chunk
                call.check()
            except GeneratorExit:  # its caller has read as much as it needs
                raise
            except BaseException as error:
                failure = error
                raise
            finally:
                if call.last is not None:
                    usage = call.usage(self._services.estimator)
                    self.ledger.add(usage)
                call.close(usage, failure)
                if usage is not None:
                    self._services.meter.add(usage)
