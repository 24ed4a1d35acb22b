"""The form of a model's replies: the best one its endpoint takes, found by trial."""

from __future__ import annotations

import re
import threading
from typing import get_args

from taskweaver.llm.types import Form

LADDER: tuple[Form, ...] = get_args(Form)
_REFUSED = re.compile(
    r"\btools?\b|tool[_ -](?:use|choice|call)|function[_ -]call|--jinja", re.IGNORECASE
)


class FormMemory:
    """The best form a model is known to take; thread-safe."""

    def __init__(self, wanted: str = "auto") -> None:
        """Start at the best form, or at the one that is wanted."""
        self._lock = threading.Lock()
        self._level = next((n for n, form in enumerate(LADDER) if form == wanted), 0)

    @property
    def current(self) -> Form:
        """The form for the next call."""
        return LADDER[self._level]

    def step_down(self, refused: Form) -> None:
        """Give up a form that was refused, and those above it; the last one stays."""
        with self._lock:
            below = min(LADDER.index(refused) + 1, len(LADDER) - 1)
            self._level = max(self._level, below)


def is_about_tools(words: str) -> bool:
    """Return whether a rejection speaks of tools."""
    return bool(_REFUSED.search(words))
