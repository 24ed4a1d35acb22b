"""`BranchHandle`: every operation on one branch of a memory, the core keys as a mapping."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from itertools import islice
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.parts import MemoryParts
from taskweaver.memory.branched.protocol.audit import (
    Injection,
    event_details,
    log_block,
    log_node_write,
)
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.tiers.branches import BranchView
from taskweaver.memory.branched.types import (
    Branch,
    CoreEntry,
    Digest,
    Event,
    Moment,
    Pressure,
    PressureLevel,
    Record,
    RenderResult,
    Time,
)
from taskweaver.memory.branched.upkeep.compare import HistoryStep
from taskweaver.memory.branched.upkeep.consolidation import Relief
from taskweaver.memory.branched.values import checked_tags, whole

P = ParamSpec("P")
R = TypeVar("R")


class CoreKeys(MutableMapping[str, str]):
    """Core memory in view of a branch. Every write is committed when the call returns."""

    def __init__(self, parts: MemoryParts, branch_id: str) -> None:
        self._parts = parts
        self._id = branch_id

    def __repr__(self) -> str:
        """Return the branch, for people."""
        return f"CoreKeys({self._id!r})"

    def entries(self, *, at: Moment | None = None) -> dict[str, CoreEntry]:
        """Return the entries in view, now or at a row, by key."""
        with self._parts.branches.view(self._id, at) as view:
            return self._parts.core.entries(view)

    def values_of(self, keys: Sequence[str] | None = None) -> dict[str, str]:
        """Return the values of all keys in view, or of some keys. Missing keys are left out."""
        wanted = None if keys is None else list(checked_tags("keys", keys))
        view = self.entries()
        chosen = view if wanted is None else {key: view[key] for key in wanted if key in view}
        details = {"keys": wanted, "count": len(chosen)}
        self._parts.log.add("mem_core_get", branch_id=self._id, details=details)
        return {key: entry.value for key, entry in chosen.items()}

    def set(
        self, key: str, value: str, *, ttl: str | float | None = None, importance: int = 3
    ) -> None:
        """Set a key (see `Core.put`).

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
        """Hide a key from this branch on, and return whether the key was in view."""
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
        try:
            return self.values_of([key])[key]
        except InvalidUpdate as error:  # no text at all
            raise KeyError(key) from error

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


