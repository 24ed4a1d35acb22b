"""What a run takes in and leaves behind, as `MemoryManager` offers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.branch_face import BranchFace
from taskweaver.memory.branched.environment import Fact, collect_environment, ingest_environment
from taskweaver.memory.branched.ingest import ingest_idea_md, ingest_phase0_internal_info
from taskweaver.memory.branched.page import write_page
from taskweaver.memory.branched.paper import generate_final_memory
from taskweaver.memory.branched.resources import (
    track_resource_usage,
    update_resource_snapshot_if_changed,
)
from taskweaver.memory.branched.tier_face import TierFace


class RunFace(BranchFace, TierFace):
    """Takes in idea, Phase 0, machine and resources, once; writes what a run ends with.

    Where no branch is given the root is meant, from which the whole run inherits.
    """

    def ingest_idea_md(
        self, idea_path: str | Path, *, branch_id: str | None = None, node_uid: str | None = None
    ) -> bool:
        """Take an idea in; return whether it was new. See `ingest.ingest_idea_md`."""
        return ingest_idea_md(self, idea_path, branch_id=branch_id, node_uid=node_uid)

    def ingest_phase0_internal_info(
        self,
        payload: Mapping[str, Any],
        *,
        artifact_paths: Sequence[str | Path] = (),
        command: str = "",
        branch_id: str | None = None,
    ) -> bool:
        """Take in what Phase 0 found out; see `ingest.ingest_phase0_internal_info`."""
        return ingest_phase0_internal_info(
            self, payload, artifact_paths=artifact_paths, command=command, branch_id=branch_id
        )

    def ingest_environment(
        self, facts: Mapping[str, Fact] | None = None, *, branch_id: str | None = None
    ) -> bool:
        """Keep facts about the machine (None: this one); see `environment`."""
        chosen = collect_environment() if facts is None else facts
        return ingest_environment(self, chosen, branch_id=branch_id)

    def mem_resources_resolve_and_refresh(
        self,
        resource_file: str | Path,
        workspace_root: str | Path,
        *,
        branch_id: str | None = None,
    ) -> bool:
        """Look at the resources again; return whether anything changed. See `resources`."""
        return update_resource_snapshot_if_changed(
            self, resource_file, workspace_root, branch_id=branch_id, folder=self.folder
        )

    def track_resource_usage(
        self, item_id: str, *, note: str = "", branch_id: str | None = None
    ) -> bool:
        """Note that a resource was used; return whether that was new."""
        return track_resource_usage(self, item_id, note=note, branch_id=branch_id)

    def generate_final_memory_for_paper(
        self,
        run_dir: str | Path,
        root_branch_id: str,
        best_branch_id: str | None = None,
        artifacts_index: Mapping[str, Any] | None = None,
        *,
        no_budget_limit: bool = True,
    ) -> dict[str, Any]:
        """Write the final memory of a run as text and as data; see `paper`.

        Writes nothing and returns an empty dictionary when `memory.final_memory_enabled` is off.
        """
        if not self.config.final_memory_enabled:
            return {}
        found = generate_final_memory(
            self,
            run_dir,
            root_branch_id,
            best_branch_id,
            artifacts_index=artifacts_index,
            is_limited=not no_budget_limit,
        )
        self._log.add("generate_final_memory_for_paper", branch_id=best_branch_id)
        return found

    def write_page(self, target: str | Path, *, title: str = "Memory") -> None:
        """Write the whole memory as one HTML page; see `page`."""
        write_page(self._parts.database, Path(target), title=title)
