"""The nearest request that has a reading: a request without the words that were not understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from taskweaver.analyst.readings.reading import NotUnderstood, Outcome, Understood
from taskweaver.analyst.wording.requests import in_words, shown_kind
from taskweaver.memory.forms.suggestions import Suggestion

_MOST_TRIES = 3
_LEAD = (
    r"(?:\b(?:in|of|for|from|at|on|by|with|where|that|which|who|whose|are|is|was|were|and|or)\s+)*"
    r"(?:\b(?:the|a|an)\s+)?"
)


def nearest(text: str, outcome: NotUnderstood, read: Callable[[str], Outcome]) -> Suggestion | None:
    """Return the nearest request in words; None if there is none."""
    words: Sequence[str] = outcome.words
    for _ in range(_MOST_TRIES):
        shorter = _without(text, words)
        if shorter == text or not re.search(r"\w", shorter):
            return None
        text, found = shorter, read(shorter)
        if isinstance(found, Understood) and not found.unused:
            return Suggestion(in_words(found.reading), shown_kind(found.reading))
        if not isinstance(found, NotUnderstood):
            return None
        words = found.words
    return None


def _without(text: str, words: Sequence[str]) -> str:
    """Return a text without some of its words and the prepositions before them."""
    for word in words:
        text = re.sub(rf"{_LEAD}(?<!\w){re.escape(word)}(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())
