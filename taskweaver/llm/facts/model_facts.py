"""Facts that a server states about one of its models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_TOKENS = 1 << 27
"""Largest number that is believed to be a window."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model; 0 and None where the server states nothing.

    Attributes:
        window: Tokens of prompt and reply that fit now.
        trained: Tokens that would fit at most.
        preferred: Window that the model's own settings name.
        takes_tools: Whether it takes tools.
        takes_images: Whether it takes images.
        thinks: Whether it reasons.
    """

    window: int = 0
    trained: int = 0
    preferred: int = 0
    takes_tools: bool | None = None
    takes_images: bool | None = None
    thinks: bool | None = None


def tokens_of(value: Any) -> int:
    """Return a number of tokens as servers write it; 0 for any other value."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 < value <= MOST_TOKENS else 0


def group(value: Any, name: str) -> Any:
    """Return a member of a JSON object; None of any other value."""
    return value.get(name) if isinstance(value, dict) else None
