"""Ranking of texts for a request: by their words, in SQLite's full-text search, or by vectors."""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""Full-text search in which forms of an English word count as the same word."""

WORD = re.compile(r"\w+")
MOST_WORDS = 32
"""Words of a request that are looked for."""

_TOPIC_WORD = re.compile(r"[^\W_]{2,}")
_COMMON = frozenset(
    "the a an of to in on and or for with is are was be it this that what how me my please".split()
)


def topic_words(text: str) -> list[str]:
    """Return the words of a text without the most common words: in small letters, each once."""
    found = dict.fromkeys(word.lower() for word in _TOPIC_WORD.findall(text))
    return [word for word in found if word not in _COMMON]


def query_words(text: str) -> list[str]:
    """Return the first words of a text, in small letters, each once."""
    return list(dict.fromkeys(WORD.findall(text.lower())))[:MOST_WORDS]


def any_of(words: Iterable[str]) -> str:
    """Return a full-text query for any of some words: each is quoted, so none is an operator."""
    return " OR ".join(f'"{word}"' for word in words)


def best_texts(texts: Sequence[str], query: str, count: int) -> list[int]:
    """Return the places of the texts that suit a query best by bm25, best first."""
    with closing(WordIndex(texts, is_stemming=True)) as index:
        ranks = index.ranks(query_words(query))
    found = [place for place, rank in enumerate(ranks) if rank]
    return sorted(found, key=lambda place: -ranks[place])[:count]


def cosine(one: Sequence[float], two: Sequence[float]) -> float:
    """Return the cosine of two vectors, or 0 if a vector is empty, or the lengths differ."""
    if len(one) != len(two):
        return 0.0
    lengths = math.hypot(*one) * math.hypot(*two)
    return sum(a * b for a, b in zip(one, two, strict=True)) / lengths if lengths else 0.0


class WordIndex:
    """Texts that are searched by words, any number of times, and closed at the end."""

    def __init__(self, texts: Sequence[str], *, is_stemming: bool = False) -> None:
        """Take texts in. With `is_stemming`, forms of an English word count as the same word."""
        self._count = len(texts)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        tokenizer = TOKENIZER if is_stemming else "unicode61"
        self._is_usable = True
        try:
            self._connection.execute(
                f"CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = '{tokenizer}')"
            )
        except sqlite3.OperationalError:
            self._is_usable = False  # an SQLite without FTS5
            return
        rows = [(text.replace("\0", " "),) for text in texts]
        self._connection.executemany("INSERT INTO texts (text) VALUES (?)", rows)

    def ranks(self, wanted: Sequence[str]) -> list[float]:
        """Return the bm25 of each text, higher is better, or all 0 where SQLite has no FTS5."""
        ranks = [0.0] * self._count
        if not self._is_usable or not wanted:
            return ranks
        with self._lock:
            for row, rank in self._connection.execute(
                "SELECT rowid, -bm25(texts) FROM texts WHERE texts MATCH ?", (any_of(wanted),)
            ):
                ranks[row - 1] = rank
        return ranks

    def close(self) -> None:
        """Discard the texts."""
        self._connection.close()
