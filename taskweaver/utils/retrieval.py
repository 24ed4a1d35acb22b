"""Retrieval of texts by words, by parts of words and by vectors, fused by rank.

A text is indexed by its words, by pairs of its wide characters (Chinese, Japanese, Korean), and by
parts: each four letters of a longer word without digits, each Chinese character. Parts find other
forms of a word and compounds. The terms are made here and not by a tokenizer of SQLite, so an index
keeps no text: rows are only ever added, and the reader leaves out rows whose text is gone.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

from taskweaver.errors import TaskWeaverError

MOST_WORDS = 32
"""Words of a query that are looked for."""

_MOST_PARTS = 64
_PART, _ALL_PARTS_OF = 4, 400
"""Letters of a part, and the longest word of which parts are made."""

_PART_WEIGHT = 0.3
LEAST_PARTS = 2
"""Parts that a text without any word of a query must share with the query."""

_LONG = 2000
"""Characters from which on a text shares parts with any query, and must share a word."""

_RANK_OFFSET = 20
"""How little the first ranks differ from each other in a fusion."""

FUSED = 20
"""Texts of each ranking that are fused."""

_WIDE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_EMOJI = "\u2600-\u27bf\U0001f300-\U0001faff"
_WORD = re.compile(rf"[{_WIDE}]+|[{_EMOJI}]|[^\W{_WIDE}]+")
_IS_WIDE = re.compile(f"[{_WIDE}]")
_GRAMMAR = re.compile("[\u3040-\u309f]{2}")
"""A pair of hiragana: an ending or a particle more often than a word."""
_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_VOICED = "\u3099\u309a"
_COMMON = frozenset(
    """a an the and or but if of to in on at by for from with as is are was were be been do does did
    has have had how what when where which who why this that these those it its we our us you your
    i my me he she they their there can could should would will must may not no so than then please
    der die das den dem des ein eine einer eines einem einen und oder aber wenn von zu zum zur im am
    auf bei mit aus als ist sind war waren sein wird werden hat haben wie was wann wo welche welcher
    welches welchen wer warum dies diese dieser es wir uns unser unsere ihr ich mein sie er man kann
    soll sollen muss darf nicht kein keine auch noch nur nach vor um bis fur
    的 了 是 吗 么 呢 我 们 在 有 和 不 这 那 什 哪 怎 什么 怎么 我们 多少 何 人
    어떻 떻게 하나 나요 인가 가요 무엇 언제 어떤""".split()
)


class _Folding(dict[int, str | None]):
    """Characters without marks; filled as characters come up."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        is_mark = unicodedata.category(character)[0] == "M" and character not in _VOICED
        self[code] = None if is_mark else character
        return self[code]


_FOLDING = _Folding()


class Terms(NamedTuple):
    """Words and parts of words of a text."""

    words: list[str]
    parts: list[str]


def terms(text: str) -> Terms:
    """Return the words of a text and the parts of each different word, in small letters."""
    folded = text.casefold()
    if not folded.isascii():
        bare = unicodedata.normalize("NFKD", folded).translate(_FOLDING)
        folded = unicodedata.normalize("NFC", bare)
    found = Terms([], [])
    known: set[str] = set()
    for word in _WORD.findall(folded):
        if not is_wide(word):
            found.words.append(word)
            if len(word) > _PART and word not in known and word.isalpha():
                ends = range(_PART, min(len(word), _ALL_PARTS_OF) + 1)
                found.parts.extend(word[end - _PART : end] for end in ends)
        else:
            pairs = (word[at : at + 2] for at in range(max(len(word) - 1, 1)))
            found.words.extend(pair for pair in pairs if not _GRAMMAR.fullmatch(pair))
            if word not in known:
                found.parts.extend(_IDEOGRAPH.findall(word))
        known.add(word)
    return found


def telling_words(text: str) -> list[str]:
    """Return the words of a text as they are written, in small letters, without common ones."""
    found: list[str] = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    return [word for word in found if word not in _COMMON]


def is_wide(word: str) -> bool:
    """Return whether a word is written in wide characters, of which words are not spaced."""
    return _IS_WIDE.match(word) is not None


def query_terms(query: str) -> Terms:
    """Return the terms of a query that say something, each once; all if none of them does."""
    words, parts = map(dict.fromkeys, terms(query[: 200 * MOST_WORDS]))
    telling = [word for word in words if word not in _COMMON] or list(words)
    empty = {part for word in _COMMON & words.keys() for part in terms(word).parts}
    some = [part for part in parts if part not in _COMMON and part not in empty]
    return Terms(telling[:MOST_WORDS], some[:_MOST_PARTS])


