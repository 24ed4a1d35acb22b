"""Core, recall and archival memory, as `MemoryManager` offers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from taskweaver.memory.branched.archival import public
from taskweaver.memory.branched.digests import RECALL
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.face import Face
from taskweaver.memory.branched.operation_lines import event_details, log_node_write
from taskweaver.memory.branched.types import CoreEntry, Digest, Event, Record
from taskweaver.memory.branched.values import tag_filter, whole

Scope = Literal["all", "core", "recall", "archival"]


class TierFace(Face):
    """Reads and writes the three tiers of a branch."""

    def core(self, branch_id: str | None = None, *, at: int | None = None) -> dict[str, CoreEntry]:
        """Return core memory as a branch sees it, or saw it at a row, by key."""
        with self._parts.database.snapshot() as connection:
            branch = self._parts.branches.find(connection, self._at_home(branch_id))
            return self._parts.core.view(connection, branch, at=at)

    def mem_core_get(
        self, keys: Sequence[str] | None = None, *, branch_id: str | None = None
    ) -> dict[str, str]:
        """Return the values of keys in view (None: of all); missing keys are left out."""
        view = self.core(branch_id)
        wanted = [keys] if isinstance(keys, str) else keys
        chosen = view if wanted is None else {key: view[key] for key in wanted if key in view}
        details = {"keys": None if wanted is None else list(wanted), "count": len(chosen)}
        self._log.add("mem_core_get", branch_id=branch_id, details=details)
        return {key: entry.value for key, entry in chosen.items()}

    def mem_core_set(
        self,
        key: str,
        value: str,
        *,
        ttl: str | float | None = None,
        importance: int = 3,
        branch_id: str | None = None,
    ) -> None:
        """Set a core key; see `Core.put` for what is refused."""
        home = self._at_home(branch_id)
        self._parts.database.write(
            lambda writer: self._parts.core.put(
                writer, home, key, value, importance=importance, ttl=ttl
            )
        )
        details = {"key": key, "value_preview": str(value), "importance": importance, "ttl": ttl}
        self._log.add("mem_core_set", branch_id=home, details=details)

    def mem_core_del(self, key: str, *, branch_id: str | None = None) -> bool:
        """Hide a key from a branch on; return whether it was in view."""
        home = self._at_home(branch_id)
        was = self._parts.database.write(lambda writer: self._parts.core.delete(writer, home, key))
        self._log.add("mem_core_del", branch_id=home, details={"key": key, "reason": "explicit"})
        return was

    def set_core(self, branch_id: str, key: str, value: str, **options: Any) -> None:
        """As `mem_core_set`, the branch first."""
        self.mem_core_set(key, value, branch_id=branch_id, **options)

    def get_core(self, branch_id: str, key: str) -> str | None:
        """Return the value of a key in view, or None."""
        return self.mem_core_get([key], branch_id=branch_id).get(key)

    def events(
        self, branch_id: str | None = None, *, limit: int | None = None, at: int | None = None
    ) -> list[Event]:
        """Return the events a branch sees, newest first, those a digest covers too."""
        with self._parts.database.snapshot() as connection:
            branch = self._parts.branches.find(connection, self._at_home(branch_id))
            most = None if limit is None else whole("limit", limit)
            return self._parts.recall.visible(connection, branch, most, at=at)

    def digest(self, branch_id: str | None = None, *, at: int | None = None) -> Digest | None:
        """Return the newest summary of old events a branch sees."""
        with self._parts.database.snapshot() as connection:
            branch = self._parts.branches.find(connection, self._at_home(branch_id))
            return self._parts.digests.newest(connection, branch, RECALL, at=at)

    def mem_recall_append(self, event: Mapping[str, Any], *, branch_id: str | None = None) -> int:
        """Append an event and return its id; see `Recall.append` for its fields.

        The branch is `branch_id`, else the event's `branch_id` or `node_id`, else the root.
        """
        if not isinstance(event, Mapping):
            raise InvalidUpdate("recall", "must be an object with `kind` and `content`")
        home = self._at_home(branch_id or event.get("branch_id") or event.get("node_id"))
        seq = self._parts.database.write(
            lambda writer: self._parts.recall.append(writer, home, event)
        )
        self._parts.consolidation.after_append(home)
        self._log.add(
            "mem_recall_append",
            branch_id=home,
            details=event_details(event),
            node_id=event.get("node_id"),
            phase=event.get("phase"),
        )
        return seq

    def write_event(
        self, branch_id: str, kind: str, text: str, tags: Sequence[str] | None = None, **data: Any
    ) -> int:
        """As `mem_recall_append`, field by field."""
        event = {"kind": kind, "summary": text, "tags": list(tags or ()), **data}
        return self.mem_recall_append(event, branch_id=branch_id)

    def mem_recall_search(
        self, query: str, *, k: int = 20, branch_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the newest `k` events in view with any word of a query; of an empty one, all."""
        most = whole("k", k)
        with self._parts.database.snapshot() as connection:
            branch = self._parts.branches.find(connection, self._at_home(branch_id))
            found = self._parts.recall.search(connection, branch, query, most)
        details = {"query": query, "k": k, "results": len(found)}
        self._log.add("mem_recall_search", branch_id=branch.id, details=details)
        return [
            {
                **event.data,
                "id": event.seq,
                "ts": event.created_at,
                "kind": event.kind,
                "summary": event.text,
                "tags": list(event.tags),
                "count": event.count,
            }
            for event in found
        ]

    def archival(
        self,
        branch_id: str | None = None,
        *,
        tags: Sequence[str] = (),
        limit: int | None = None,
        at: int | None = None,
    ) -> list[Record]:
        """Return the records a branch sees that have all tags, newest first."""
        with self._parts.database.snapshot() as connection:
            branch = self._parts.branches.find(connection, self._at_home(branch_id))
            found = self._parts.archival.visible(connection, branch, tags=tag_filter(tags), at=at)
            return list(islice(found, None if limit is None else whole("limit", limit)))

    def mem_archival_write(
        self,
        text: str,
        *,
        tags: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        branch_id: str | None = None,
    ) -> str:
        """Add a record and return its id; a long text is shortened first."""
        given = meta or {}
        home = self._at_home(branch_id or given.get("branch_id") or given.get("node_id"))
        short = self._shortened(text, home)
        id_ = self._parts.database.write(
            lambda writer: self._parts.archival.add(writer, home, short, tags=tags, meta=meta)
        )
        details = {"record_id": id_, "tags": list(tags), "text_preview": short}
        self._log.add("mem_archival_write", branch_id=home, details=details)
        return str(id_)

    def _shortened(self, text: str, home: str) -> str:
        return self._parts.archival.prepare(text, lambda: self._parts.core.context(home))

    def write_archival(self, branch_id: str, text: str, tags: Sequence[str] | None = None) -> str:
        """As `mem_archival_write`, the branch first."""
        return self.mem_archival_write(text, tags=tags or (), branch_id=branch_id)

    def mem_archival_update(
        self,
        record_id: str | int,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        branch_id: str | None = None,
    ) -> None:
        """Give a record in view another text, tags or meta, from this branch on.

        What is None stays. Raises as `Archival.update`.
        """
        home = self._at_home(branch_id)
        short = None if text is None else self._shortened(text, home)
        self._parts.database.write(
            lambda writer: self._parts.archival.update(
                writer, home, record_id, text=short, tags=tags, meta=meta
            )
        )
        self._log.add("mem_archival_update", branch_id=home, details={"record_id": record_id})

    def mem_archival_search(
        self,
        query: str,
        *,
        tags: Sequence[str] | None = None,
        k: int = 10,
        branch_id: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the `k` best records in view that have all tags; see `Search.find`."""
        most = whole("k", k)
        with self._parts.database.snapshot() as connection:
            branch = self._parts.branches.find(connection, self._at_home(branch_id))
            found = self._parts.search.find(connection, branch, query, most, tags=tags or ())
            names = self._parts.branches.names(connection, (item.branch for item in found))
        details = {"query": query, "k": k, "results": len(found), "tags": list(tag_filter(tags))}
        self._log.add("mem_archival_search", branch_id=branch.id, details=details)
        return [public(item, names) for item in found]

    def retrieve_archival(
        self,
        branch_id: str,
        query: str,
        k: int | None = None,
        tags_filter: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """As `mem_archival_search`, the branch first; `k` defaults to the configured number."""
        most = self.config.retrieval_k if k is None else k
        return self.mem_archival_search(query, tags=tags_filter, k=most, branch_id=branch_id)

    def mem_archival_get(
        self, record_id: str | int, *, branch_id: str | None = None
    ) -> dict[str, Any]:
        """Return the version of a record that a branch sees.

        Raises:
            RecordNotVisible: If it sees none.
        """
        with self._parts.database.snapshot() as connection:
            branch = self._parts.branches.find(connection, self._at_home(branch_id))
            found = self._parts.archival.get(connection, branch, record_id)
            names = self._parts.branches.names(connection, [found.branch])
        self._log.add("mem_archival_get", branch_id=branch.id, details={"record_id": record_id})
        return public(found, names)

    def mem_node_fork(
        self, parent_node_id: str | None, child_node_id: str, *, phase: str | None = None
    ) -> None:
        """Make the branch of a node below another's; with no parent, below the root.

        Raises:
            UnknownBranch: If there is no such parent.
            InvalidUpdate: If the child is there already.
        """
        parent = parent_node_id or self.root_branch_id
        made = self._parts.branches.create(parent, child_node_id, node_uid=child_node_id)
        self._log.add(
            "mem_node_fork",
            branch_id=made.id,
            details={"parent_node_id": parent_node_id},
            node_id=child_node_id,
            phase=phase,
        )

    def mem_node_read(self, node_id: str, scope: Scope = "all") -> dict[str, Any]:
        """Return what a node sees: `core`, the newest `recall` and `archival`, or one of them.

        Raises:
            UnknownBranch: If there is no such node.
            InvalidUpdate: If there is no such scope.
        """
        if scope not in {"all", "core", "recall", "archival"}:
            raise InvalidUpdate("scope", f"must be all, core, recall or archival, not {scope!r}")
        found: dict[str, Any] = {}
        with self._parts.database.snapshot():
            if scope in {"all", "core"}:
                found["core"] = self.mem_core_get(branch_id=node_id)
            if scope in {"all", "recall"}:
                found["recall"] = self.mem_recall_search(
                    "", k=self.config.recall_max_events, branch_id=node_id
                )
            if scope in {"all", "archival"}:
                found["archival"] = self.mem_archival_search(
                    "", k=self.config.retrieval_k, branch_id=node_id
                )
        self._log.add("mem_node_read", branch_id=node_id, details={"scope": scope})
        return found

    def mem_node_write(
        self,
        node_id: str,
        *,
        core_updates: Mapping[str, Any] | None = None,
        recall_event: Mapping[str, Any] | None = None,
        archival_records: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Write several things to a node, all or none.

        Raises:
            UnknownBranch, BranchSealed: If the node takes no writes.
            InvalidUpdate: If anything is malformed.
        """
        parts = {"core": core_updates, "recall": recall_event, "archival": archival_records}
        given = {name: value for name, value in parts.items() if value}
        results = self._parts.updates.write(node_id, given)
        log_node_write(self._log, node_id, given, results)
