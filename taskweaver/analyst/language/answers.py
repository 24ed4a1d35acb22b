"""Answers of the user to a question about the request before."""

from __future__ import annotations

import re

from taskweaver.analyst.language.words.names import name_words, singular
from taskweaver.analyst.readings.reading import Unclear
from taskweaver.memory.forms.suggestions import Suggestion, chosen

_PLACES = {
    "first": 0, "1st": 0, "former": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3,
}  # fmt: skip
_LIGHT = frozenset(
    "the one please pls i mean meant it is its a of column file table use take in that would be "
    "for me by to from yes option number thanks value called named sheet data".split()
)


def chosen_option(text: str, pending: Unclear) -> str | None:
    """Return the option that an answer chooses; None if it chooses none."""
    plain = text.strip().strip("`'\"“”«».?! ")
    exact = [option for option in pending.options if option.casefold() == plain.casefold()]
    if len(exact) == 1:
        return exact[0]
    quoted = [option for option in pending.options if _names(text, option)]
    if len(quoted) == 1:
        return quoted[0] if _is_only(text, quoted[0]) else None
    words = [word for word in re.findall(r"\w+", plain.casefold()) if word not in _LIGHT]
    if len(words) == 1 and words[0] in _PLACES | {"last": 0, "latter": 0}:
        place = -1 if words[0] in ("last", "latter") else _PLACES[words[0]]
        return pending.options[place] if place < len(pending.options) else None
    parts = [
        option
        for option in pending.options
        if words
        and all(singular(word) in _words(option) or word in _words(option) for word in words)
    ]
    if len(parts) == 1:
        return parts[0]
    is_number = re.search(r"\d", plain) is not None
    numbered = chosen(plain, tuple(map(Suggestion, pending.options))) if is_number else ""
    return numbered or None


def _names(text: str, option: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE) is not None


def _is_only(text: str, option: str) -> bool:
    """Return whether an answer holds nothing but an option."""
    rest = re.sub(re.escape(option), " ", text, flags=re.IGNORECASE).casefold()
    return all(word in _LIGHT for word in re.findall(r"\w+", rest))


def _words(option: str) -> set[str]:
    return {*name_words(option), *re.findall(r"\w+", option.casefold())}
