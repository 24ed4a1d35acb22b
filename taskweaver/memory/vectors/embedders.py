"""Embedders: a static table of vectors for pieces of words, and a model at an endpoint.

``table.bin`` and ``pieces.txt`` are made by ``bench/retrieval/make_table.py``; ``ORIGIN.txt`` names
their source. numpy is loaded by the first search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from taskweaver.errors import TaskWeaverError
from taskweaver.utils.retrieval import Embedder, is_wide, telling_words

DIMENSIONS = 128
_FOLDER = Path(__file__).parent
_FIRST_BYTE = 3
"""Row of byte 0: a character without a row of its own is made of its bytes."""

_MOST_CHARS = 20_000
"""Characters of a text that its vector is made of."""

_LONGEST_PART = 64
"""Characters whose pieces are joined at once: the time is quadratic."""

_MOST_NEAR = 500
"""Texts of all branches that are given as near a query."""

_STATIC_FLOOR, _MODEL_FLOOR = 0.25, 0.2
"""Least cosine of a text that answers a query."""


@dataclass
class VectorShelf:
    """Unit vectors in one matrix, which all are compared with a query. See `Shelf`."""

    _embed: Callable[[Sequence[str]], list[bytes]]
    _floor: float
    _count: int = 0
    _matrix: Any = None

    def add(self, vectors: Sequence[bytes], /) -> None:
        """Add vectors of one length."""
        import numpy as np

        if not vectors:
            return
        if len({len(vector) for vector in vectors}) != 1:
            raise ValueError("the vectors have several lengths")
        new, end = _unit(b"".join(vectors), len(vectors[0])), self._count + len(vectors)
        if self._matrix is None or end > len(self._matrix):
            grown = np.zeros((2 * end, new.shape[1]), np.float32)
            if self._matrix is not None:
                grown[: self._count] = self._matrix[: self._count]
            self._matrix = grown
        self._matrix[self._count : end] = new
        self._count = end

    def nearest(self, query: str, /) -> list[tuple[int, float]]:
        """Return place and cosine of each vector near a query, the nearest first; see `Shelf`."""
        import numpy as np

        if not self._count:
            return []
        (vector,) = self._embed([query])
        # Not `@`: the threads of a BLAS wait for each other where the cores are busy.
        scores = np.einsum("ij,j->i", self._matrix[: self._count], _unit(vector, len(vector))[0])
        near = np.flatnonzero(scores >= self._floor)
        if len(near) > _MOST_NEAR:
            near = near[np.argpartition(scores[near], -_MOST_NEAR)[-_MOST_NEAR:]]
        near = near[np.lexsort((near, -scores[near]))]
        return list(zip(near.tolist(), scores[near].tolist(), strict=True))


def _unit(vectors: bytes, length: int) -> Any:
    """Return vectors of 8-bit numbers as rows of length 1, or 0."""
    import numpy as np

    rows = np.frombuffer(vectors, np.int8).reshape(-1, length).astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1)


def _packed(vector: Any) -> bytes:
    """Return a vector as 8-bit numbers; the length is lost, the direction stays."""
    import numpy as np

    largest = float(np.abs(vector).max(initial=0.0)) or 1.0
    return bytes(np.round(vector * (127 / largest)).astype(np.int8))


def _checked(answer: Sequence[Sequence[float]], count: int) -> list[bytes]:
    """Return the vectors of a model's answer as 8-bit numbers."""
    import numpy as np

    try:
        rows = np.asarray(answer, np.float64)
    except (TypeError, ValueError):  # texts, or vectors of several lengths
        rows = np.empty(0)
    if rows.ndim != 2 or len(rows) != count or not rows.size or not np.isfinite(rows).all():
        raise TaskWeaverError("The embedding model's answer has no vectors of one length.")
    return list(map(_packed, rows))


