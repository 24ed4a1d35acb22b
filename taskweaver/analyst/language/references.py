"""Words by which a request refers to the one before, read before its phrases are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from taskweaver.analyst.language.parser import Words

_OPENINGS = frozenset(
    "and as now only same also just but ok okay instead then without except excluding per by with "
    "je pro nach plot und et y nur maintenant ahora".split()
)
_MOST_CHANGED = 5
OF_ROWS = frozenset("in for of from on für von aus im".split())
_SEVERAL = frozenset("them those these their davon darunter denen deren".split())
_PRONOUNS = _SEVERAL | frozenset("it its that this same instead".split())
_CONTINUED = frozenset("and but only same instead then und oder y et nur".split())
_BEFORE_THAT = frozenset(
    "plot sort show draw make of in for do visualise visualize order chart about graph  is rank "
    "give as than and split break only list repeat".split()
)
BARE_COUNT = re.compile(
    r"\W*(?:and )?(?:how many|count|wie viele)(?: (?:are|were|sind) (?:there|they|that|das|es))?"
    r"(?P<each> (?:of|in|for|from) each)?\W*",
    re.IGNORECASE,
)
COUNT_OF_SHOWN = re.compile(
    r"(?!.*\b(?:file|data|total|overall|all|datei|insgesamt)\b)"
    r"\W*(?:(?:and|und) )?(?:how many|wie viele) (?:are|were|have|had|sind|waren|haben|hatten)\b",
    re.IGNORECASE,
)
"""Numbers of rows without a noun: ``how many are from Rome``."""
_ONE = re.compile(r"\W*(?:and )?which ones?\b(?! of\b)", re.IGNORECASE)
_ELLIPSIS = re.compile(
    r"\A\W*(?:und |and )?(?:which|welche[rs]?) (?:has|have|had|hat|haben|hatte|hatten)\b"
    r"|\b(?:sind|waren|haben|hatten|ist|war) (?:die|sie)(?: (?:im|denn|zusammen|insgesamt|so|alle"
    r"|durchschnittlich)\b|\W*\Z)"
    r"|\A\W*(?:what |which )?(?:share|percentage|anteil)(?: in percent)?\W*\Z",
    re.IGNORECASE,
)
"""Requests without a noun for what they ask of: ``which has the most``, ``what percentage``."""


def is_follow_up(words: Words) -> bool:
    """Return whether a request points to the one before."""
    lows = [words.lower(at) for at in range(words.size)]
    if BARE_COUNT.fullmatch(words.text) or _ONE.match(words.text):
        return True
    return lows[0] in _OPENINGS or lows[1:2] == ["about"] or has_pointer(lows)


def points_back(text: str, *, openings: bool = True) -> bool:
    """Return whether a request is about the rows of an answer before, or begins as its change."""
    words = re.findall(r"\w+", text.casefold())
    begins = words[:1] and (words[0] in _CONTINUED or words[1:2] == ["about"])
    is_among = not _SEVERAL.isdisjoint(words) or bool(_ONE.match(text) or _ELLIPSIS.search(text))
    return is_among or (openings and bool(begins))


def begins_as_change(text: str) -> bool:
    """Return whether a request is a change of the one before: ``per region``, ``and of those``."""
    lows = re.findall(r"\w+", text.casefold())
    begins = lows[:1] and lows[0] in _OPENINGS | OF_ROWS and len(lows) <= _MOST_CHANGED
    is_change = bool(begins) or points_back(text) or has_pointer(lows)
    return is_change or BARE_COUNT.fullmatch(text) is not None


def has_pointer(lows: Sequence[str]) -> bool:
    """Return whether words of a request in lower case point to the one before: ``sort it``."""
    needs_verb = {"that", "this", "it", "its", "these", "those"}
    return any(
        low in _PRONOUNS and (low not in needs_verb or before in _BEFORE_THAT)
        for before, low in pairwise(["", *lows])
    )
