"""Paths in the folder of a run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from taskweaver.session.storage.layout import NODES, RUN
from taskweaver.treesearch.errors import system_errors
from taskweaver.utils.file_system.safe_fs import Folder

LOGS = Path("logs") / "0-run"
WORKSPACES = NODES.parts[0]
ROOT_BRANCH = RUN.root
"""The branch of a run that all its nodes descend from."""


class NodePlaces:
    """Paths of a node in the folder of its run.

    Attributes:
        folder: The node's own folder.
        workspace: Working folder of its phases; kernels of one sandbox write below ``branches``.
        plans: Files of Phase 0.
        prompts: Prompts of Phase 0.
        plots: Its plots.
        phase_logs: Logs of its phases.
        prompt_logs: Its prompts and replies, and logs of its memory.
    """

    def __init__(self, run_dir: Path, node_id: str) -> None:
        self.run_dir, self.node_id = run_dir, node_id
        self.folder = run_dir / "nodes" / node_id
        self.workspace = run_dir / NODES / node_id
        self.plans = self.folder / "plans"
        self.prompts = self.folder / "prompts"
        self.plots = self.folder / "plots"
        self.phase_logs = run_dir / LOGS / "phase_logs" / f"node_{node_id}"
        self.prompt_logs = run_dir / LOGS / "prompt_logs" / f"node_{node_id}"

    def remove(self) -> None:
        """Remove the files of an attempt that did not finish."""
        remove(self.folder)
        remove(self.workspace)


class RunPlaces:
    """Paths of a run.

    Attributes:
        folder: Folder of the run, resolved once, before code runs in folders below it.
        idea: The idea, as it was when the run began.
        config: The configuration the run was started with.
        log: The log, which a run is resumed from.
        memory: The memory; a link, where the run keeps it elsewhere.
        evaluator: The program that measures attempts; there where the idea names a file.
        logs: Logs of the run, with the events of its attempts; chats with these have their own.
        manager_prompts: Prompts and replies that concern the run as a whole.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.idea = self.folder / "idea.md"
        self.config = self.folder / "config.json"
        self.log = self.folder / "journal.jsonl"
        self.memory = self.folder / RUN.memory
        self.evaluator = self.folder / "evaluator"
        self.logs = self.folder / LOGS
        self.manager_prompts = self.logs / "prompt_logs" / "manager"

    def node(self, node_id: str) -> NodePlaces:
        """Return the paths of a node."""
        return NodePlaces(self.folder, node_id)


def remove(path: Path) -> None:
    """Remove an entry with everything below it. Of a link, the link.

    Raises:
        SearchError: If that cannot be done.
    """
    with (
        system_errors(f"{path} cannot be removed"),
        suppress(FileNotFoundError),
        Folder.at(path.parent) as parent,
    ):
        parent.remove(path.name)
