"""One error for every way a model call can fail: a kind to act on, words to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taskweaver.errors import TaskWeaverError

ModelErrorKind = Literal[
    "rate_limit",
    "quota",
    "overloaded",
    "timeout",
    "connection",
    "auth",
    "not_found",
    "bad_request",
    "context_overflow",
    "content_filter",
    "refusal",
    "truncated",
    "malformed",
    "cancelled",
    "recording_miss",
    "configuration",
    "form",
]

RETRYABLE: frozenset[ModelErrorKind] = frozenset(
    {"rate_limit", "overloaded", "timeout", "connection"},
)


@dataclass(eq=False, repr=False)
class ModelError(TaskWeaverError):
    """A model call failed.

    Attributes:
        kind: Class of the failure, for callers that act on it.
        detail: The service's message, redacted and bounded.
        model: Name of the model.
        hint: The remedy; empty where no general one exists.
        retry_after_s: Seconds to wait before a retry, as the server asks; None if it does not.
    """

    kind: ModelErrorKind
    detail: str
    model: str = ""
    hint: str = ""
    retry_after_s: float | None = None

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed a little later."""
        return self.kind in RETRYABLE

    def __str__(self) -> str:
        """The failure, the place and the remedy."""
        where = f" ({self.model})" if self.model else ""
        text = f"Model call failed{where}, {self.kind.replace('_', ' ')}: {self.detail}"
        return f"{text} {self.hint}" if self.hint else text