def shares(query: Terms, text: str) -> bool:
    """Return whether a text shares enough with a query to be an answer."""
    found = terms(text)
    parts = set(query.parts).intersection(found.parts) if len(text) <= _LONG else ()
    return len(parts) >= LEAST_PARTS or not set(query.words).isdisjoint(found.words)


def _share(query: Terms, text: str) -> float:
    """Return the share of a query's words, or of its parts of words, that a text has."""
    found = terms(text)
    pairs = ((query.words, found.words), (query.parts, found.parts))
    return max(len(set(own).intersection(other)) / max(len(own), 1) for own, other in pairs)


def any_of(words: Iterable[str]) -> str:
    """Return a full-text query for any of some words: each is quoted, so none is an operator."""
    return " OR ".join(f'"{word}"' for word in words)


def expression(query: Terms) -> str:
    """Return a full-text query for any of some terms; empty for none."""
    columns = (("words", query.words), ("parts", query.parts))
    return " OR ".join(f"{name} : ({any_of(words)})" for name, words in columns if words)


def word_table(name: str) -> str:
    """Return the SQL that makes a table of words; `marks` holds terms that a text does not."""
    return (
        f"CREATE VIRTUAL TABLE {name} USING fts5 ("
        "words, parts, marks, content='', tokenize=\"ascii tokenchars '_'\")"
    )


def score_of(name: str) -> str:
    """Return the SQL of the bm25 of a row of a table of words, higher is better."""
    return f"-bm25({name}, 1.0, {_PART_WEIGHT}, 0.0)"


VECTOR_TABLE = """CREATE TABLE vectors (
    model TEXT NOT NULL,
    seq INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (model, seq)
) STRICT, WITHOUT ROWID"""


def add_words(
    connection: sqlite3.Connection, name: str, rows: Iterable[tuple[int, str, str]]
) -> None:
    """Add texts to a table of words.

    Args:
        connection: Open, in a transaction.
        name: The table.
        rows: Number, text and marks of each text.
    """
    found = ((number, terms(text), marks) for number, text, marks in rows)
    connection.executemany(
        f"INSERT INTO {name} (rowid, words, parts, marks) VALUES (?, ?, ?, ?)",
        (
            (number, " ".join(term.words), " ".join(term.parts), marks)
            for number, term, marks in found
        ),
    )


class Shelf(Protocol):
    """Vectors in memory, in the order in which they were added."""

    def add(self, vectors: Sequence[bytes], /) -> None:
        """Add vectors of one length."""
        ...

    def nearest(self, query: str, /) -> list[tuple[int, float]]:
        """Return place and cosine of each vector near a query, the nearest first.

        Raises:
            TaskWeaverError: If no vector can be made of the query.
            ValueError: If its vector has another length.
        """
        ...


class Embedder(Protocol):
    """Texts to vectors.

    Attributes:
        model: Name that the vectors are stored under.
    """

    model: str

    def embed(self, texts: Sequence[str], /) -> list[bytes]:
        """Return a vector for each text, in the form that the shelf takes.

        Raises:
            TaskWeaverError: If the model cannot be asked.
        """
        ...

    def shelf(self) -> Shelf:
        """Return an empty shelf."""
        ...


