"""Prompts that fit a model's window: long outcomes are cut first, then the oldest messages go."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from taskweaver.llm.errors import ModelError
from taskweaver.llm.images import has_images, without_images
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest
from taskweaver.llm.usage import TokenEstimator
from taskweaver.utils.text import shorten

_MARGIN = 0.85
"""Share of a window that a prompt may fill: counts are estimates, and the reply needs room."""

_NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d{4,8})(?![\w,]*\d)")
_SMALLEST_WINDOW = 512
_NAMED_SHARE = 0.95
_SHORT_CHARS = 400
_MOST_TRIES = 4
_UNKNOWN_SHARE = 0.6
_LEFT_OUT = "(Earlier messages are left out here: they do not fit into the model's window.)"

_NOTED_SHARE = 0.7
"""Share of the estimate below which the prompt tokens of a server mean a cut prompt."""

_NOTED_TOKENS = 1_000
"""Shorter prompts are not compared: their estimates are too rough. No server loads a smaller
window; one that reports less counts in a way of its own."""

_LEAST_GROWTH = 0.5
"""Tokens that a server reads at least, for one more that is counted in a longer prompt."""

_CUT_SHARE = 0.5
"""Share of the longest prompt that was read of which a cut prompt holds more."""

Count = Callable[[Sequence[ChatMessage]], int]
"""Estimates the tokens of messages."""


class Shortener(NamedTuple):
    """The writer of a prompt, which can say the same in fewer words.

    Attributes:
        shorter: Returns the prompt with more of the past summarised; None once all of the past is.
        warn: Shows the user a sentence.
    """

    shorter: Callable[[], Sequence[ChatMessage] | None]
    warn: Callable[[str], None]


class ModelWindow:
    """The window of one model: configured, or learnt from the refusal of a longer prompt."""

    def __init__(self, estimator: TokenEstimator, model: str) -> None:
        """Count tokens of the model's prompts with `estimator`."""
        self._estimator = estimator
        self._model = model
        self._configured = self._learnt = 0
        self._whole: tuple[int, int] | None = None
        self._is_warned = False

    @property
    def known(self) -> int:
        """Tokens that the model takes, as far as prompts to the model showed, or 0 if unknown."""
        return self._learnt or self._configured

    def stream(
        self,
        request: ModelRequest,
        configured: int,
        ask: Callable[[ModelRequest], Generator[Chunk]],
        on_status: Callable[[str], None] | None,
        shortener: Shortener | None = None,
    ) -> Generator[Chunk]:
        """Yield the reply to a prompt, shortened until the prompt fits.

        A prompt that does not fit is written anew by its `shortener`, as often as that has
        something to summarise. The remainder is cut.

        Args:
            request: The request.
            configured: Tokens of the window; 0 where that is not known.
            ask: Makes the call.
            on_status: Receives a short text when the prompt is shortened.
            shortener: Writes the prompt anew; None to cut it only.

        Raises:
            ModelError: What `ask` raises; of kind ``context_overflow``, if the prompt cannot fit.
        """
        self._configured = configured
        wanted = request
        for tries_left in reversed(range(_MOST_TRIES)):
            wanted = self._shortened(wanted, shortener)
            fitting, is_begun = self._cut(wanted), False
            try:
                with closing(ask(fitting)) as pieces:
                    for piece in pieces:
                        is_begun = True
                        yield piece
                        self._compare(fitting, piece, shortener)
                return
            except ModelError as error:
                if error.kind != "context_overflow" or is_begun or not tries_left:
                    raise
                tokens = self._tokens(fitting.messages)
                self._learnt = min(window_of(error, tokens), self._learnt or tokens)
            if on_status is not None:
                on_status("the conversation is shortened to fit the model's window")

    def _shortened(self, request: ModelRequest, shortener: Shortener | None) -> ModelRequest:
        """Return the request as the writer of the prompt can shorten it."""
        while shortener is not None and not self._fits(request):
            shorter = shortener.shorter()
            if shorter is None:
                shortener.warn(
                    "The conversation is longer than the model's window of about"
                    f" {self.known:,} tokens: the model reads parts of it cut short."
                )
                break
            request = replace(request, messages=shorter)
        return request

    def _cut(self, request: ModelRequest) -> ModelRequest:
        """Return the request as it is sent."""
        if self._fits(request):
            return request
        limit = int(self.known * _MARGIN)
        return replace(request, messages=fitted(request.messages, limit, self._tokens))

    def _fits(self, request: ModelRequest) -> bool:
        return not self.known or self._tokens(request.messages) <= int(self.known * _MARGIN)

    def _compare(self, request: ModelRequest, piece: Chunk, shortener: Shortener | None) -> None:
        """Learn the window if the server read far less than the prompt.

        The tokens that were read are compared with the estimate, and with an earlier prompt.

        The second comparison is for prompts with tools, which the estimates leave out: their share
        is large in a short prompt alone. Prompts with images are not compared: each server counts
        these in its own way.
        """
        if piece.finish is None or piece.usage is None or has_images(request.messages):
            return
        read = piece.usage.prompt_tokens
        counted, estimated = self._estimator.count(request.messages), self._tokens(request.messages)
        before = self._whole
        if before is not None and min(read, estimated) >= _NOTED_TOKENS:
            grown = before[1] + (counted - before[0]) * _LEAST_GROWTH
            is_little = read < estimated * _NOTED_SHARE and read < grown
            # A server that has read more has no window as small as that.
            if is_little and read > before[1] * _CUT_SHARE:
                self._note_cut(read, estimated, shortener)
                return
        if before is None or counted > before[0]:
            self._whole = (counted, read)

    def _note_cut(self, read: int, sent: int, shortener: Shortener | None) -> None:
        self._learnt = max(min(read, self.known or read), _SMALLEST_WINDOW)
        if shortener is not None and not self._is_warned:
            self._is_warned = True
            shortener.warn(
                f"The model's server read {read:,} of about {sent:,} tokens: it drops the beginning"
                " of long prompts. The conversation is kept shorter from now on."
            )

    def _tokens(self, messages: Sequence[ChatMessage]) -> int:
        return self._estimator.estimate(self._model, messages, "").prompt_tokens


