"""Models behind an endpoint, in whichever dialect the endpoint speaks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from taskweaver.llm.dialects.chat import ChatDialect
from taskweaver.llm.dialects.dialect import (
    Dialect,
    Sampling,
    given,
    with_instruction,
    without_system,
)
from taskweaver.llm.dialects.switch import DialectSwitch
from taskweaver.llm.errors import ModelError
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.images import without_images
from taskweaver.llm.parsing.call_pieces import id_seed
from taskweaver.llm.parsing.reply import ReplyReader, failed_generation
from taskweaver.llm.providers.abilities import FormLadder, ImageSupport, fixed, is_about_tools
from taskweaver.llm.providers.refusals import (
    EFFORT_WITH_TOOLS,
    IMAGE_RULES,
    REFUSING,
    RULES,
    Refusal,
    Rule,
    learn,
    refused_window,
)
from taskweaver.llm.providers.request_form import (
    SYSTEM,
    Attempt,
    bridged,
    effort_of,
    encodable,
    format_of,
    parameters_of,
    past_messages,
    without_secrets,
)
from taskweaver.llm.transport.endpoint import Sent
from taskweaver.llm.transport.exchange import Deadlines, HttpExchange
from taskweaver.llm.transport.failures import error_words, failure
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest
from taskweaver.llm.usage import TokenEstimator
from taskweaver.utils.text import estimate_tokens

_LINGER_S = 2.0
"""How long after the reply its usage may come."""

_MOST_PAUSES = 16
"""How often a server may pause one reply."""

_UNKNOWN_PATH = (404, 405, 501)

_LONG_EFFORTS = ("high", "xhigh", "max")
_PATIENCE = 3
"""How many times as long a reply may take to begin after much reasoning, which may be hidden."""

_CLOSING_S = 0.2
"""How long after the last event the body may end, so that the connection can be kept."""


class EndpointService:
    """A model at an endpoint, with kept connections and facts learnt from refusals. Thread-safe.

    Attributes:
        endpoint: Address of the model.
        forms: Form of the replies.
        images: Whether the model is shown images.
    """

    def __init__(  # noqa: PLR0913 - each part of the dealings with a model is a name of its own
        self,
        facts: EndpointFacts,
        *,
        dialects: DialectSwitch | None = None,
        sampling: Sampling | None = None,
        deadlines: Deadlines | None = None,
        response_format: str = "auto",
        forms: FormLadder | None = None,
        images: str = "auto",
    ) -> None:
        """Connect when the first request is made.

        Args:
            facts: The address of the model and the facts about the model, closed with this.
            dialects: The protocol spoken there; None for chat completions.
            sampling: Parameters for requests that do not set them.
            deadlines: Time limits of a call.
            response_format: The way to request structured replies.
            forms: The form of its replies; None for JSON.
            images: Whether it is shown images: ``yes``, ``no``, or ``auto``.
        """
        self.forms = forms or fixed("json")
        self.endpoint = facts.endpoint
        self._dialects = dialects or DialectSwitch(ChatDialect())
        self._sampling = sampling or Sampling()
        self._deadlines = deadlines or Deadlines()
        self._facts = facts
        self._learnt = facts.learnt
        if response_format != "auto":
            self._learnt.fix(response_format=response_format)
        self.images = ImageSupport(self.model, images, lambda: facts.takes_images, self._learnt)
        self._begins_with_reasoning = False

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.endpoint.model

    def window(self, request: ModelRequest) -> int:
        """Return the tokens of prompt and reply that fit, or 0 if unknown."""
        return self._facts.window(lambda: self._needed(request))

    def _needed(self, request: ModelRequest) -> int:
        """Estimate the tokens of a prompt, with the tools and the longest reply wanted."""
        reply = self._sampling.of(request).max_tokens or 0
        tools = estimate_tokens(str([dict(tool.parameters) for tool in request.tools]))
        prompt = TokenEstimator().estimate(self.model, request.messages, "").prompt_tokens
        return prompt + tools + reply

    def stream(self, request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request; asks again at once without parameters and images the model rejects.

        Raises:
            ModelError: If the call fails or is cancelled; of kind ``form`` if the model takes no
                tools, and a lower form is in force now.
        """
        while True:
            attempt = self._attempt(request)
            try:
                yield from self._ask(attempt)
            except ModelError as error:
                self._note_window(error)
                refused = getattr(error.__cause__, "body", None)
                written = failed_generation(refused) if request.tools else ""
                if written:
                    yield Chunk(written)
                    yield Chunk(finish="stop")
                    return
                if not self._adapt(error, attempt):
                    raise
            else:
                return

    def close(self) -> None:
        """Close the connections."""
        self._facts.close()

    @property
    def dialect(self) -> Dialect:
        """The protocol in force."""
        return self._dialects.current

    def _origin(self, dialect: Dialect) -> str:
        return f"{dialect.name} {self.endpoint.address} {self.model}"

    def _attempt(self, request: ModelRequest) -> Attempt:
        """Return a request as sent, by the facts learnt of the model."""
        dialect, facts = self.dialect, self._learnt.known
        form = format_of(facts)
        past = past_messages(request.messages, facts.history, self._origin(dialect))
        messages: Sequence[ChatMessage] = past
        if facts.are_images_refused:
            messages = without_images(messages)
        if not self.endpoint.is_loopback:
            messages = without_secrets(messages)
        if request.schema is not None and not request.tools:
            messages = with_instruction(messages, request.schema, form)
        if SYSTEM in facts.dropped:
            messages = without_system(messages)
        sampling = self._sampling.of(request)
        is_chat = dialect.name == ChatDialect.name  # the one that refuses an effort beside tools
        has_tools = bool(request.tools) and is_chat
        effort = effort_of(sampling.reasoning_effort, facts, has_tools=has_tools)
        window = self._facts.loaded_window(lambda: self._needed(request)) or None
        sampling = replace(sampling, reasoning_effort=effort, window=window)
        wanted = given(dialect.parameters(request, sampling, form))
        parameters = parameters_of(wanted, facts)
        return Attempt(request, dialect, facts, past, encodable(messages), parameters, effort)

    def _note_window(self, error: ModelError) -> None:
        """Keep the window that a refusal names."""
        if error.kind == "context_overflow":
            window = refused_window(error.detail, getattr(error.__cause__, "body", None))
            if window:
                self._learnt.note(window=window)

    def _adapt(self, error: ModelError, attempt: Attempt) -> bool:
        """Learn from a rejection, and return whether asking again can help.

        Raises:
            ModelError: Of kind ``form``, if the model takes no tools, and a lower form is in force.
        """
        cause: Any = error.__cause__
        status = getattr(cause, "status_code", None)
        words = error_words(cause.body) or error.detail if status else ""
        parameter = str(getattr(cause, "param", None) or "")
        refusal = Refusal(attempt, self._learnt.known, status, words, parameter)
        if self._learns(IMAGE_RULES, refusal) or self._leaves_dialect(refusal):
            return True
        if self._learns(RULES, refusal):
            return True
        is_about_form = attempt.request.tools and status in REFUSING and is_about_tools(words)
        if is_about_form and self.forms.step_down("tools"):
            raise failure("form", error.detail, self.model, hint="") from cause
        return False

    def _learns(self, rules: Collection[Rule], refusal: Refusal) -> bool:
        """Remember a rejection by the first rule that matches, and return whether a rule does."""
        learnt = learn(rules, refusal)
        if learnt is None:
            return False
        rule, changes = learnt
        remember = self._learnt.note if rule.is_kept else self._learnt.fix
        remember(**changes)
        if changes.get("response_format") == "text":
            self.forms.step_down("json")  # this request goes on with the schema in words
        return True

    def _leaves_dialect(self, refusal: Refusal) -> bool:
        """Change to another dialect, if a rejection asks for that and there is one."""
        asked, status, words = refusal.attempt.dialect, refusal.status, refusal.words
        if status in _UNKNOWN_PATH and "model" not in words.lower():
            return self._dialects.refuse_path(asked)
        is_about_reasoning = status == 400 and EFFORT_WITH_TOOLS.search(words) is not None
        return is_about_reasoning and self._dialects.refuse_reasoning(asked)

    def _ask(self, attempt: Attempt) -> Iterator[Chunk]:
        is_thinking = self._begins_with_reasoning
        reader = ReplyReader(
            self.model,
            attempt.dialect.events(),
            id_seed(attempt.request.messages),
            origin=self._origin(attempt.dialect),
            is_thinking=is_thinking,
        )
        yield from self._exchange(attempt, reader)
        for _ in range(_MOST_PAUSES):
            if not reader.paused:
                break
            record = {"items": reader.paused}
            so_far: ChatMessage = {"role": "assistant", "content": None, "record": record}
            reader.resume()
            longer = replace(attempt, messages=[*attempt.messages, so_far])
            yield from self._exchange(longer, reader)
        last = reader.last()
        if last.calls:
            self.forms.note_call()
        yield last
        self._begins_with_reasoning = reader.lacks_opening

    def _exchange(self, attempt: Attempt, reader: ReplyReader) -> Iterator[Chunk]:
        request = attempt.request
        written = attempt.dialect.body(self.model, attempt.messages, attempt.parameters)
        body = bridged(written) if attempt.facts.history.has_bridges else written
        request.on_sent(body)
        headers = attempt.dialect.headers(self.endpoint.api_key)
        sent = Sent(attempt.dialect.path, body, headers)
        deadlines = self._deadlines
        if attempt.effort in _LONG_EFFORTS:
            deadlines = replace(deadlines, first_token_s=_PATIENCE * deadlines.first_token_s)
        with HttpExchange(self._facts.pool, sent, deadlines, request.cancel) as exchange:
            try:
                yield from self._chunks(exchange, reader)
            except ModelError as error:
                if reader.finish is not None:
                    return
                if error.kind != "connection" or not reader.length:
                    raise
                detail = f"the connection broke in the middle of the reply: {error.detail}"
                hint, cause = "Try again.", error.__cause__
                raise failure("truncated", detail, self.model, hint=hint) from cause

    def _chunks(self, exchange: HttpExchange, reader: ReplyReader) -> Iterator[Chunk]:
        for block in exchange.blocks():
            seen = reader.events
            yield from reader.feed(block)
            if reader.finish is not None:  # all that matters has come
                left_s = _CLOSING_S if reader.is_done or reader.usage else _LINGER_S
                exchange.allow(left_s, "the reply did not end")
            elif reader.is_done:
                return
            elif not reader.has_begun:
                exchange.allow(exchange.deadlines.first_token_s, "no reply began")
            elif reader.events > seen:
                exchange.allow(exchange.deadlines.gap_s, "the reply paused")
            elif _is_comment(block):
                exchange.extend()
        yield from reader.end()


def _is_comment(block: bytes) -> bool:
    """Return whether a block of an event stream holds comments alone, as servers at work send."""
    lines = [line for line in block.splitlines() if line.strip()]
    return bool(lines) and all(line.startswith(b":") for line in lines)