class StaticEmbedder:
    """The table of the package: the vector of a text is the sum of the vectors of its pieces."""

    model = "static-128"

    def embed(self, texts: Sequence[str], /) -> list[bytes]:
        """Return a vector for each text."""
        table, _ = _loaded()
        found = []
        for text in texts:
            words = telling_words(text[:_MOST_CHARS])
            places = [place for word in words for part in _cut(word) for place in _rows(part)]
            found.append(_packed(table[places].astype("float32").sum(axis=0)))
        return found

    def shelf(self) -> VectorShelf:
        """Return an empty shelf."""
        return VectorShelf(self.embed, _STATIC_FLOOR)


@cache
def _loaded() -> tuple[Any, dict[str, int]]:
    """Return the table, and the row of each piece."""
    import numpy as np

    table = np.fromfile(_FOLDER / "table.bin", np.int8).reshape(-1, DIMENSIONS)
    pieces = (_FOLDER / "pieces.txt").read_text("utf-8").split("\n")
    return table, {piece: row for row, piece in enumerate(pieces) if piece}


def _cut(word: str) -> list[str]:
    return [word[at : at + _LONGEST_PART] for at in range(0, len(word), _LONGEST_PART)]


@lru_cache(maxsize=20_000)
def _rows(word: str) -> tuple[int, ...]:
    """Return the rows of a word's pieces: pairs are joined, the most frequent piece first."""
    _, rows = _loaded()
    pieces = list(word) if is_wide(word) else ["\u2581", *word]
    while True:
        pairs = [rows.get(one + two) for one, two in pairwise(pieces)]
        row, at = min(
            ((row, at) for at, row in enumerate(pairs) if row is not None), default=(0, 0)
        )
        if not row:
            break
        pieces[at : at + 2] = ["".join(pieces[at : at + 2])]
    found: list[int] = []
    for piece in pieces:
        row_of = rows.get(piece)
        found += (
            [row_of]
            if row_of is not None
            else [_FIRST_BYTE + byte for byte in piece.encode("utf-8", "replace")]
        )
    return tuple(found)


class ModelEmbedder:
    """An embedding model at an endpoint. Once it fails it is not asked again."""

    def __init__(
        self,
        model: str,
        ask: Callable[[Sequence[str]], list[list[float]]],
        tell: Callable[[str], None],
    ) -> None:
        """Take a model.

        Args:
            model: Name of the model.
            ask: Returns the vectors of texts; raises `TaskWeaverError` if the call fails.
            tell: Receives the reason why texts are compared by words alone.
        """
        self.model = model
        self._ask = ask
        self._tell = tell
        self._problem: TaskWeaverError | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], /) -> list[bytes]:
        """Return a vector for each text.

        Raises:
            TaskWeaverError: If the model cannot be asked, now or earlier.
        """
        if self._problem is not None:
            raise self._problem
        try:
            return _checked(self._ask([text[:_MOST_CHARS] for text in texts]), len(texts))
        except TaskWeaverError as error:
            if getattr(error, "kind", "") != "cancelled":
                with self._lock:
                    is_new, self._problem = self._problem is None, error
                if is_new:
                    self._tell(f"Texts are compared by words alone from now on: {error}")
            raise

    def shelf(self) -> VectorShelf:
        """Return an empty shelf."""
        return VectorShelf(self.embed, _MODEL_FLOOR)


def embedder(
    model: str,
    ask: Callable[[Sequence[str]], list[list[float]]],
    tell: Callable[[str], None],
) -> Embedder | None:
    """Return a configured embedding model, else the table; None where there is neither.

    Args:
        model: Name of the model; empty for none.
        ask: As `ModelEmbedder`.
        tell: As `ModelEmbedder`.
    """
    return ModelEmbedder(model, ask, tell) if model else static_embedder()


@cache
def static_embedder() -> Embedder | None:
    """Return the embedder of the package; None where the table is missing."""
    has_table = all((_FOLDER / name).is_file() for name in ("table.bin", "pieces.txt"))
    return StaticEmbedder() if has_table else None
