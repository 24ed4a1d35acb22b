"""How well texts suit a request, by its words or by vectors."""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]{2,}")
_COMMON = frozenset(
    "the a an of to in on and or for with is are was be it this that what how me my please".split()
)


def words(text: str) -> list[str]:
    """Return the words that say what a text is about: in small letters, each once."""
    found = dict.fromkeys(word.lower() for word in _WORD.findall(text))
    return [word for word in found if word not in _COMMON]


def cosine(one: Sequence[float], two: Sequence[float]) -> float:
    """Return the cosine of two vectors; 0 if one is empty, or they have not the same length."""
    if len(one) != len(two):
        return 0.0
    lengths = math.hypot(*one) * math.hypot(*two)
    return sum(a * b for a, b in zip(one, two, strict=True)) / lengths if lengths else 0.0


class WordIndex:
    """Texts that are searched by their words, any number of times. Close it."""

    def __init__(self, texts: Sequence[str], *, is_stemming: bool = False) -> None:
        """Take texts in.

        Args:
            texts: The texts.
            is_stemming: Whether forms of an English word count as the same word.
        """
        self._count = len(texts)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        tokenizer = "porter unicode61" if is_stemming else "unicode61"
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
        """Return the bm25 of each text, higher is better; all 0 where SQLite has no FTS5."""
        ranks = [0.0] * self._count
        if not self._is_usable or not wanted:
            return ranks
        query = " OR ".join(f'"{word}"' for word in wanted)
        with self._lock:
            for row, rank in self._connection.execute(
                "SELECT rowid, -bm25(texts) FROM texts WHERE texts MATCH ?", (query,)
            ):
                ranks[row - 1] = rank
        return ranks

    def close(self) -> None:
        """Give the texts up."""
        self._connection.close()
