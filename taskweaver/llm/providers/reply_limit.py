"""The longest reply that a model may be asked for, learnt from refusals of a longer one."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

_NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TOO_LARGE = re.compile(
    r"max_(?:completion_|output_)?tokens`?(?:[' :=]+\d+)?[^.;\n]{0,40}"
    r"(?:is |are )?(?:too (?:large|high|big)|must be (?:less|<=|at most)|exceeds?)"
    r"|max_tokens: \d+ > \d+"
    r"|exceeds? the (?:max|limit)[^.;\n]{0,40}max_(?:completion_|output_)?tokens",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    r"(?:at most|<=|less than or equal to|maximum (?:of|allowed)(?: number of output tokens)?:?"
    r"|>)\s*`?([\d,]+)",
    re.IGNORECASE,
)
_SUM = re.compile(r"(\d+) \+ (\d+) > (\d+)")
_OF_WINDOW = re.compile(
    r"maximum context length is (\d+) tokens and your request has (\d+) input tokens"
)
_FEWEST = 1_024
"""A window with less room for the reply is full: the prompt has to be shorter."""


class ReplyLimit:
    """The longest reply that a model takes; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limit: int | None = None

    def apply(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with a reply that is not longer."""
        with self._lock:
            limit = self._limit
        return {
            name: min(value, limit) if limit and name in _NAMES and value else value
            for name, value in parameters.items()
        }

    def learn(self, sent: Mapping[str, Any], words: str) -> bool:
        """Learn from a refusal; return whether a shorter reply is asked for from now on.

        Args:
            sent: The body that was refused.
            words: The endpoint's message.
        """
        asked = next((sent[name] for name in _NAMES if sent.get(name)), None)
        if not isinstance(asked, int):
            return False
        limit = _limit_of(words, asked)
        if limit is None or not 0 < limit < asked:
            return False
        with self._lock:
            self._limit = limit
        return True


def _limit_of(words: str, asked: int) -> int | None:
    """Return the longest reply that a refusal allows; None if it is about something else."""
    total, window = _SUM.search(words), _OF_WINDOW.search(words)
    if total and "max_tokens" in words:
        room = int(total[3]) - int(total[1])
        return room if room >= _FEWEST else None
    if not _TOO_LARGE.search(words):
        return None
    if window:
        room = int(window[1]) - int(window[2])
        return room if room >= _FEWEST else None
    named = _AT_MOST.search(words)
    return int(named[1].replace(",", "")) if named else asked // 2