class BranchHandle:
    """A branch of a memory, to read and to write.

    As a context manager it is a trial: an exception that leaves the block prunes the branch with
    everything below it.

    Attributes:
        id: Id of the branch.
        core: Core memory in view, a mapping from keys to values.
    """

    def __init__(self, parts: MemoryParts, branch_id: str) -> None:
        self.id = branch_id
        self.core = CoreKeys(parts, branch_id)
        self._parts = parts

    def __repr__(self) -> str:
        """Return the id, for people."""
        return f"BranchHandle({self.id!r})"

    def __enter__(self) -> Self:
        """Return the handle itself."""
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Prune the branch after an exception."""
        if error is not None:
            self.prune()

    @property
    def config(self) -> MemoryConfig:
        """Limits and switches of the memory."""
        return self._parts.config

    @property
    def facts(self) -> Branch:
        """Parent, state and further facts of the branch."""
        with self._view() as view:
            return view.branch

    def fork(
        self,
        name: str = "",
        *,
        at: Moment | None = None,
        live: bool = False,
        node_uid: str = "",
        phase: str | None = None,
    ) -> BranchHandle:
        """Create a branch that sees this one in the present state, or in the state at a row.

        Args:
            name: Id of the new branch; empty for a random one.
            at: Newest row in its view; None for the present.
            live: Whether later writes on it are visible to its descendants.
            node_uid: A second name; empty for none.
            phase: Phase of the work, for the log.

        Raises:
            BranchSealed: If this branch is pruned.
            InvalidUpdate: If the name is taken or malformed, or `at` lies in the future.
        """
        made = self._parts.branches.create(
            self.id, name, at=at, live=live, node_uid=node_uid or None
        )
        details = {"parent_node_id": self.id, "child_branch_id": made.id, "at": at}
        self._log("mem_node_fork", details, branch_id=made.id, node_id=made.id, phase=phase)
        return BranchHandle(self._parts, made.id)

    def history(self, *, limit: int = 100) -> list[HistoryStep]:
        """Return the rows of the branch itself, newest first."""
        return self._parts.comparison.history(self.id, limit=limit)

    def promote(self, record: str | int, to: str) -> str:
        """Copy a core key or an archival record (see `BranchComparison.promote`)."""
        result = self._write(self._parts.comparison.promote, record, to)
        self._log("promote", {"record": record, "to": to})
        return result

    def seal(self) -> None:
        """Refuse later writes on the branch, which can still be read and forked."""
        self._parts.upkeep.set_state(self.id, "sealed")
        self._log("seal")

    def prune(self, *, subtree: bool = True) -> list[str]:
        """Prune the branch, by default with the descendants, and return the ids.

        The next garbage collection removes their rows.
        """
        pruned = self._parts.upkeep.set_state(self.id, "pruned", is_whole=subtree)
        self._log("prune", {"branches": len(pruned)})
        return pruned

    def append(self, event: Mapping[str, Any]) -> int:
        """Append an event to recall memory and return the id.

        Args:
            event: `kind`, `content` (or `summary`, or `text`) and `tags`; other fields are data.

        Raises:
            InvalidUpdate: If the event is malformed.
            BranchSealed: If the branch takes no writes.
        """

        def act(writer: Writer) -> int:
            seq = self._parts.recall.append(writer, self.id, event)
            self._parts.consolidation.within_append(writer, self.id)
            return seq

        database, after_append = self._parts.database, self._parts.consolidation.after_append
        seq = database.write(act)
        database.after_commit(lambda: after_append(self.id))
        marks = {"node_id": event.get("node_id"), "phase": event.get("phase")}
        self._log("mem_recall_append", event_details(event), **marks)
        return seq

    def events(self, *, limit: int | None = None, at: Moment | None = None) -> list[Event]:
        """Return the events in view, newest first, events covered by a digest included."""
        most = None if limit is None else whole("limit", limit)
        with self._view(at) as view:
            return self._parts.recall.visible(view, most)

    def occurrences(self, event_id: int | str, *, at: Moment | None = None) -> list[Event]:
        """Return each time an event in view happened, newest first (see `Recall.occurrences`)."""
        with self._view(at) as view:
            return self._parts.recall.occurrences(view, event_id)

    def find_events(self, query: str, k: int = 20) -> list[Event]:
        """Return at most `k` events in view that suit a query (see `Recall.search`)."""
        most = whole("k", k)
        self._parts.index.refresh()
        with self._view() as view:
            found = self._parts.recall.search(view, query, most)
        self._log("mem_recall_search", {"query": query, "k": k, "results": len(found)})
        return found

    def digest(self, *, at: Moment | None = None) -> Digest | None:
        """Return the newest summary of old events in view."""
        with self._view(at) as view:
            return self._parts.recall.digest(view)

    def remember(
        self,
        text: str,
        *,
        tags: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        replaces: Sequence[str | int] = (),
        valid_from: Time | None = None,
        valid_to: Time | None = None,
    ) -> int:
        """Add a record to archival memory and return the id (see `Archival.add`).

        A long text is shortened first. Records that it `replaces` are closed: `at=` still sees
        them, and `closed` lists them.

        Raises:
            InvalidUpdate: If an argument is malformed.
            RecordNotVisible: If a record that is replaced is not in view.
            BranchSealed: If the branch takes no writes.
        """
        short = self._shortened(text)
        times = {"replaces": replaces, "valid_from": valid_from, "valid_to": valid_to}
        id_ = self._write(self._parts.archival.add, short, tags=tags, meta=meta, **times)
        given = list(checked_tags("tags", tags))
        details = {"record_id": id_, "tags": given, "text_preview": short, "text_chars": len(short)}
        self._log("mem_archival_write", details)
        return id_

    def update(
        self,
        record_id: str | int,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        replaces: Sequence[str | int] = (),
        valid_to: Time | None = None,
    ) -> None:
        """Change text, tags, fields or end of a record in view, from this branch on.

        Arguments that are None leave their part unchanged; records that it `replaces` are closed.
        Raises as `Archival.update`.
        """
        short = None if text is None else self._shortened(text)
        changes = {"tags": tags, "replaces": replaces or None, "valid_to": valid_to}
        self._write(self._parts.archival.update, record_id, text=short, meta=meta, **changes)
        changes |= {"text_preview": short, "text_chars": short and len(short)}
        given = {name: value for name, value in changes.items() if value is not None}
        self._log("mem_archival_update", {"record_id": record_id, **given})

    def forget(self, record_id: str | int) -> None:
        """Hide a record from this branch on (see `Archival.delete`)."""
        self._write(self._parts.archival.delete, record_id)
        self._log("mem_archival_delete", {"record_id": record_id})

    def forget_event(self, event_id: str | int) -> None:
        """Hide an event with the repetitions from this branch on (see `Recall.delete`)."""
        self._write(self._parts.recall.delete, event_id)
        self._log("mem_recall_delete", {"event_id": event_id})

    def get(self, record_id: str | int) -> Record:
        """Return the version of a record in view (see `Archival.get`)."""
        with self._view() as view:
            found = self._parts.archival.get(view, record_id)
        self._log("mem_archival_get", {"record_id": record_id})
        return found

    def search(
        self, query: str, k: int = 10, *, tags: Sequence[str] = (), at: Moment | None = None
    ) -> list[Record]:
        """Return the `k` best records in view that have all tags (see `ArchivalSearch.find`)."""
        most, wanted = whole("k", k), checked_tags("tags", tags)
        self._parts.index.refresh()
        with self._view(at) as view:
            found = self._parts.search.find(view, query, most, tags=wanted)
        details = {"query": query, "k": k, "results": len(found), "tags": list(wanted)}
        self._log("mem_archival_search", details)
        return found

    def records(
        self, *, tags: Sequence[str] = (), limit: int | None = None, at: Moment | None = None
    ) -> list[Record]:
        """Return the records in view that have all tags, newest first."""
        with self._view(at) as view:
            found = self._parts.archival.visible(view, tags=checked_tags("tags", tags))
            return list(islice(found, None if limit is None else whole("limit", limit)))

    def closed(self, *, at: Moment | None = None) -> list[Record]:
        """Return the records in view that no longer hold, the last closed first."""
        with self._view(at) as view:
            return self._parts.archival.closed(view)

    def write(
        self,
        *,
        core: Mapping[str, Any] | None = None,
        event: Mapping[str, Any] | None = None,
        records: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Write core keys, an event and records in one transaction: all or none.

        Raises:
            InvalidUpdate: If anything is malformed.
            BranchSealed: If the branch takes no writes.
        """
        parts = {"core": core, "recall": event, "archival": records}
        given = {name: value for name, value in parts.items() if value}
        if event is not None:
            given["recall"] = event
        results = self._parts.updates.write(self.id, given)
        log_node_write(self._parts.log, self.id, given, results)

    def apply(
        self,
        updates: Mapping[str, Any],
        node_id: str | None = None,
        phase: str | None = None,
        *,
        attempt: str | int | None = None,
    ) -> dict[str, Any]:
        """Apply a model's block, whole or not at all (see `Updates.apply`)."""
        results = self._parts.updates.apply(
            self.id, updates, node_id=node_id, phase=phase, attempt=attempt
        )
        marks = {"branch_id": self.id, "node_id": node_id, "phase": phase}
        log_block(self._parts.log, updates, results, **marks)
        return results

    def render(
        self,
        task_hint: str | None = None,
        budget_chars: int | None = None,
        *,
        task: str = "",
        budget_tokens: int | None = None,
        at: Moment | None = None,
        leave_out: Collection[str] = (),
    ) -> RenderResult:
        """Return the memory rendered for a prompt, with the ids of the parts.

        See `Renderer.render`.
        """
        result = self._parts.renderer.render(
            self.id,
            task_hint=task_hint,
            task=task,
            budget_chars=budget_chars,
            budget_tokens=budget_tokens,
            at=at,
            leave_out=leave_out,
        )
        shown = {section.title: len(section.shown) for section in result.sections}
        details = {"seq": result.seq, "chars": len(result.text), "shown": shown}
        self._log("render_for_prompt", details, phase=task_hint)
        return result

    def note_injection(self, result: RenderResult, task_hint: str | None) -> None:
        """Record that a rendered memory was put into a prompt: an audit trail beside the events."""
        self._parts.injections.add(self.id, result, task_hint)

    def injections(self) -> list[Injection]:
        """Return the audit trail of the branch's own prompts, newest first."""
        return self._parts.injections.of(self.id)

    def pressure(self) -> Pressure:
        """Return the fill level of the memory in view."""
        found = self._parts.pressures.measure(self.id)
        self._log("check_memory_pressure", asdict(found))
        return found

    def relieve(self, level: PressureLevel, task_hint: str | None = None) -> Relief:
        """Take the measures for a pressure level (see `Pressures.relieve`)."""
        relief = self._parts.pressures.relieve(self.id, level, task_hint=task_hint)
        self._log("auto_consolidate_memory", asdict(relief))
        return relief

    def relieve_if_needed(self, task_hint: str | None = None) -> Relief | None:
        """Relieve the branch if the pressure has reached `memory.consolidation_trigger`."""
        return self._parts.pressures.relieve_if_needed(self.id, task_hint=task_hint)

    def consolidate(self, *, keep: int | None = None, inherited_only: bool = False) -> int:
        """Summarise old events in view, and return the number of events in the new digest.

        Args:
            keep: Number of newest events that stay as they are; None for the configured window.
            inherited_only: Whether only events of ancestors are summarised.
        """
        count = self._parts.consolidation.consolidate(
            self.id, keep=keep, inherited_only=inherited_only
        )
        op = "consolidate_inherited_memory" if inherited_only else "consolidate_recall_events"
        self._log(op, {"events_consolidated": count})
        return count

    def _view(self, at: Moment | None = None) -> AbstractContextManager[BranchView]:
        return self._parts.branches.view(self.id, at)

    def _write(
        self, act: Callable[Concatenate[Writer, str, P], R], *given: P.args, **named: P.kwargs
    ) -> R:
        """Run an action on the branch in a write transaction."""
        return self._parts.database.write(lambda writer: act(writer, self.id, *given, **named))

    def _shortened(self, text: str) -> str:
        return self._parts.archival.prepare(text, lambda: self._parts.core.context(self.id))

    def _log(self, op: str, details: Mapping[str, Any] | None = None, **marks: Any) -> None:
        self._parts.log.add(op, details=details, **{"branch_id": self.id, **marks})
