"""Offers of a refusal: requests made of the parts that were understood of the refused one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from taskweaver.analyst.readings import (
    Measure,
    NotUnderstood,
    Outcome,
    Reading,
    Summary,
    Understood,
)

Read = Callable[[str], Outcome]
_MOST_TRIES = 3
_PREPOSITIONS = "in|of|for|from|at|on|by|with|von|für|aus|pro|je"
_LEAD = (
    rf"(?:\b(?:{_PREPOSITIONS}|where|that|which|who|whose|are|is|was|were|and|or)\s+)*"
    r"(?:\b(?:the|a|an)\s+)?"
)
_ASKS_WHICH = re.compile(r"\W*(?:und |and )?(?:which|who|wer|welche[rsnm]?)\b", re.IGNORECASE)
_CHANGE = re.compile(
    r"\W*(?:(?:and|but|so|ok|und|oder|or|only|just|nur|what about|how about|the same|instead)\s+)*"
    rf"(?P<lead>(?:(?:{_PREPOSITIONS}|per|each|as|where)\s+)?)(?:(?:the|der|die|das)\s+)?"
    r"(?P<words>\w[\w'.-]*(?:\s+\w[\w'.-]*){0,2}?)(?:\s+instead)?\W*",
    re.IGNORECASE,
)


def nearest(text: str, outcome: NotUnderstood, read: Read) -> Reading | None:
    """Return the reading of a request without the words that were not understood."""
    words: Sequence[str] = outcome.words
    asked = text
    shorter = re.sub(r"\bbest(?:e[nrs]?)?\b", "highest", text.partition(", and ")[0])
    for _ in range(_MOST_TRIES):
        if shorter == text:
            shorter = _without(text, words)
        of_number = any(re.search(rf"\d\s*{re.escape(word)}\b", text) for word in words)
        if shorter == text or of_number or not re.search(r"\w", shorter):
            return None
        text, found = shorter, read(shorter)
        if isinstance(found, Understood) and not found.unused:
            is_counted = any(f"many {word}" in asked for word in outcome.words)
            is_lost = _ASKS_WHICH.match(asked) and _is_value(found.reading)
            is_kept = not is_lost and _is_about(found.reading, is_counted=is_counted)
            return found.reading if is_kept else None
        if not isinstance(found, NotUnderstood):
            return None
        words = found.words
    return None


def _is_value(reading: Reading) -> bool:
    """Return whether a reading is one value of all rows, without a name."""
    return isinstance(reading, Summary) and not reading.keys


def _is_about(reading: Reading, *, is_counted: bool) -> bool:
    """Return whether an offer fits: no count of all rows, and no count of other things."""
    if not isinstance(reading, Summary) or reading.measures != (Measure("count"),):
        return True
    return not is_counted and bool(reading.keys or reading.where)


def with_other_words(refused: str, word: str, change: str) -> str:
    """Return a refused request with the words of ``and in ...?`` for the unknown one; or empty."""
    said = _CHANGE.fullmatch(change)
    place = re.search(
        rf"\b(?P<lead>{_PREPOSITIONS}|the|mean|average|total|median)\s+(?:the\s+)?"
        rf"(?P<word>{re.escape(word)})(?!\w)",
        refused,
        re.IGNORECASE,
    )
    if said and place and said["lead"].strip().casefold() in ("", place["lead"].casefold()):
        return refused[: place.start("word")] + said["words"] + refused[place.end("word") :]
    return ""


def _without(text: str, words: Sequence[str]) -> str:
    """Return a text without some of its words and the prepositions before them."""
    for word in words:
        text = re.sub(rf"{_LEAD}(?<!\w){re.escape(word)}(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())
