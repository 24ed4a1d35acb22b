"""`MemoryManager`: the operations of a `BranchedMemory` under the names of the original system.

Prompts, logs and programs of the original use these names. A call without a branch means the
current one, see `MemoryManager.bind`; without a current branch a read means the root, and a write
is refused. They return plain data: texts, numbers, dictionaries and lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from taskweaver.memory.branched.errors import InvalidUpdate, UnknownBranch
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.types import (
    Pressure,
    PressureLevel,
    Record,
    RenderResult,
    plain_event,
    plain_record,
)
from taskweaver.memory.branched.upkeep.compare import HistoryStep
from taskweaver.memory.branched.upkeep.consolidation import Relief, Score

Scope = Literal["all", "core", "recall", "archival"]


class MemoryManager(BranchedMemory):
    """A memory under the names of the original: a context manager, or ended by `close`.

    Attributes:
        current: Id of the current branch; None before `bind`.
    """

    current: str | None = None

    def bind(self, branch_id: str) -> BranchHandle:
        """Make a branch the current one, and return the handle.

        Raises:
            UnknownBranch: If the branch does not exist.
        """
        handle = self[branch_id]
        self.current = handle.id
        return handle

    @property
    def root_branch_id(self) -> str | None:
        """Id of the oldest root, if any."""
        root = self.root
        return None if root is None else root.id

    def create_branch(
        self,
        parent_branch_id: str | None,
        node_uid: str | None = None,
        branch_id: str | None = None,
        *,
        live: bool = False,
    ) -> str:
        """Create a branch, or with no parent a root, and return the id."""
        options: dict[str, Any] = {"node_uid": node_uid or "", "live": live}
        if parent_branch_id is None:
            return self.create(branch_id or "", **options).id
        return self[parent_branch_id].fork(branch_id or "", **options).id

    def fork(
        self, parent: str, name: str = "", *, at: int | None = None, live: bool = False
    ) -> str:
        """Create a branch that sees a parent now or at a row, and return the id."""
        return self[parent].fork(name, at=at, live=live).id

    def update_branch_node_uid(self, branch_id: str, node_uid: str) -> None:
        """Replace the second name of a branch."""
        self.rename_node(branch_id, node_uid)

    def history(self, branch_id: str | None = None, *, limit: int = 100) -> list[HistoryStep]:
        """Return the rows of a branch itself, newest first."""
        return self._seen(branch_id).history(limit=limit)

    def promote(self, record: str | int, to: str, *, branch_id: str | None = None) -> str:
        """Copy a core key or an archival record to another branch."""
        return self._written(branch_id).promote(record, to)

    def seal(self, branch_id: str) -> None:
        """Refuse later writes on a branch."""
        self[branch_id].seal()

    def prune(self, branch_id: str, *, subtree: bool = True) -> list[str]:
        """Prune a branch, by default with the descendants, and return the ids."""
        return self[branch_id].prune(subtree=subtree)

    def mem_core_get(
        self, keys: Sequence[str] | None = None, *, branch_id: str | None = None
    ) -> dict[str, str]:
        """Return the values of all keys in view, or of some keys. Missing keys are left out."""
        return self._seen(branch_id).core.values_of(keys)

    def mem_core_set(
        self,
        key: str,
        value: str,
        *,
        ttl: str | float | None = None,
        importance: int = 3,
        branch_id: str | None = None,
    ) -> None:
        """Set a core key."""
        self._written(branch_id).core.set(key, value, ttl=ttl, importance=importance)

    def mem_core_del(self, key: str, *, branch_id: str | None = None) -> bool:
        """Hide a key from a branch on, and return whether the key was in view."""
        return self._written(branch_id).core.delete(key)

    def set_core(self, branch_id: str, key: str, value: str, **options: Any) -> None:
        """Set a core key. The branch comes first."""
        self[branch_id].core.set(key, value, **options)

    def get_core(self, branch_id: str, key: str) -> str | None:
        """Return the value of a key in view, if any."""
        return self[branch_id].core.get(key)

    def mem_recall_append(self, event: Mapping[str, Any], *, branch_id: str | None = None) -> int:
        """Append an event and return the id. The event can name the branch itself."""
        if not isinstance(event, Mapping):
            raise InvalidUpdate("recall", "must be an object with `kind` and `content`")
        own = event.get("branch_id") or event.get("node_id")
        return self._written(branch_id or own).append(event)

    def write_event(
        self, branch_id: str, kind: str, text: str, tags: Sequence[str] | None = None, **data: Any
    ) -> int:
        """Append an event, field by field, and return the id."""
        if foreign := data.keys() & {"log_event", "op_name"}:
            raise InvalidUpdate("write_event", f"takes no {', '.join(sorted(foreign))}")
        event = {"kind": kind, "summary": text, "tags": list(tags or ()), **data}
        return self[branch_id].append(event)

    def mem_recall_delete(self, event_id: str | int, *, branch_id: str | None = None) -> None:
        """Hide an event from a branch on."""
        self._written(branch_id).forget_event(event_id)

    def mem_recall_search(
        self, query: str, *, k: int = 20, branch_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the newest `k` events in view with a word of a query. All for an empty one."""
        return [plain_event(event) for event in self._seen(branch_id).find_events(query, k)]

    def mem_archival_write(
        self,
        text: str,
        *,
        tags: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        branch_id: str | None = None,
    ) -> str:
        """Add a record and return the id. `meta` can name the branch."""
        own = (meta or {}).get("branch_id") or (meta or {}).get("node_id")
        return str(self._written(branch_id or own).remember(text, tags=tags, meta=meta))

    def write_archival(self, branch_id: str, text: str, tags: Sequence[str] | None = None) -> str:
        """Add a record. The branch comes first."""
        return str(self[branch_id].remember(text, tags=tags or ()))

    def mem_archival_update(
        self, record_id: str | int, *, branch_id: str | None = None, **changes: Any
    ) -> None:
        """Replace `text`, `tags` or `meta` of a record in view, from a branch on."""
        self._written(branch_id).update(record_id, **changes)

    def mem_archival_delete(self, record_id: str | int, *, branch_id: str | None = None) -> None:
        """Hide a record from a branch on."""
        self._written(branch_id).forget(record_id)

    def mem_archival_search(
        self,
        query: str,
        *,
        tags: Sequence[str] | None = None,
        k: int = 10,
        branch_id: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the `k` best records in view that have all tags."""
        return self._plain(self._seen(branch_id).search(query, k, tags=tags or ()))

    def retrieve_archival(
        self,
        branch_id: str,
        query: str,
        k: int | None = None,
        tags_filter: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Search archival memory. The branch comes first, `k` defaults to the configured number."""
        most = self.config.retrieval_k if k is None else k
        return self._plain(self[branch_id].search(query, most, tags=tags_filter or ()))

    def mem_archival_get(
        self, record_id: str | int, *, branch_id: str | None = None
    ) -> dict[str, Any]:
        """Return the version of a record in view."""
        return self._plain([self._seen(branch_id).get(record_id)])[0]

    def mem_node_fork(
        self, parent_node_id: str | None, child_node_id: str, *, phase: str | None = None
    ) -> None:
        """Create the branch of a node below another's. With no parent below the root, if any."""
        above = self.root if parent_node_id is None else self[parent_node_id]
        if above is None:
            self.create(child_node_id, node_uid=child_node_id)
        else:
            above.fork(child_node_id, node_uid=child_node_id, phase=phase)

    def mem_node_read(self, node_id: str, scope: Scope = "all") -> dict[str, Any]:
        """Return the view of a node: `core`, the newest `recall` and `archival`, or one part."""
        if scope not in ("all", "core", "recall", "archival"):
            raise InvalidUpdate("scope", "must be all, core, recall or archival")
        node, config = self[node_id], self.config
        found: dict[str, Any] = {}
        if scope in {"all", "core"}:
            found["core"] = node.core.values_of()
        if scope in {"all", "recall"}:
            found["recall"] = list(map(plain_event, node.find_events("", config.recall_max_events)))
        if scope in {"all", "archival"}:
            found["archival"] = self._plain(node.search("", config.retrieval_k))
        counts = {f"{name}_count": len(part) for name, part in found.items()}
        marks = {"branch_id": node.id, "node_id": node_id}
        self._parts.log.add("mem_node_read", details={"scope": scope, **counts}, **marks)
        return found

    def mem_node_write(
        self,
        node_id: str,
        *,
        core_updates: Mapping[str, Any] | None = None,
        recall_event: Mapping[str, Any] | None = None,
        archival_records: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Write several things to a node in one transaction."""
        self[node_id].write(core=core_updates, event=recall_event, records=archival_records)

    def apply_llm_memory_updates(
        self,
        branch_id: str,
        updates: Mapping[str, Any],
        node_id: str | None = None,
        phase: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Apply a model's block, whole or not at all."""
        return self[branch_id].apply(updates, node_id, phase, **options)

    def render_for_prompt(
        self, branch_id: str, task_hint: str | None = None, *limits: Any, **named: Any
    ) -> str:
        """Return the text of `render_for_prompt_with_log`."""
        return self.render_for_prompt_with_log(branch_id, task_hint, *limits, **named).text

    def render_for_prompt_with_log(
        self,
        branch_id: str,
        task_hint: str | None = None,
        budget_chars: int | None = None,
        no_limit: bool = False,  # noqa: FBT001, FBT002 -- the order of the original
        **named: Any,
    ) -> RenderResult:
        """Return the rendered memory with the ids of the parts (see `BranchHandle.render`)."""
        budget = 0 if no_limit else budget_chars
        return self[branch_id].render(task_hint, budget, **named)

    def check_memory_pressure(self, branch_id: str | None = None) -> Pressure:
        """Return the fill level of a branch's memory."""
        return self._seen(branch_id).pressure()

    def auto_consolidate_memory(
        self, branch_id: str, pressure_level: PressureLevel, task_hint: str | None = None
    ) -> Relief:
        """Take the measures for a pressure level."""
        return self[branch_id].relieve(pressure_level, task_hint)

    def consolidate_recall_events(self, branch_id: str) -> int:
        """Summarise old events in view, and return the number of events in the new digest."""
        return self[branch_id].consolidate()

    def consolidate_inherited_memory(self, branch_id: str, max_events: int | None = None) -> int:
        """Summarise old inherited events, for this branch and the descendants."""
        return self[branch_id].consolidate(keep=max_events, inherited_only=True)

    def evaluate_importance_with_llm(
        self, items: Sequence[Mapping[str, Any]], context: str = "", task_hint: str | None = None
    ) -> list[Score]:
        """Ask the model for the importance of items (see `Pressures.evaluate`)."""
        scores = self._parts.pressures.evaluate(items, context, task_hint)
        self._parts.log.add("evaluate_importance_with_llm", details={"item_count": len(items)})
        return scores

    def ingest_idea_md(
        self, idea_path: str | Path, *, branch_id: str | None = None, node_uid: str | None = None
    ) -> bool:
        """Keep an idea, and return whether the idea was new."""
        from taskweaver.memory.branched.run.ingest import ingest_idea_md

        return ingest_idea_md(self._of_run(branch_id), idea_path, node_uid=node_uid)

    def ingest_phase0_internal_info(
        self, payload: Mapping[str, Any], *, branch_id: str | None = None, **options: Any
    ) -> bool:
        """Keep the findings of Phase 0, and return whether the findings were new."""
        from taskweaver.memory.branched.run.ingest import ingest_phase0_internal_info

        return ingest_phase0_internal_info(self._of_run(branch_id), payload, **options)

    def ingest_environment(self, facts: Mapping[str, Any], *, branch_id: str | None = None) -> bool:
        """Keep facts about the machine, and return whether the facts were new."""
        from taskweaver.memory.branched.run.ingest import ingest_environment

        return ingest_environment(self._of_run(branch_id), facts)

    def mem_resources_resolve_and_refresh(
        self, resource_file: str | Path, workspace_root: str | Path, *, branch_id: str | None = None
    ) -> bool:
        """Keep the present state of the resources, and return whether anything changed."""
        from taskweaver.memory.branched.run.resources import update_resource_snapshot_if_changed

        return update_resource_snapshot_if_changed(
            self._of_run(branch_id), resource_file, workspace_root, folder=self.path.parent
        )

    def track_resource_usage(
        self, item_id: str, *, note: str = "", branch_id: str | None = None
    ) -> bool:
        """Note the use of a resource, and return whether the use was new."""
        from taskweaver.memory.branched.run.resources import track_resource_usage

        return track_resource_usage(self._of_run(branch_id), item_id, note=note)

    def generate_final_memory_for_paper(
        self,
        run_dir: str | Path,
        root_branch_id: str,
        best_branch_id: str | None = None,
        artifacts_index: Mapping[str, Any] | None = None,
        *,
        no_budget_limit: bool = True,
    ) -> dict[str, Any]:
        """Write the final memory of a run as text and as data (see `paper`).

        Writes nothing and returns an empty dictionary when `memory.final_memory_enabled` is off.
        """
        from taskweaver.memory.branched.run.paper import generate_final_memory

        return generate_final_memory(
            self,
            run_dir,
            root_branch_id,
            best_branch_id,
            artifacts_index=artifacts_index,
            is_limited=not no_budget_limit,
        )

    def _written(self, branch_id: str | None) -> BranchHandle:
        """Return the handle of a branch for a write, by default of the current branch.

        Raises:
            UnknownBranch: If the branch does not exist, or neither a branch nor a current one.
        """
        wanted = self.current if branch_id is None else branch_id
        if wanted is None:
            self._root()  # an empty memory has an error of its own
            raise UnknownBranch(
                "A write needs a branch: give branch_id=, or choose the current branch with bind()."
            )
        return self[wanted]

    def _seen(self, branch_id: str | None) -> BranchHandle:
        """Return the handle of a branch for a read, by default of the current branch or the root.

        Raises:
            UnknownBranch: If the branch does not exist, or none at all.
        """
        wanted = self.current if branch_id is None else branch_id
        return self._root() if wanted is None else self[wanted]

    def _of_run(self, branch_id: str | None) -> BranchHandle:
        """Return the handle of a branch, by default of the root, from which a run inherits."""
        return self._root() if branch_id is None else self[branch_id]

    def _root(self) -> BranchHandle:
        root = self.root
        if root is None:
            raise UnknownBranch("The memory is empty: create a branch with create_branch(None).")
        return root

    def _plain(self, found: Sequence[Record]) -> list[dict[str, Any]]:
        names = self.names([item.branch for item in found])
        return [plain_record(item, names) for item in found]
