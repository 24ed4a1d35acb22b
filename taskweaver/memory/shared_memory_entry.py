"""Entries that one role shares with the others beside the messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NotRequired, Self, TypedDict, get_args

from taskweaver.memory.type_vars import SharedMemoryEntryScope, SharedMemoryEntryType
from taskweaver.utils.ids import create_id


class SharedMemoryEntryDict(TypedDict):
    """Wire form. Keys are as in the YAML files."""

    type: str
    content: str
    scope: SharedMemoryEntryScope
    id: NotRequired[str]


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

    def to_dict(self) -> SharedMemoryEntryDict:
        """Return the wire form."""
        return {"type": self.type, "content": self.content, "scope": self.scope, "id": self.id}

    @classmethod
    def from_dict(cls, data: SharedMemoryEntryDict) -> Self:
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