def window_of(error: ModelError, tokens: int) -> int:
    """Return the window behind an overflow error, in estimated tokens.

    An error that names both what was sent and what fits calibrates the estimate; one that names
    the window alone is believed as far as the refusal allows.

    Args:
        error: An error of kind ``context_overflow``.
        tokens: Estimated tokens of the prompt that was refused.
    """
    numbers = [int(number.replace(",", "")) for number in _NUMBER.findall(error.detail)]
    named = sorted(number for number in numbers if number >= _SMALLEST_WINDOW)
    if len(named) > 1 and named[0] < named[-1]:
        return int(tokens * named[0] / named[-1])
    guess = int(tokens * (_NAMED_SHARE if named else _UNKNOWN_SHARE))
    return max(min([*named, guess]), _SMALLEST_WINDOW)


def fitted(messages: Sequence[ChatMessage], limit_tokens: int, count: Count) -> list[ChatMessage]:
    """Return messages that fit into a number of tokens, changed as little as possible.

    Images that a text can stand for go first. System messages and the newest user's message stay
    whole.

    Raises:
        ModelError: Of kind ``context_overflow``, if these alone do not fit.
    """
    kept = without_images(messages)
    newest = max((n for n, m in enumerate(kept) if m["role"] == "user"), default=-1)
    limit_chars = _longest(kept, newest)
    while count(kept) > limit_tokens and limit_chars > _SHORT_CHARS:
        limit_chars = max(limit_chars // 2, _SHORT_CHARS)
        kept = [_cut(m, limit_chars, is_whole=n == newest) for n, m in enumerate(kept)]
    while count(kept) > limit_tokens:
        shorter = _without_oldest(kept)
        if shorter is None:
            detail = f"the request needs about {count(kept):,} tokens; {limit_tokens:,} fit."
            hint = "Ask for less at once, or take a model with a larger window."
            raise ModelError("context_overflow", detail, hint=hint)
        kept = shorter
    return kept


def _longest(messages: Sequence[ChatMessage], newest: int) -> int:
    """Return the length of the longest text that may be cut."""
    texts = [m["content"] for n, m in enumerate(messages) if m["role"] != "system" and n != newest]
    return max((len(text) for text in texts if isinstance(text, str)), default=0)


def _cut(message: ChatMessage, limit_chars: int, *, is_whole: bool) -> ChatMessage:
    content = message["content"]
    if is_whole or message["role"] == "system" or not isinstance(content, str):
        return message
    return {**message, "content": shorten(content, limit_chars)}


def _without_oldest(messages: Sequence[ChatMessage]) -> list[ChatMessage] | None:
    """Return messages without the oldest turn, or None if only the newest turn is left.

    A turn begins with a user's message, so a call never loses its result.
    """
    first = next((n for n, m in enumerate(messages) if m["role"] != "system"), len(messages))
    turns = [n for n, m in enumerate(messages) if n > first and m["role"] == "user"]
    if not turns:
        return None
    head, rest = list(messages[:first]), list(messages[turns[0] :])
    opening = rest[0]["content"]
    if isinstance(opening, str) and not opening.startswith(_LEFT_OUT):
        rest[0] = {**rest[0], "content": f"{_LEFT_OUT}\n\n{opening}"}
    return [*head, *rest]
