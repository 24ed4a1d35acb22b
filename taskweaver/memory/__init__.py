"""Conversations, each role's view of them, their background summaries, and long-term memory.

The public names are imported on first use, so that `taskweaver.memory.branched` does not load the
conversation model; `__init__.pyi` declares them for type checkers.
"""

from taskweaver.utils.lazy import on_demand

_PLACES = {
    "Attachment": "attachment",
    "AttachmentType": "attachment",
    "CompactedMessage": "compaction",
    "CompactionProvider": "compaction",
    "CompactorConfig": "compaction",
    "ContextCompactor": "compaction",
    "Conversation": "conversation",
    "Memory": "memory",
    "Post": "post",
    "Round": "round",
    "SharedMemoryEntry": "shared_memory_entry",
}
__all__ = list(_PLACES)
__getattr__, __dir__ = on_demand(__name__, _PLACES)
