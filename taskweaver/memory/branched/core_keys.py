"""`CoreKeys`: core memory of a branch as a mapping from keys to values."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence

from taskweaver.memory.branched.parts import MemoryParts
from taskweaver.memory.branched.types import CoreEntry
from taskweaver.memory.branched.values import tag_filter


class CoreKeys(MutableMapping[str, str]):
    """Core memory in view of a branch. Every write is committed when its call returns."""

    def __init__(self, parts: MemoryParts, branch_id: str) -> None:
        self._parts = parts
        self._id = branch_id

    def __repr__(self) -> str:
        """Return the branch, for people."""
        return f"CoreKeys({self._id!r})"

    def entries(self, *, at: int | None = None) -> dict[str, CoreEntry]:
        """Return the entries in view, now or at a row, by key."""
        with self._parts.database.snapshot() as connection:
            branch = self._parts.branches.find(connection, self._id)
            return self._parts.core.view(connection, branch, at=at)

    def values_of(self, keys: Sequence[str] | None = None) -> dict[str, str]:
        """Return the values of keys in view (None: of all); missing keys are left out."""
        keys = None if keys is None else tag_filter(keys, "keys")
        view = self.entries()
        chosen = view if keys is None else {key: view[key] for key in keys if key in view}
        details = {"keys": None if keys is None else list(keys), "count": len(chosen)}
        self._parts.log.add("mem_core_get", branch_id=self._id, details=details)
        return {key: entry.value for key, entry in chosen.items()}

    def set(
        self, key: str, value: str, *, ttl: str | float | None = None, importance: int = 3
    ) -> None:
        """Set a key; see `Core.put`.

        `ttl` is in seconds, or a text as ``"30m"``, ``"2h"``, ``"7d"``; None is no end. Importance
        is from 1 to 5; 5 is never evicted, and numbers beyond become 1 or 5.

        Raises:
            InvalidUpdate: If an argument is malformed, or the value exceeds core memory.
            BranchSealed: If the branch takes no writes.
        """
        self._parts.database.write(
            lambda writer: self._parts.core.put(
                writer, self._id, key, value, importance=importance, ttl=ttl
            )
        )
        details = {"key": key, "value_preview": str(value), "importance": importance, "ttl": ttl}
        self._parts.log.add("mem_core_set", branch_id=self._id, details=details)

    def delete(self, key: str) -> bool:
        """Hide a key from this branch on; return whether it was in view."""
        was_there = self._parts.database.write(
            lambda writer: self._parts.core.delete(writer, self._id, key)
        )
        details = {"key": key, "reason": "explicit"}
        self._parts.log.add("mem_core_del", branch_id=self._id, details=details)
        return was_there

    def __getitem__(self, key: str) -> str:
        """Return the value of a key in view.

        Raises:
            KeyError: If the key is not in view.
        """
        if not isinstance(key, str):
            raise KeyError(key)
        return self.values_of([key])[key]

    def __setitem__(self, key: str, value: str) -> None:
        """Set a key, with the default importance."""
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        """Hide a key from this branch on.

        Raises:
            KeyError: If the key is not in view.
        """
        if not self.delete(key):
            raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys in view, sorted."""
        return iter(self.entries())

    def __len__(self) -> int:
        """Return the number of keys in view."""
        return len(self.entries())
