"""Entries that one role shares with the others beside the messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, get_args

from taskweaver.memory.type_vars import SharedMemoryEntryScope, SharedMemoryEntryType
from taskweaver.utils.ids import create_id


@dataclass(slots=True)
class SharedMemoryEntry:
    """An entry the Planner or another role shares.

    Attributes:
        type: Type of the content, e.g. ``plan`` or ``example_sub_path``.
        content: The text itself.
        scope: How long it holds: this round, or the rest of the conversation.
        id: Unique; kept when an entry is loaded.
    """

    type: SharedMemoryEntryType
    content: str
    scope: SharedMemoryEntryScope
    id: str = field(default_factory=lambda: create_id("sme"))

    @classmethod
    def create(
        cls,
        type: SharedMemoryEntryType,
        content: str,
        scope: SharedMemoryEntryScope,
        id: str | None = None,
    ) -> Self:
        """Build an entry, with a new id unless one is given."""
        return cls.from_dict({"type": type, "content": content, "scope": scope, "id": id or ""})

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form. Keys are as in the YAML files."""
        return {"type": self.type, "content": self.content, "scope": self.scope, "id": self.id}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build an entry from the wire form.

        Raises:
            ValueError: If the scope is not a `SharedMemoryEntryScope`.
        """
        scopes = get_args(SharedMemoryEntryScope)
        if data["scope"] not in scopes:
            raise ValueError(f"scope is one of {scopes}, not {data['scope']!r}")
        return cls(
            type=data["type"],
            content=data["content"],
            scope=data["scope"],
            id=data.get("id") or create_id("sme"),
        )
