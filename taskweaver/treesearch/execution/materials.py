"""Materials of a run: data and code of a resource file, put into attempts, described in prompts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.run.resource_file import Item, read_resource_file
from taskweaver.memory.branched.run.resources import update_resource_snapshot_if_changed
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.job import Job
from taskweaver.treesearch.execution.phases import prepare_workspace
from taskweaver.treesearch.execution.resources import (
    FOLDER,
    check_places,
    fetch_commands,
    stage_resources,
    with_resources,
)
from taskweaver.treesearch.model.plan_checks import CommandText


@dataclass(frozen=True, slots=True)
class Materials:
    """The resources of a run, which a file lists; without a file there are none."""

    file: Path | None = None
    items: tuple[Item, ...] = ()
    memory: BranchedMemory | None = None

    def text(self) -> str:
        """Return the lines of prompts about them; empty for none."""
        return "\n".join(f"- {_line(item)}" for item in self.items)

    def prepared(self, job: Job, installs: Sequence[CommandText]) -> Job:
        """Place the resources in a node's workspace; return the job that can read and fetch them.

        The download phase then goes on with the commands in `installs`.

        Raises:
            SearchError: If one is missing, or its place is taken.
        """
        if self.items:
            prepare_workspace(job)
            stage_resources(self.items, job.workspace)
        sandbox = job.sandbox and with_resources(job.sandbox, self.items)
        plan = replace(job.plan, download=(*fetch_commands(self.items), *installs))
        return replace(job, sandbox=sandbox, plan=plan)

    def note_fetched(self, workspace: Path, branch: str) -> None:
        """Write the content of fetched resources to a node's memory."""
        if self.file is None or self.memory is None:
            return
        if any(item.source.kind != "local" for item in self.items):
            with suppress(InvalidUpdate):  # the file was changed: it is read when a run opens
                folder = self.memory.path.parent
                update_resource_snapshot_if_changed(
                    self.memory[branch], self.file, workspace, folder=folder
                )


def read_materials(file: Path | None, memory: BranchedMemory | None = None) -> Materials:
    """Return the resources a file lists; none without a file.

    Raises:
        SearchError: If the file cannot be used.
    """
    if file is None:
        return Materials()
    try:
        items = tuple(read_resource_file(file))
    except (InvalidUpdate, OSError) as error:
        raise SearchError(f"The resources cannot be used: {error}") from error
    check_places(items)
    return Materials(file, items, memory)


def _line(item: Item) -> str:
    kind = item.source.kind
    is_local = kind == "local"
    own = f"{FOLDER}/{item.class_}/{item.name}"
    place = own if is_local else str(item.source.place / item.path)
    notes = f": {item.notes}" if item.notes else ""
    return f"{item.name} ({item.class_}, {kind}), in {place}{notes}"
