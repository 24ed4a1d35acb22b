"""What the parts above the tiers need of a memory; `MemoryManager` offers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.types import Branch, CoreEntry, Event, Record


class MemoryOperations(Protocol):
    """Reading and writing one branch. A branch that is None is the root.

    Each write is committed when it returns. Errors are those of `errors`.
    """

    config: MemoryConfig

    def branches(self) -> list[Branch]:
        """Return every branch, parents before children."""
        ...

    def branch(self, branch_id: str) -> Branch:
        """Return a branch by id or node uid."""
        ...

    def mem_core_get(
        self, keys: Sequence[str] | None = None, *, branch_id: str | None = None
    ) -> dict[str, str]:
        """Return the values of keys in view (None: of all); missing keys are left out."""
        ...

    def mem_core_set(
        self,
        key: str,
        value: str,
        *,
        ttl: str | float | None = None,
        importance: int = 3,
        branch_id: str | None = None,
    ) -> None:
        """Set a core key on the branch."""
        ...

    def mem_archival_write(
        self,
        text: str,
        *,
        tags: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        branch_id: str | None = None,
    ) -> str:
        """Add a record and return its id."""
        ...

    def mem_archival_update(
        self,
        record_id: str | int,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        branch_id: str | None = None,
    ) -> None:
        """Give a record in view another text, tags or meta, for this branch and below."""
        ...

    def mem_recall_append(self, event: Mapping[str, Any], *, branch_id: str | None = None) -> int:
        """Append an event (`kind`, `summary`, `tags`, and more fields); return its id."""
        ...

    def core(self, branch_id: str | None = None) -> dict[str, CoreEntry]:
        """Return core memory as the branch sees it, by key."""
        ...

    def events(self, branch_id: str | None = None, *, limit: int | None = None) -> list[Event]:
        """Return the events the branch sees, newest first, those a digest covers too."""
        ...

    def archival(
        self,
        branch_id: str | None = None,
        *,
        tags: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[Record]:
        """Return the records the branch sees that have all tags, newest first."""
        ...
