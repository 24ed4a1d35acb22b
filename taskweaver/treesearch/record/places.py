"""Paths in the folder of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from taskweaver.treesearch.errors import SearchError
from taskweaver.utils.file_system.safe_fs import Folder

LOGS = Path("logs") / "0-run"
WORKSPACES = "workspaces"
ROOT_BRANCH = "root"
"""The branch of a run that all its nodes descend from."""


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """Paths of a node in the folder of its run."""

    run_dir: Path
    node_id: str

    @property
    def folder(self) -> Path:
        """The node's own folder."""
        return self.run_dir / "nodes" / self.node_id

    @property
    def workspace(self) -> Path:
        """Working folder of its phases; kernels of one sandbox can write below ``branches``."""
        return self.run_dir / WORKSPACES / "branches" / self.node_id

    @property
    def plans(self) -> Path:
        """Files of Phase 0."""
        return self.folder / "plans"

    @property
    def prompts(self) -> Path:
        """Prompts of Phase 0."""
        return self.folder / "prompts"

    @property
    def plots(self) -> Path:
        """Its plots."""
        return self.folder / "plots"

    def remove(self) -> None:
        """Remove the files of an attempt that did not finish."""
        remove(self.folder)
        remove(self.workspace)

    @property
    def phase_logs(self) -> Path:
        """Logs of its phases."""
        return self.run_dir / LOGS / "phase_logs" / f"node_{self.node_id}"

    @property
    def prompt_logs(self) -> Path:
        """Its prompts and replies, and logs of its memory."""
        return self.run_dir / LOGS / "prompt_logs" / f"node_{self.node_id}"


@dataclass(frozen=True, slots=True)
class RunPlaces:
    """Paths of a run.

    Attributes:
        folder: Folder of the run, without links.
    """

    folder: Path

    def __post_init__(self) -> None:
        """Resolve the folder once, before code runs in folders below it."""
        object.__setattr__(self, "folder", self.folder.resolve())

    @property
    def idea(self) -> Path:
        """The idea, as it was when the run began."""
        return self.folder / "idea.md"

    @property
    def config(self) -> Path:
        """The configuration the run was started with."""
        return self.folder / "config.json"

    @property
    def log(self) -> Path:
        """The log, which a run is resumed from."""
        return self.folder / "journal.jsonl"

    @property
    def memory(self) -> Path:
        """The memory; a link, where the run keeps it elsewhere."""
        return self.folder / "memory" / "memory.sqlite"

    @property
    def manager_prompts(self) -> Path:
        """Prompts and replies that concern the run as a whole."""
        return self.folder / LOGS / "prompt_logs" / "manager"

    def node(self, node_id: str) -> NodePlaces:
        """Return the paths of a node."""
        return NodePlaces(self.folder, node_id)


def remove(path: Path) -> None:
    """Remove an entry with everything below it; of a link, the link.

    Raises:
        SearchError: If that cannot be done.
    """
    try:
        with Folder.at(path.parent) as parent:
            parent.remove(path.name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SearchError(f"{path} cannot be removed: {error}.") from error