class Vectors:
    """The vectors of one model in a file's table ``vectors``, read into memory. Thread-safe."""

    def __init__(self, embedder: Embedder) -> None:
        """Take the model."""
        self._embedder = embedder
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._shelf = self._embedder.shelf()
        self._numbers: list[int] = []
        self._last = self._schema = 0

    def last(self, connection: sqlite3.Connection) -> int:
        """Return the number of the newest text that has a vector; 0 for none."""
        query = "SELECT coalesce(max(seq), 0) FROM vectors WHERE model = ?"
        return int(connection.execute(query, (self._embedder.model,)).fetchone()[0])

    def made(self, texts: Mapping[int, str]) -> list[tuple[str, int, bytes]]:
        """Return the rows of texts by number. Raises as `Embedder.embed`."""
        vectors = self._embedder.embed(list(texts.values()))
        return [
            (self._embedder.model, number, vector)
            for number, vector in zip(texts, vectors, strict=True)
        ]

    @staticmethod
    def add(connection: sqlite3.Connection, rows: Sequence[tuple[str, int, bytes]]) -> None:
        """Store rows. A row that another process stored meanwhile stays."""
        connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)

    def discard(self, connection: sqlite3.Connection) -> None:
        """Remove the vectors of the model, which were made with another dimension."""
        connection.execute("DELETE FROM vectors WHERE model = ?", (self._embedder.model,))
        with self._lock:
            self._forget()

    def nearest(self, connection: sqlite3.Connection, query: str) -> dict[int, float]:
        """Return the cosines of the texts near a query by number, the nearest first.

        Raises:
            TaskWeaverError, ValueError: As `Shelf.nearest`.
        """
        with self._lock:
            (schema,) = connection.execute("PRAGMA schema_version").fetchone()
            if schema != self._schema or self._last > self.last(connection):
                self._forget()  # an erasure emptied the table, and changes the number of the schema
                self._schema = schema
            rows = connection.execute(
                "SELECT seq, vector FROM vectors WHERE model = ? AND seq > ? ORDER BY seq",
                (self._embedder.model, self._last),
            ).fetchall()
            self._shelf.add([vector for _, vector in rows])
            self._numbers += [number for number, _ in rows]
            self._last = self._numbers[-1] if self._numbers else 0
            found = self._shelf.nearest(query)
            return {self._numbers[place]: cosine for place, cosine in found}


def fused(rankings: Iterable[Sequence[int]]) -> dict[int, float]:
    """Fuse rankings by reciprocal rank.

    Returns:
        The score of each item, at most 1, the best first. Equals keep the order of the rankings.
    """
    scores: dict[int, float] = {}
    lists = [ranking for ranking in rankings if ranking]
    for ranking in lists:
        for rank, item in enumerate(ranking):
            share = _RANK_OFFSET / (_RANK_OFFSET + rank) / len(lists)
            scores[item] = scores.get(item, 0.0) + share
    return dict(sorted(scores.items(), key=lambda pair: -pair[1]))


class TextIndex:
    """Texts that are searched any number of times, in memory. Close it."""

    def __init__(self, texts: Sequence[str], embedder: Embedder | None = None) -> None:
        """Take texts in; vectors are made by the first search."""
        self._texts = list(texts)
        self._vectors = Vectors(embedder) if embedder else None
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.execute(VECTOR_TABLE)
        self._has_words = True
        try:
            self._connection.execute(word_table("texts"))
        except sqlite3.OperationalError:
            self._has_words = False  # an SQLite without FTS5
            return
        rows = ((number, text, "") for number, text in enumerate(texts, 1))
        add_words(self._connection, "texts", rows)

    def find(self, query: str, count: int) -> dict[int, float]:
        """Return at most `count` texts that suit a query by place, the best first.

        The score of a text is the cosine, or the share of the query's words, if that is larger.
        Words alone are compared once the embedding model fails.

        Raises:
            TaskWeaverError: If the question to the model was cancelled.
        """
        wanted, near = query_terms(query), dict[int, float]()
        with self._lock:
            found = self._by_words(wanted)
            try:
                near = self._by_vectors(query)
            except (TaskWeaverError, ValueError) as error:  # or vectors of another length now
                if getattr(error, "kind", "") == "cancelled":
                    raise
        best = list(fused([found, list(near)[:FUSED]]))[:count]
        return {
            number - 1: max(near.get(number, 0.0), _share(wanted, self._texts[number - 1]))
            for number in best
        }

    def _by_vectors(self, query: str) -> dict[int, float]:
        if self._vectors is None or not self._texts:
            return {}
        if not self._vectors.last(self._connection):
            made = self._vectors.made(dict(enumerate(self._texts, 1)))
            self._vectors.add(self._connection, made)
        return self._vectors.nearest(self._connection, query)

    def _by_words(self, wanted: Terms) -> list[int]:
        asked = expression(wanted)
        if not asked or not self._has_words:
            return []
        rows = self._connection.execute(
            f"SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY {score_of('texts')} DESC, rowid"
            " LIMIT ?",
            (asked, FUSED),
        )
        return [number for (number,) in rows if shares(wanted, self._texts[number - 1])]

    def close(self) -> None:
        """Discard the texts."""
        self._connection.close()


def best_texts(texts: Sequence[str], query: str, count: int) -> list[int]:
    """Return the places of the texts that suit a query best by their words, best first."""
    with closing(TextIndex(texts)) as index:
        return list(index.find(query, count))
