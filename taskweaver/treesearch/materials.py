"""What a run may use beside its idea: items of a resource file, put where nodes find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.resource_file import Item, read_resource_file
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution import prepare_workspace
from taskweaver.treesearch.job import Job
from taskweaver.treesearch.resources import FOLDER, fetch_commands, stage_resources, with_resources


@dataclass(frozen=True, slots=True)
class Materials:
    """The resources of a run.

    Attributes:
        items: What there is.
    """

    items: tuple[Item, ...] = ()

    def text(self) -> str:
        """Return what prompts say of them; empty for nothing."""
        return "\n".join(f"- {_line(item)}" for item in self.items)

    def prepared(self, job: Job) -> Job:
        """Put them into a node's workspace; return the job that can read and fetch them.

        Raises:
            SearchError: If one is missing, or its place is taken.
        """
        if not self.items:
            return job
        prepare_workspace(job)
        stage_resources(self.items, job.workspace)
        sandbox = job.sandbox and with_resources(job.sandbox, self.items)
        return replace(job, sandbox=sandbox, artifacts=self._fetching(job.artifacts))

    def _fetching(self, artifacts: Mapping[str, Any]) -> dict[str, Any]:
        download = dict(artifacts.get("download") or {})
        download["commands"] = [*fetch_commands(self.items), *(download.get("commands") or [])]
        return {**artifacts, "download": download}


def read_materials(file: Path | None) -> Materials:
    """Return the resources a file lists; none without a file.

    Raises:
        SearchError: If the file cannot be used.
    """
    if file is None:
        return Materials()
    try:
        return Materials(tuple(read_resource_file(file)))
    except (InvalidUpdate, OSError) as error:
        raise SearchError(f"The resources cannot be used: {error}") from error


def _line(item: Item) -> str:
    kind = item.source.kind
    is_local = kind == "local"
    own = f"{FOLDER}/{item.class_}/{item.name}"
    place = own if is_local else str(item.source.place / item.path)
    notes = f": {item.notes}" if item.notes else ""
    return f"{item.name} ({item.class_}, {kind}), in {place}{notes}"
