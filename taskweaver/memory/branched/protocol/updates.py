"""Applies a checked block to a branch: one transaction, then the requested maintenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from taskweaver.memory.branched.errors import RecordNotVisible
from taskweaver.memory.branched.protocol.protocol import check_updates
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.tiers.branches import BranchView
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.upkeep.consolidation import Consolidation, Pressures
from taskweaver.memory.branched.values import checked_text, dump

LLM_TAG = "LLM_INSIGHT"
_PROGRAMS_IMPORTANCE = 3


@dataclass
class Updates:
    """Applies blocks of models to their memory."""

    _tiers: Tiers
    _consolidation: Consolidation
    _pressures: Pressures

    def apply(
        self,
        branch_id: str,
        updates: object,
        *,
        node_id: str | None = None,
        phase: str | None = None,
        attempt: str | int | None = None,
    ) -> dict[str, Any]:
        """Apply a block, whole or not at all: writes, then reads, then maintenance.

        Its events are noted for a node and a phase. The same block of the same node and `attempt`
        is applied once.

        Returns:
            A result for each operation, by its name; of a block applied before, its results
            then, with ``already_applied``.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            RecordNotVisible: If the block names a record the branch does not see.
            InvalidUpdate: If anything in the block is wrong.
        """
        checked = check_updates(updates)
        self._shorten(checked, branch_id)
        given = {"node_id": node_id, "phase": phase}
        marks = {name: value for name, value in given.items() if value}
        identity = _identity(branch_id, node_id, attempt, checked)

        def act(writer: Writer) -> dict[str, Any]:
            query = "SELECT results FROM applied_blocks WHERE id = ?"
            done = writer.connection.execute(query, (identity,)).fetchone()
            if done is not None:
                return {**json.loads(done[0]), "already_applied": True}
            results = self._write(writer, branch_id, checked, marks, author_tags=(LLM_TAG,))
            branch = self._tiers.branches.find(writer.connection, branch_id)
            results |= self._read(BranchView(writer.connection, branch), checked)
            if identity is not None:
                row = (identity, dump(results), writer.now)
                writer.connection.execute("INSERT INTO applied_blocks VALUES (?, ?, ?)", row)
            return results

        if not checked.keys().isdisjoint(("archival_search", "recall_search")):
            self._tiers.index.refresh()
        results = self._tiers.database.write(act)
        if results.get("already_applied"):
            return results
        if "recall" in checked:
            self._consolidation.after_append(branch_id)
        return results | self._maintain(branch_id, checked)

    def write(self, branch_id: str, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Write core keys, an event and archival records of a program together; return ids by part.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
            InvalidUpdate: If anything in it is wrong.
        """
        given = parts.get("core")
        if isinstance(given, Mapping):
            parts = {**parts, "core": [_weighed(key, value) for key, value in given.items()]}
        checked = check_updates(parts)
        self._shorten(checked, branch_id)
        results = self._tiers.database.write(
            lambda writer: self._write(writer, branch_id, checked, {}, author_tags=())
        )
        if "recall" in checked:
            self._tiers.database.after_commit(lambda: self._consolidation.after_append(branch_id))
        return results

    def _shorten(self, checked: Mapping[str, Any], branch_id: str) -> None:
        """Bring new texts to the allowed length, before the transaction is open."""
        for item in (*checked.get("archival", []), *checked.get("archival_update", [])):
            if item.get("text") is not None:
                item["text"] = self._tiers.archival.prepare(
                    item["text"], lambda: self._tiers.core.context(branch_id)
                )

    def _write(
        self,
        writer: Writer,
        branch_id: str,
        checked: Mapping[str, Any],
        marks: Mapping[str, str],
        *,
        author_tags: tuple[str, ...],
    ) -> dict[str, Any]:
        tiers, place = self._tiers, (writer, branch_id)
        results: dict[str, Any] = {}
        unseen: list[str] = []

        def each(name: str, act: Callable[[Any], object], part: str = "") -> None:
            """Carry out an operation on each of its items, and keep the results."""
            for n, item in enumerate(checked.get(name, ())):
                with _noted(unseen, f"{name}[{n}]{part}"):
                    results.setdefault(name, []).append(act(item))

        def put(entry: Mapping[str, Any]) -> object:
            tiers.core.put(*place, **entry)
            return entry["key"]

        def add(item: Mapping[str, Any]) -> str:
            tags = [*author_tags, *item["tags"]]
            return str(tiers.archival.add(*place, **{**item, "tags": tags}))

        def change(item: Mapping[str, Any]) -> str:
            rest = {name: value for name, value in item.items() if name != "id"}
            return str(tiers.archival.update(*place, item["id"], **rest))

        each("core", put)
        if keys := checked.get("core_delete"):
            results["core_delete"] = {key: tiers.core.delete(*place, key) for key in keys}
        each("archival", add, ".replaces")
        each("archival_update", change, ".id")
        each("archival_delete", lambda id_: str(tiers.archival.delete(*place, id_)))
        each("recall", lambda event: tiers.recall.append(*place, {**marks, **event}))
        if "recall_evict" in checked:
            with _noted(unseen, "recall_evict.ids"):
                count = tiers.recall.evict(*place, **checked["recall_evict"])
                results["recall_evict"] = {"evicted_count": count, "archived_count": count}
        each("recall_delete", lambda number: tiers.recall.delete(*place, number))
        if unseen:
            raise RecordNotVisible("\n".join(["memory_update: nothing was applied.", *unseen]))
        self._consolidation.within_append(writer, branch_id)
        return results

    def _read(self, view: BranchView, checked: Mapping[str, Any]) -> dict[str, Any]:
        results: dict[str, Any] = {}
        if "core_get" in checked:
            entries = self._tiers.core.entries(view)
            found = {key: entries.get(key) for key in checked["core_get"]}
            results["core_get"] = {key: entry and entry.value for key, entry in found.items()}
        if "archival_search" in checked:
            records = self._tiers.search.find(view, **checked["archival_search"])
            results["archival_search"] = [
                {
                    "id": str(record.id),
                    "text": record.text,
                    "tags": list(record.tags),
                    "match": record.match,
                }
                for record in records
            ]
        if "recall_search" in checked:
            events = self._tiers.recall.search(view, **checked["recall_search"])
            results["recall_search"] = [
                {
                    "id": event.seq,
                    "kind": event.kind,
                    "summary": event.text,
                    "count": event.count,
                    "ts": event.data.get("ts", event.created_at),
                }
                for event in events
            ]
        return results

    def _maintain(self, branch_id: str, checked: Mapping[str, Any]) -> dict[str, Any]:
        results: dict[str, Any] = {}
        if checked.get("recall_summarize"):
            count = self._consolidation.consolidate(branch_id)
            results["recall_summarize"] = {"status": "success", "events_consolidated": count}
        if checked.get("consolidate"):
            relief = self._pressures.relieve(branch_id, "high")
            results["consolidate"] = {"status": "success", "details": asdict(relief)}
        return results


@contextmanager
def _noted(unseen: list[str], path: str) -> Iterator[None]:
    """Note an id that the branch does not see, so that one error names all ids."""
    try:
        yield
    except RecordNotVisible as error:
        unseen.append(f"{path}: {error}")


def _weighed(key: str, value: Any) -> dict[str, Any]:
    """Return a core entry of a program, with the default importance unless given."""
    is_full = isinstance(value, Mapping) and "value" in value
    entry = {"key": key, **(value if is_full else {"value": value})}
    if entry.get("importance") is None:
        entry["importance"] = _PROGRAMS_IMPORTANCE
    return entry


def _identity(
    branch_id: str, node_id: str | None, attempt: str | int | None, checked: Mapping[str, Any]
) -> str | None:
    if attempt is None:
        return None
    node = None if node_id is None else checked_text("node_id", node_id, may_be_empty=True)
    tried = checked_text("attempt", attempt, may_be_empty=True)
    whole = json.dumps([branch_id, node, tried, checked], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()
