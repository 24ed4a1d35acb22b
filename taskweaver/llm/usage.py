"""Consumption of calls: the server's figures, or estimates calibrated by such figures."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from taskweaver.llm.types import ChatMessage, Usage, function_of
from taskweaver.utils.system.cancel import CancelToken
from taskweaver.utils.text import estimate_tokens

_MESSAGE_TOKENS = 4
_IMAGE_TOKENS = 800
_WEIGHT = 0.3
_PLAUSIBLE = (0.25, 4.0)
_CACHED_MESSAGES = 8192


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a million tokens, None if not configured.

    Attributes:
        prompt: Price of prompts.
        completion: Price of replies.
        cached: Price of the tokens of prompts that were read from a cache; None for that of others.
    """

    prompt: float | None = None
    completion: float | None = None
    cached: float | None = None

    @property
    def are_known(self) -> bool:
        """True if both prices are configured, so that a call's cost is known."""
        return self.prompt is not None and self.completion is not None

    def apply(self, usage: Usage) -> Usage:
        """Return `usage` with the cost."""
        if self.prompt is None and self.completion is None:
            return usage
        full = self.prompt or 0.0
        cached_tokens = min(usage.cached_tokens, usage.prompt_tokens)
        cached = cached_tokens * (full if self.cached is None else self.cached)
        prompt = (usage.prompt_tokens - cached_tokens) * full
        completion = usage.completion_tokens * (self.completion or 0.0)
        return replace(usage, cost=(prompt + cached + completion) / 1e6)


class Meter:
    """Meter of calls: admits calls and receives the consumption. This meter admits all at once."""

    @contextmanager
    def call(self, cancel: CancelToken) -> Iterator[None]:  # noqa: ARG002 - for those that wait
        """Surround a call. Waiting ends when the call is cancelled.

        Args:
            cancel: Gives the call up.
        """
        yield

    def add(self, usage: Usage) -> None:
        """Record the consumption of a call."""


class TokenEstimator:
    """Estimator of tokens, calibrated per model by the server's reports. Thread-safe.

    A message is counted once, so an estimate of a conversation counts only its new messages.
    Learning counts a whole prompt, so it happens at the first, second, fourth, eighth ... call of
    a model: altogether this costs less than counting each of the last few prompts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._factors: dict[str, float] = {}
        self._reports: dict[str, int] = {}
        self._counted: dict[tuple[int, int], int] = {}

    def estimate(self, model: str, messages: Sequence[ChatMessage], reply: str) -> Usage:
        """Return an estimate of a call's consumption."""
        prompt = self.count(messages)
        factor = self._factors.get(model, 1.0)
        completion = estimate_tokens(reply)
        return Usage(round(prompt * factor), round(completion * factor), None, 1, True)

    def learn(self, model: str, messages: Sequence[ChatMessage], reported: Usage) -> None:
        """Calibrate by the server's figures for a call without images, whose tokens are its own."""
        if any(isinstance(message["content"], list) for message in messages):
            return
        with self._lock:
            reports = self._reports.get(model, 0) + 1
            self._reports[model] = reports
        if reports & (reports - 1):
            return
        guess = self.count(messages)
        ratio = reported.prompt_tokens / guess if guess else 0.0
        if not _PLAUSIBLE[0] <= ratio <= _PLAUSIBLE[1]:
            return
        with self._lock:
            known = self._factors.get(model)
            self._factors[model] = ratio if known is None else known + _WEIGHT * (ratio - known)

    def count(self, messages: Sequence[ChatMessage]) -> int:
        """Return a count of a prompt's tokens that no server's figures are in.

        Plain ASCII, the usual case, is counted in one go.
        """
        contents = [_text(message) for message in messages]
        try:
            joined = "".join(contents)  # type: ignore[arg-type]  # a list is refused
        except TypeError:
            joined = "\N{REPLACEMENT CHARACTER}"  # images among them: count one by one
        if joined.isascii():
            return _MESSAGE_TOKENS * len(contents) + estimate_tokens(joined)
        return sum(map(self._count, messages))

    def _count(self, message: ChatMessage) -> int:
        content = _text(message)
        if not isinstance(content, str):
            texts = [str(part["text"]) for part in content if "text" in part]
            images = len(content) - len(texts)
            return _MESSAGE_TOKENS + sum(map(estimate_tokens, texts)) + _IMAGE_TOKENS * images
        key = (hash(content), len(content))
        count = self._counted.get(key)
        if count is None:
            count = _MESSAGE_TOKENS + estimate_tokens(content)
            with self._lock:
                if len(self._counted) >= _CACHED_MESSAGES:
                    self._counted.clear()
                self._counted[key] = count
        return count


def _text(message: ChatMessage) -> str | list[dict[str, Any]]:
    """Return the content of a message, with the calls, or the record of a message with a record."""
    if record := message.get("record"):
        return json.dumps(record["items"], ensure_ascii=False)
    content = message["content"] or ""
    calls = message.get("tool_calls")
    if not calls or not isinstance(content, str):
        return content
    return "\n".join([content, *(" ".join(function_of(call)) for call in calls)])


class UsageLedger:
    """Sum of usage. Usage of a branch is added to the session's as well. Thread-safe."""

    def __init__(self, session: UsageLedger | None = None) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._total = Usage()

    @property
    def total(self) -> Usage:
        """All that was added so far."""
        with self._lock:
            return self._total

    def add(self, usage: Usage) -> None:
        """Add the consumption of a call."""
        with self._lock:
            self._total = self._total + usage
        if self._session is not None:
            self._session.add(usage)
