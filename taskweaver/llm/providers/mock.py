"""The original's mock model: a fixed reply and a fixed vector.

No endpoint is ever asked. Replies are recorded and played back by ``llm.api_type`` ``recorded``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import Chunk, ModelRequest

T = TypeVar("T")

_ZEROS = (0.0,) * 64


@dataclass(frozen=True, slots=True)
class Mock:
    """Completion and embedding service that asks no endpoint. Thread-safe.

    Attributes:
        mode: ``fixed``.
        reply: The fixed reply, a chat message as JSON.
        vector: The fixed vector as JSON; empty for zeros.
    """

    mode: str
    reply: str
    vector: str

    @property
    def model(self) -> str:
        """``mock/`` and the mode."""
        return f"mock/{self.mode}"

    def stream(self, _request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request.

        Raises:
            ModelError: Of kind ``configuration``, if the fixed reply cannot be read.
        """
        name = "llm.mock.fixed_chat_responses"
        yield Chunk(_read(name, self.reply, lambda data: _text(data["content"])))
        yield Chunk(finish="stop")

    def get_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the fixed vector for each text. Raises as `stream`."""
        name = "llm.mock.fixed_embedding_responses"
        vector = _read(name, self.vector, _flat) if self.vector else list(_ZEROS)
        return [vector for _ in texts]

    def close(self) -> None:
        """Nothing to release."""


def _read(name: str, text: str, convert: Callable[[Any], T]) -> T:
    """Return the value in a fixed response."""
    try:
        return convert(json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        detail = f"{name} cannot be read ({type(error).__name__}: {error})."
        raise ModelError("configuration", detail) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("the content is not a text")
    return value


def _flat(data: Any) -> list[float]:
    """Return a vector. The original's default is a list with the vector as the only member."""
    if isinstance(data, list) and data and isinstance(data[0], list):
        data = data[0]
    return [float(part) for part in data]
