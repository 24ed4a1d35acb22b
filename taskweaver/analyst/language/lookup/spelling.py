"""Typing errors of one letter in words of the language, of columns and of values.

A word is corrected only if it means nothing as it is, and only one known word is that near. The
answer names the correction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from taskweaver.analyst.language.lookup.scope import DataScope
from taskweaver.analyst.language.words.lexicon import (
    DIMENSION_WORDS,
    LEXICON_WORDS,
    NUMBER_WORDS,
    SEASONS,
)
from taskweaver.analyst.language.words.names import distance, name_words, singular
from taskweaver.analyst.language.words.tokens import Token
from taskweaver.analyst.wording.calendar import MONTHS, WEEKDAYS

_LANGUAGE = frozenset(
    "average median maximum minimum highest lowest largest smallest biggest greatest number total "
    "percentage percent difference correlation between people passengers customers different "
    "distinct histogram oldest youngest longest shortest cheapest tallest heaviest growth compare "
    "missing earliest latest newest monthly yearly weekly".split()
)
_KNOWN = LEXICON_WORDS | frozenset((*DIMENSION_WORDS, *MONTHS, *WEEKDAYS, *SEASONS, *NUMBER_WORDS))
_SHORTEST = 6
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORD = re.compile(r"[^\W\d_]+")


def corrected(tokens: Sequence[Token], scope: DataScope) -> tuple[list[Token], tuple[str, ...]]:
    """Return the tokens with typing errors corrected, and a note for each of them."""
    found: list[Token] = []
    notes: list[str] = []
    for token in tokens:
        word = _correction(token, scope)
        found.append(token if word is None else replace(token, text=word))
        if word is not None:
            notes.append(f"I took “{token.text}” as “{word}”.")
    return found, tuple(dict.fromkeys(notes))


def _correction(token: Token, scope: DataScope) -> str | None:
    low = token.lower
    if (
        token.kind != "word"
        or len(low) < _SHORTEST - 1
        or not low.isalpha()
        or _is_known(low, scope)
    ):
        return None
    known = vocabulary(scope)
    near = {word for word in known if _is_typed(low, word)}
    near |= {word for word in _LANGUAGE if _is_misspelled(low, word)}
    return near.pop() if len(near) == 1 else None


def _is_known(word: str, scope: DataScope) -> bool:
    """Return whether a word, or another form of it, means something."""
    forms = {word, singular(word)}
    nouns = scope.nouns | scope.other_nouns | scope.side_nouns
    if forms & _KNOWN or forms & nouns or forms & vocabulary(scope):
        return True
    return bool(scope.column((word,), word) or scope.values(word) or scope.begins_value(word))


def vocabulary(scope: DataScope) -> frozenset[str]:
    """Return the words of columns and of the values of columns with few, in lower case."""
    if scope.vocabulary is None:
        texts = [value for column in scope.columns.values() for value in column.values or ()]
        words = {word for text in texts for word in _WORD.findall(text.casefold())}
        words |= {word for name in scope.columns for word in name_words(name)}
        words |= {singular(word) for word in words}
        scope.vocabulary = frozenset(word for word in words if len(word) >= _SHORTEST)
    return scope.vocabulary


def _is_misspelled(asked: str, word: str) -> bool:
    """Return whether a word of the language has one typing error, or two in a long word."""
    limit = 2 if min(len(asked), len(word)) > 8 else 1
    return asked[0] == word[0] and 0 < distance(asked, word, limit) <= limit


def _is_typed(asked: str, word: str) -> bool:
    """Return whether a name has one slip of a finger: other names often differ by one letter."""
    if asked[0] != word[0] or abs(len(asked) - len(word)) > 1 or distance(asked, word, 1) != 1:
        return False
    if len(asked) != len(word):
        longer, shorter = sorted((asked, word), key=len, reverse=True)
        return not longer.startswith(shorter)
    changed = [(left, right) for left, right in zip(asked, word, strict=True) if left != right]
    return len(changed) == 2 or _are_neighbours(*changed[0])


def _are_neighbours(left: str, right: str) -> bool:
    places = {key: (row, at) for row, keys in enumerate(_ROWS) for at, key in enumerate(keys)}
    if left not in places or right not in places:
        return False
    (row, at), (other_row, other_at) = places[left], places[right]
    return abs(row - other_row) <= 1 and abs(at - other_at) <= 1
