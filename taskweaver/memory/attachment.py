"""Typed data on a post.

The wire form of an attachment is ``{id, type, content, extra}``. `extra` is plain data, or a
`SharedMemoryEntry`, which is written with its own wire form and comes back as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, nonmember
from typing import Any, Self

from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.utils.ids import create_id


class AttachmentType(Enum):
    """Type of an attachment. Value and name are the same.

    A ``reply_record`` is for the role's own model alone: it is never shown, masked or summarised.
    """

    plan = "plan"
    current_plan_step = "current_plan_step"
    plan_reasoning = "plan_reasoning"
    stop = "stop"

    thought = "thought"
    reply_type = "reply_type"
    reply_content = "reply_content"
    verification = "verification"

    code_error = "code_error"
    execution_status = "execution_status"
    execution_result = "execution_result"
    artifact_paths = "artifact_paths"
    revise_message = "revise_message"

    function = "function"

    web_exploring_plan = "web_exploring_plan"
    web_exploring_screenshot = "web_exploring_screenshot"
    web_exploring_link = "web_exploring_link"

    session_variables = "session_variables"
    shared_memory_entry = "shared_memory_entry"
    answer_check = "answer_check"
    reply_record = "reply_record"
    alternatives = "alternatives"
    suggestions = "suggestions"

    invalid_response = "invalid_response"
    text = "text"
    image_url = "image_url"

    init_plan = nonmember("init_plan")  # handlers of the original compare types with it


@dataclass(slots=True)
class Attachment:
    """One piece of typed data on a post.

    Attributes:
        id: Unique; kept when an attachment is loaded.
        type: Type of the content.
        content: Usually text; a list of paths for ``artifact_paths``.
        extra: Plain data, or the `SharedMemoryEntry` of a ``shared_memory_entry``.
    """

    id: str
    type: AttachmentType
    content: Any
    extra: Any = field(default=None)

    @classmethod
    def create(
        cls,
        type: AttachmentType | str,
        content: Any,
        id: str | None = None,
        extra: Any = None,
    ) -> Self:
        """Build an attachment, with a new id unless one is given.

        Raises:
            ValueError: If `type` names no `AttachmentType`.
        """
        return cls(id or create_id("atta"), AttachmentType(type), content, extra)

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form. Keys are as in the YAML files."""
        extra = self.extra.to_dict() if isinstance(self.extra, SharedMemoryEntry) else self.extra
        return {"id": self.id, "type": self.type.value, "content": self.content, "extra": extra}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self | None:
        """Build an attachment from the wire form.

        Returns:
            The attachment, or None for a type of old conversations that is no longer read.

        Raises:
            ValueError: If the type is unknown, or a shared entry is malformed.
        """
        if data["type"] == AttachmentType.init_plan:
            return None
        extra = data.get("extra")
        if data["type"] == AttachmentType.shared_memory_entry.value and isinstance(extra, dict):
            extra = SharedMemoryEntry.from_dict(extra)
        return cls.create(data["type"], data["content"], data.get("id"), extra)

    def __repr__(self) -> str:
        return f"{self.type.value.upper()}: {self.content}"
