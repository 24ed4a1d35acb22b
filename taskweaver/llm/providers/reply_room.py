"""The room for a reply beside its prompt, learnt from refusals of their sum."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

_NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_SUM = re.compile(r"(\d+) \+ (\d+) > (\d+)")
_OF_WINDOW = re.compile(
    r"maximum context length is (\d+) tokens and your request has (\d+) input tokens"
)
_FEWEST = 1_024
"""A window with less room for the reply is full: the prompt has to be shorter."""


class ReplyRoom:
    """The longest reply that had room beside a prompt; thread-safe.

    Limits that a model has for every prompt are in `ParameterMemory`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._room: int | None = None

    def apply(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with a reply that is not longer."""
        with self._lock:
            room = self._room
        return {
            name: min(value, room) if room and name in _NAMES and value else value
            for name, value in parameters.items()
        }

    def learn(self, sent: Mapping[str, Any], words: str) -> bool:
        """Learn from a refusal; return whether a shorter reply is asked for from now on.

        Args:
            sent: The parameters that were refused.
            words: The endpoint's message.
        """
        asked = next((sent[name] for name in _NAMES if sent.get(name)), None)
        room = _room_in(words)
        if not isinstance(asked, int) or not _FEWEST <= room < asked:
            return False
        with self._lock:
            self._room = room
        return True


def _room_in(words: str) -> int:
    """Return the tokens left for a reply, as a refusal names them; 0 if it names none."""
    total, window = _SUM.search(words), _OF_WINDOW.search(words)
    if total and "max_tokens" in words:
        return int(total[3]) - int(total[1])
    return int(window[1]) - int(window[2]) if window else 0
