"""What all nodes of a run share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.llm.services import ModelServices
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.agent.prompt_files import PromptFiles
from taskweaver.treesearch.execution.materials import Materials
from taskweaver.treesearch.execution.scripts import ScriptRunner
from taskweaver.treesearch.execution.worker_pool import WorkerPool
from taskweaver.treesearch.model.budget import Budget
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.idea import Idea
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.record.places import RunPlaces


class Claims:
    """Which change each node makes, so that two that are made at once do not make the same."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Take note of the nodes there are."""
        self._lock = threading.Lock()
        self._taken = {_claim(node, node.name): node.id for node in nodes if node.name}

    def take(self, node: Node, name: str) -> str:
        """Claim a change for a node; return the id of the node that makes it already, or nothing.

        Args:
            node: The node.
            name: What it changes; what has no name is nobody's.
        """
        with self._lock:
            owner = self._taken.setdefault(_claim(node, name), node.id) if name else node.id
            return "" if owner == node.id else owner


def _claim(node: Node, name: str) -> tuple[str | None, bool, str]:
    """Return what is claimed: the same change may be tried to improve, and to take away."""
    return node.parent, node.kind is NodeKind.ABLATION, name


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What all nodes of a run share.

    Attributes:
        config: The configuration.
        places: Where things are.
        idea: The idea.
        services: The models.
        is_embedded: Whether the model is one of ours, which proposes and does nothing else.
        prompts: The texts.
        store: The memory; None without.
        workers: Where commands run.
        scripts: Where scripts run; None in split mode.
        sandbox: What commands may reach; None for no sandbox.
        environment: Facts about the machine.
        compilers: Names of the compilers that are there.
        materials: What there is to use beside the idea.
        history: What earlier runs found, as data and in words.
        claims: Which change each node makes.
        budget: What it may spend.
        on_phase: Told which phase a node is in.
    """

    config: SearchConfig
    places: RunPlaces
    idea: Idea
    services: ModelServices
    is_embedded: bool
    prompts: PromptFiles
    store: BranchedMemory | None
    workers: WorkerPool
    scripts: ScriptRunner | None
    sandbox: SandboxPolicy | None
    environment: Mapping[str, Any]
    compilers: tuple[str, ...]
    materials: Materials
    history: tuple[Mapping[str, Any], str]
    claims: Claims
    budget: Budget
    on_phase: Callable[[str, str], None]
