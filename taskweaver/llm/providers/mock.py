"""The original's mock model: fixed replies, or the replies in the file ``cache/mock.yaml``.

No endpoint is ever asked: a reply that is not in the file is an error. Replies of this version
are recorded with ``llm.api_type`` ``recorded``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest
from taskweaver.utils.files import read_yaml

T = TypeVar("T")

FIXED_VECTOR = (0.0,) * 64
_ROLES = ("assistant", "user", "system", "function")
_HINT = (
    "Set llm.mock.mode to fixed, or record replies with llm.api_type recorded, see"
    " 'Which model answers' in the documentation."
)


@dataclass(frozen=True, slots=True)
class MockSettings:
    """Configuration of the mock.

    Attributes:
        mode: ``fixed``, ``playback_only`` or ``playback_or_record``.
        fixed_reply: The fixed reply, a chat message as JSON.
        fixed_vector: The fixed vector as JSON; empty for zeros.
        path: File of the replies to play back.
    """

    mode: str
    fixed_reply: str
    fixed_vector: str
    path: Path

    @property
    def is_fixed(self) -> bool:
        """Whether every reply is the same."""
        return self.mode == "fixed"


class MockFile:
    """The replies and vectors in a file of the original, read once when one is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def reply(self, messages: Sequence[ChatMessage]) -> str | None:
        """Return the reply to a chat, or None if the file has no such reply."""
        asked = "\n".join(f"{message['role']}:{message['content']}" for message in messages)
        stored = self._entry("completion_store", asked)
        if stored is None:
            return None
        if isinstance(stored, dict):
            return str(stored.get("content", ""))
        role, colon, content = str(stored).partition(":")
        return content if colon and role in _ROLES else str(stored)

    def vector(self, text: str) -> list[float] | None:
        """Return the vector of a text, or None if the file has no such vector.

        Raises:
            ModelError: Of kind ``configuration``, if the file does not hold one there.
        """
        stored = self._entry("embedding_store", text)
        if stored is None:
            return None
        try:
            return [float(part) for part in str(stored).split(",")]
        except ValueError as error:
            raise self._unreadable(error) from error

    def missing(self, what: str, model: str) -> ModelError:
        """Return the error for something that is not in the file."""
        detail = f"{self.path} holds no {what}, and with llm.use_mock no endpoint is asked."
        return ModelError("recording_miss", detail, model, _HINT)

    def _entry(self, store: str, asked: str) -> Any:
        key = hashlib.md5(asked.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        entries = self._stores.get(store) or {}
        try:
            return entries[key]["value"] if key in entries else None
        except (TypeError, KeyError) as error:
            raise self._unreadable(error) from error

    @cached_property
    def _stores(self) -> dict[str, Any]:
        if not self.path.exists():
            return {}
        try:
            stores = read_yaml(self.path)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        if not isinstance(stores, dict):
            raise self._unreadable(TypeError("it is not a mapping"))
        return stores

    def _unreadable(self, error: Exception) -> ModelError:
        detail = f"{self.path} is not a mock file of the original: {error}"
        return ModelError("configuration", detail, hint="Set llm.mock.cache_path.")


class MockService:
    """Completion service that asks no endpoint. Thread-safe."""

    def __init__(self, settings: MockSettings) -> None:
        self._settings = settings
        self._file = MockFile(settings.path)

    @property
    def model(self) -> str:
        """``mock/`` and the mode."""
        return f"mock/{self._settings.mode}"

    def stream(self, request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request.

        Raises:
            ModelError: Of kind ``recording_miss``, if the file has no reply; ``configuration``, if
                the file or the fixed reply cannot be read.
        """
        text = self._fixed() if self._settings.is_fixed else self._file.reply(request.messages)
        if text is None:
            raise self._file.missing("reply to these messages", self.model)
        yield Chunk(text)
        yield Chunk(finish="stop")

    def close(self) -> None:
        """Nothing to release."""

    def _fixed(self) -> str:
        name = "llm.mock.fixed_chat_responses"
        return _read(name, self._settings.fixed_reply, lambda data: _text(data["content"]))


class MockEmbedding:
    """Embedding service that asks no endpoint. Thread-safe."""

    def __init__(self, settings: MockSettings, model: str) -> None:
        self.model = model or "mock"
        self._settings = settings
        self._file = MockFile(settings.path)

    def get_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order.

        Raises:
            ModelError: As `MockService.stream`.
        """
        return [self._vector(text) for text in texts]

    def close(self) -> None:
        """Nothing to release."""

    def _vector(self, text: str) -> list[float]:
        if self._settings.is_fixed:
            shown = self._settings.fixed_vector
            name = "llm.mock.fixed_embedding_responses"
            return _read(name, shown, _flat) if shown else list(FIXED_VECTOR)
        vector = self._file.vector(text)
        if vector is None:
            raise self._file.missing("vector of this text", self.model)
        return vector


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
