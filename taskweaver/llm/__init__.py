"""Models: choice, calls, prices. `LLMApi` is the facade for the other packages."""

from taskweaver.llm.api import LLMApi
from taskweaver.llm.base import CompletionService, EmbeddingService
from taskweaver.llm.errors import ModelError, ModelErrorKind
from taskweaver.llm.parsing.json_text import FieldDelta, ParsedReply, ReplyStream, parse_reply
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
    "FieldDelta",
    "LLMApi",
    "ModelError",
    "ModelErrorKind",
    "ModelRequest",
    "ModelServices",
    "ParsedReply",
    "ReplyStream",
    "Usage",
    "format_chat_message",
    "parse_reply",
]
