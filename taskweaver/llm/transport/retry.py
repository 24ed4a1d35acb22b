"""Retries of failed calls, and the waits between calls.

Full jitter: the wait is a random part of a time that doubles with each try, so that callers that
failed together do not retry together. ``Retry-After`` of a server is honoured. A call is not
retried once a part of its reply was passed on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from taskweaver.llm.base import CompletionService
from taskweaver.llm.errors import ModelError, ModelErrorKind
from taskweaver.llm.types import Chunk, ModelRequest
from taskweaver.utils.system.cancel import CancelToken

StatusListener = Callable[[str], None]

_FIRST_S = 1.0
_LONGEST_S = 60.0
_MOST_SILENT = 2
"""Most tries after a silence: each may last as long as ``llm.first_token_timeout_s``."""

_IN_WORDS: dict[ModelErrorKind, str] = {
    "rate_limit": "rate limited",
    "overloaded": "the model is overloaded",
    "timeout": "the model did not answer in time",
    "connection": "no connection to the model",
}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds on the retries of a call.

    Attributes:
        max_retries: Further tries after the first; after silence at most two.
        max_wait_s: Longest time in seconds spent waiting between tries, all together.
    """

    max_retries: int = 4
    max_wait_s: float = 120.0


class Backoff:
    """The waits of one call."""

    def __init__(
        self,
        policy: RetryPolicy,
        cancel: CancelToken,
        on_status: StatusListener | None = None,
    ) -> None:
        self._policy = policy
        self._cancel = cancel
        self._on_status = on_status
        self._tries = 0
        self._silent = 0
        self._waited_s = 0.0

    def wait(self, error: ModelError) -> None:
        """Wait before the call that failed with `error` is made again.

        Raises:
            ModelError: `error` itself, if trying again is in vain or patience has run out; one
                of kind ``cancelled``, if the call is given up meanwhile.
        """
        pause = self._pause(error)
        self._silent += error.kind == "timeout"
        if (
            not error.retryable
            or self._tries >= self._policy.max_retries
            or self._silent > _MOST_SILENT
            or self._waited_s + pause > self._policy.max_wait_s
        ):
            raise error
        self._tries += 1
        self._waited_s += pause
        if self._on_status is not None:
            why = _IN_WORDS.get(error.kind, "the call failed")
            most = self._policy.max_retries
            if error.kind == "timeout":
                most = min(most, self._tries + _MOST_SILENT - self._silent)
            again = f"trying again in {max(round(pause), 1)} s ({self._tries} of {most})"
            self._on_status(f"{why}, {again}")
        if self._cancel.wait(pause):
            raise ModelError("cancelled", "the call was given up.", error.model) from error

    def _pause(self, error: ModelError) -> float:
        if error.retry_after_s is not None:
            return error.retry_after_s * random.uniform(1.0, 1.1)
        return random.uniform(0.0, min(_LONGEST_S, _FIRST_S * 2.0**self._tries))


def stream_with_retries(
    service: CompletionService,
    request: ModelRequest,
    policy: RetryPolicy,
    on_status: StatusListener | None = None,
) -> Iterator[Chunk]:
    """Stream a reply, and make the call again while the call fails before the first text or call.

    Raises:
        ModelError: If the call fails for good or is cancelled.
    """
    backoff = Backoff(policy, request.cancel, on_status)
    while True:
        is_begun = False
        try:
            for chunk in service.stream(request):
                is_begun = is_begun or bool(chunk.text) or chunk.call is not None
                yield chunk
        except ModelError as error:
            if is_begun:
                raise
            backoff.wait(error)
        else:
            return
