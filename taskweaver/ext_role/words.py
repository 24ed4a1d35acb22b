"""Words of a person as a full-text query."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing

_WORD = re.compile(r"\w+")
_MOST_WORDS = 32
TOKENIZER = "porter unicode61 remove_diacritics 2"


def any_word(text: str) -> str:
    """Return a full-text query for any word of a text; every word is quoted, none an operator.

    Empty when the text has no words.
    """
    words = list(dict.fromkeys(_WORD.findall(text.lower())))[:_MOST_WORDS]
    return " OR ".join(f'"{word}"' for word in words)


def best_texts(texts: Sequence[str], query: str, count: int) -> list[int]:
    """Return the places of the texts that suit a query best by bm25, best first.

    Raises:
        sqlite3.OperationalError: If SQLite has no full-text search.
    """
    wanted = any_word(query)
    if not wanted:
        return []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize='{TOKENIZER}')")
        rows = [(place, text.replace("\0", " ")) for place, text in enumerate(texts)]
        connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
        found = connection.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?",
            (wanted, count),
        )
        return [place for (place,) in found]
