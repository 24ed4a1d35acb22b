"""Models of OpenAI that reason, by their names; a table, not a measurement."""

from __future__ import annotations

import re

_REASONS = re.compile(r"(?:^|[/:])(?:o[1345](?:-|$)|gpt-(?:[5-9]|[1-9]\d)(?!\d)(?![\w.]*-chat))")
_PLAIN = re.compile(r"(?:^|[/:])(?:chatgpt-|gpt-?[34](?!\d)|gpt-\d+(?:\.\d+)?-chat)")


def reasons(model: str) -> bool:
    """Return whether a model of this name is known to reason."""
    return bool(_REASONS.search(model.lower()))


def is_plain(model: str) -> bool:
    """Return whether a model of this name is known not to reason."""
    return bool(_PLAIN.search(model.lower()))
