"""Models: choice, calls, prices. `LLMApi` is the facade for the other packages."""

from taskweaver.llm.api import LLMApi
from taskweaver.llm.base import CompletionService, EmbeddingService
from taskweaver.llm.errors import ModelError
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import (
    ChatMessage,
    Chunk,
    ModelRequest,
    Usage,
    format_chat_message,
)

__all__ = [
    "ChatMessage",
    "Chunk",
    "CompletionService",
    "EmbeddingService",
    "LLMApi",
    "ModelError",
    "ModelRequest",
    "ModelServices",
    "Usage",
    "format_chat_message",
]
