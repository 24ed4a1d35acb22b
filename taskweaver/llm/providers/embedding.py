"""Texts to vectors, over an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskweaver.llm.transport.endpoint import ConnectionPool, Endpoint
from taskweaver.llm.transport.exchange import Deadlines
from taskweaver.llm.transport.failures import exchange_failure, failure
from taskweaver.utils.redact import redact_secrets

_BATCH = 256


class OpenAIEmbedding:
    """An embedding model at an `endpoint`. Thread-safe."""

    def __init__(self, endpoint: Endpoint, deadlines: Deadlines | None = None) -> None:
        self.endpoint = endpoint
        self._deadlines = deadlines or Deadlines()
        self._lines = ConnectionPool(endpoint)

    @property
    def model(self) -> str:
        """Name of the embedding model."""
        return self.endpoint.model

    def get_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order.

        Raises:
            ModelError: If the call fails.
        """
        vectors: list[list[float]] = []
        for begin in range(0, len(texts), _BATCH):
            vectors += self._embed(texts[begin : begin + _BATCH])
        return vectors

    def close(self) -> None:
        """Close the connections."""
        self._lines.close()

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        import openai

        if not self.endpoint.is_loopback:
            texts = [redact_secrets(text) for text in texts]
        line = self._lines.take()
        limits = self._deadlines
        timeout = openai.Timeout(limits.first_token_s, connect=limits.connect_s)
        try:
            # An empty text is refused by most endpoints; a space means the same.
            answer = line.client.embeddings.create(
                model=self.model,
                input=[text or " " for text in texts],
                encoding_format="float",
                timeout=timeout,
            )
        except (openai.OpenAIError, OSError, ValueError) as error:
            line.close()
            raise exchange_failure(error, self.model) from error
        self._lines.put_back(line)
        return self._vectors(getattr(answer, "data", None), len(texts))

    def _vectors(self, data: Any, count: int) -> list[list[float]]:
        vectors = {item.index: item.embedding for item in data or ()}
        if sorted(vectors) != list(range(count)):
            detail = f"{count} vectors were asked for, {len(vectors)} came."
            raise failure("malformed", detail, self.model)
        return [vectors[at] for at in range(count)]
