from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.compaction import (
    CompactedMessage,
    CompactionProvider,
    CompactorConfig,
    ContextCompactor,
)
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry

__all__ = [
    "Attachment",
    "AttachmentType",
    "CompactedMessage",
    "CompactionProvider",
    "CompactorConfig",
    "ContextCompactor",
    "Conversation",
    "Memory",
    "Post",
    "Round",
    "SharedMemoryEntry",
]
