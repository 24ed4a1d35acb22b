"""Where things are in the folder of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from taskweaver.treesearch.errors import SearchError
from taskweaver.utils.safe_fs import Folder

LOGS = Path("logs") / "0-run"
WORKSPACES = "workspaces"
ROOT_BRANCH = "root"
"""The branch of a run that all its nodes descend from."""


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """Where the files of a node are.

    Attributes:
        run_dir: Folder of the run.
        node_id: The node.
    """

    run_dir: Path
    node_id: str

    @property
    def folder(self) -> Path:
        """The node's own folder."""
        return self.run_dir / "nodes" / self.node_id

    @property
    def workspace(self) -> Path:
        """What its phases work in; kernels of one sandbox can write below ``branches``."""
        return self.run_dir / WORKSPACES / "branches" / self.node_id

    @property
    def plans(self) -> Path:
        """What Phase 0 found out."""
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
        """Remove what an attempt left that did not finish."""
        remove(self.folder)
        remove(self.workspace)

    @property
    def phase_logs(self) -> Path:
        """Logs of its phases."""
        return self.run_dir / LOGS / "phase_logs" / f"node_{self.node_id}"

    @property
    def prompt_logs(self) -> Path:
        """Its prompts, replies, and what they did to its memory."""
        return self.run_dir / LOGS / "prompt_logs" / f"node_{self.node_id}"


@dataclass(frozen=True, slots=True)
class RunPlaces:
    """Where the files of a run are.

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
        """What the run was started with."""
        return self.folder / "config.json"

    @property
    def log(self) -> Path:
        """The log of what happened, which a run is resumed from."""
        return self.folder / "journal.jsonl"

    @property
    def memory(self) -> Path:
        """The memory; a link, where the run keeps it elsewhere."""
        return self.folder / "memory" / "memory.sqlite"

    def node(self, node_id: str) -> NodePlaces:
        """Return where the files of a node are."""
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
