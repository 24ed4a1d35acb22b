"""The nodes of a run as a tree: parents and children, files, and repetitions of programs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from taskweaver.treesearch.model.artifacts import artifact_files
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus


class NodeTree:
    """Nodes by id, in order. One thread adds nodes and replaces them; any may read."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, list[str]] = {}
        self._repetitions: dict[str, list[str]] = {}
        self._proposed: dict[str, Node] = {}
        self._files: dict[str, Mapping[str, str]] = {}

    def drop(self, node_id: str) -> None:
        """Forget a node that did not finish; its number is free again."""
        node = self._nodes.pop(node_id)
        self._files.pop(node_id, None)
        self._proposed.pop(node_id, None)
        if node.parent is not None:
            self._children[node.parent].remove(node_id)
        if node_id in self._repetitions.get(node.repeats, ()):
            self._repetitions[node.repeats].remove(node_id)

    def put(self, node: Node) -> None:
        """Add a node, or take its next state."""
        if node.id not in self._nodes and node.parent is not None:
            self._children.setdefault(node.parent, []).append(node.id)
        self._nodes[node.id] = node
        if node.finished_at is not None:
            self._proposed.pop(node.id, None)
        if node.repeats in self._nodes and not node.is_fresh:
            known = self._repetitions.setdefault(node.repeats, [])
            known += [node.id] * (node.id not in known)

    def note_proposal(self, node: Node) -> None:
        """Make the plan of a running node known, from any thread, before its task ends."""
        self._proposed[node.id] = node

    def as_proposed(self, node: Node) -> Node:
        """Return the newest state of a node; while it runs, with its name and plan by now.

        One that was dropped meanwhile is returned as it is.
        """
        return self._proposed.get(node.id) or self._nodes.get(node.id, node)

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self._nodes)

    def __contains__(self, node_id: object) -> bool:
        """Whether there is a node with this id."""
        return node_id in self._nodes

    def __getitem__(self, node_id: str) -> Node:
        """Return a node.

        Raises:
            KeyError: If there is none with this id.
        """
        return self._nodes[node_id]

    @property
    def attempts(self) -> int:
        """Number of nodes, seed evaluations not counted."""
        return sum(node.kind is not NodeKind.SEED for node in self.nodes)

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in order."""
        return list(self._nodes.values())

    @property
    def finished(self) -> list[Node]:
        """The nodes that came to an end, other than by being cancelled."""
        open_ = {NodeStatus.RUNNING, NodeStatus.CANCELLED}
        return [node for node in self.nodes if node.status not in open_]

    @property
    def running(self) -> list[Node]:
        """The nodes whose tasks run."""
        return [node for node in self.nodes if node.status is NodeStatus.RUNNING]

    @property
    def good(self) -> list[Node]:
        """The nodes that ran, and measured something; those of seed evaluations too."""
        return [node for node in self.nodes if node.is_good]

    @property
    def buggy(self) -> list[Node]:
        """The nodes that failed."""
        return [node for node in self.nodes if node.has_failed]

    @property
    def refuted(self) -> dict[str, str]:
        """Ids of nodes whose findings a later review found untrue, each with the id of its node.

        A node whose own findings were found untrue refutes nothing.
        """
        found: dict[str, str] = {}
        refuting = [node for node in self.finished if node.refutes]
        for node in sorted(refuting, key=ended, reverse=True):
            if node.id not in found:
                found = dict.fromkeys(node.refutes, node.id) | found
        return found

    def of_stage(self, stage: int) -> list[Node]:
        """Return the nodes of a stage, in order; seed evaluations are not counted."""
        return [
            node for node in self.nodes if node.stage == stage and node.kind is not NodeKind.SEED
        ]

    def until(self, stage: int) -> list[Node]:
        """Return the nodes of a stage and those before it, in order."""
        return [node for node in self._nodes.values() if node.stage <= stage]

    def children(self, node_id: str) -> list[Node]:
        """Return the nodes that were made from a node."""
        return [self._nodes[child] for child in tuple(self._children.get(node_id, ()))]

    def is_leaf(self, node_id: str) -> bool:
        """Return whether no node was made from a node."""
        return not self._children.get(node_id)

    def path(self, node_id: str) -> list[Node]:
        """Return a node and its ancestors, the draft first."""
        path: list[Node] = []
        next_: str | None = node_id
        while next_ is not None and next_ in self._nodes:
            path.append(self._nodes[next_])
            next_ = path[-1].parent
        return path[::-1]

    def files(self, node_id: str) -> Mapping[str, str]:
        """Return the text of a node's files by path, those it took over from its parent too."""
        unknown: list[Node] = []
        next_: str | None = node_id
        while next_ in self._nodes and next_ not in self._files:
            unknown.append(self._nodes[next_])
            next_ = unknown[-1].parent
        files = self._files.get(next_ or "", {})
        for node in reversed(unknown):
            files = {**files, **artifact_files(node.artifacts)}
            if node.finished_at is not None:  # what has ended does not change
                self._files[node.id] = files
        return files

    def debug_depth(self, node: Node) -> int:
        """Return the number of attempts at repair that end with this node."""
        depth = 0
        step: Node | None = node
        while step is not None and step.kind is NodeKind.DEBUG:
            depth += 1
            step = self._nodes.get(step.parent or "")
        return depth

    def repetitions(self, node_id: str) -> list[Node]:
        """Return the other measurements of a node's program: with seeds, and proposed again."""
        return [self._nodes[again] for again in tuple(self._repetitions.get(node_id, ()))]

    def fresh_runs(self, node_id: str) -> list[Node]:
        """Return the measurements of a node's program on seeds that chose nothing."""
        return [node for node in self.children(node_id) if node.is_fresh]


def ended(node: Node | None) -> float:
    """Return when a node ended; never, for none."""
    return math.inf if node is None else (node.finished_at or 0.0)
