"""Chat messages, under the import path roles have used for long."""

from taskweaver.llm.types import ChatMessage, format_chat_message

ChatMessageType = ChatMessage

__all__ = ["ChatMessageType", "format_chat_message"]
