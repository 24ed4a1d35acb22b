"""The seam between TaskWeaver and whatever thinks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from taskweaver.llm.types import Chunk, ModelRequest


@runtime_checkable
class CompletionService(Protocol):
    """A model behind one method. Implementations are thread-safe and keep no conversation."""

    @property
    def model(self) -> str:
        """Name of the model, as shown to the user."""
        ...

    def stream(self, request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request piece by piece.

        The iterator ends with a chunk that has a `finish`. Closing it early gives the call up.

        Raises:
            ModelError: If the call fails or is cancelled.
        """
        ...

    def close(self) -> None:
        """Release connections."""
        ...


@runtime_checkable
class EmbeddingService(Protocol):
    """Texts to vectors."""

    @property
    def model(self) -> str:
        """Name of the embedding model."""
        ...

    def get_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order.

        Raises:
            ModelError: If the call fails.
        """
        ...
