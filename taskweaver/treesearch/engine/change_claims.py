"""Claims of nodes to changes and programs, so that no program is measured as new twice."""

from __future__ import annotations

import json
import threading
from hashlib import sha256

from taskweaver.treesearch.model.artifacts import (
    SCRIPT,
    Artifacts,
    ScriptArtifact,
    artifact_commands,
    artifact_files,
)
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus

_OF_THE_MACHINE = frozenset({"InternalError", "ReplayError"})
"""Kinds of errors that come from the machine, and not from the program."""


class ChangeClaims:
    """Claims of nodes to a change of their parent, and to a program.

    A program belongs to the node that proposed it first. A later node that proposes it is asked
    for another one; if it insists, it is another measurement of the first.
    """

    def __init__(self, journal: Journal) -> None:
        """Start with the changes and programs of existing nodes."""
        self._journal = journal
        self._lock = threading.Lock()
        self._changes: dict[tuple[str | None, bool], dict[str, str]] = {}
        self._programs: dict[str, str] = {}
        self._newest: dict[str, str] = {}
        self._twins: dict[str, str] = {}
        self._skipped: set[str] = set()
        for node in journal.nodes:
            if node.name:
                self._of(node).setdefault(node.name, node.id)
            if node.artifacts is not None and not node.repeats:
                program = self._program(node, node.artifacts)
                self._newest[program] = self._programs.setdefault(program, node.id)

    def take(self, node: Node, name: str, artifacts: Artifacts, *, insists: bool) -> str:
        """Claim a change and a program for a node; return why it cannot have them, or nothing.

        A change without a name cannot be claimed. One that `insists` may have a program that has
        ended: it measures again what worked, and tries again what failed. If that is running, the
        node is to be skipped, see `is_skipped`.
        """
        program = self._program(node, artifacts)
        with self._lock:
            changes = self._of(node)
            self._twins.pop(node.id, None)
            twin = self._known(program, node)
            holder = changes.get(name, node.id) if name else node.id
            self._skipped.discard(node.id)
            if self._is_running(program, node) and insists:
                self._twins[node.id] = twin.id if twin is not None else self._newest[program]
                self._skipped.add(node.id)
                return ""
            if self._is_running(program, node):
                problem = f"{self._newest[program]} tries exactly this program now"
            elif holder not in {node.id, twin.id if twin else ""}:
                problem = f"{holder} makes the change {name} already"
            elif twin is not None and not insists and node.kind is not NodeKind.ABLATION:
                verb = "failed with" if twin.has_failed else "was"
                problem = f"{twin.id} {verb} exactly this program"
            else:
                self._give(program, node, twin)
                changes |= {name: node.id} if name else {}
                return ""
            if name:
                changes.setdefault(name, self._newest.get(program, node.id))
            return f"{problem}; make another change than {', '.join(changes) or 'this'}"

    def owner(self, node: Node) -> str:
        """Return the node whose program another one was given; empty for a program of its own."""
        return self._twins.get(node.id, "")

    def is_skipped(self, node: Node) -> bool:
        """Return whether a node has nothing but a program that another one runs now."""
        return node.id in self._skipped

    def _give(self, program: str, node: Node, twin: Node | None) -> None:
        """Give a program to a node: as another measurement of a twin that worked, or as its own."""
        self._newest[program] = node.id
        if twin is not None and twin.is_good:
            self._twins[node.id] = twin.id
        else:
            self._programs[program] = node.id

    def _is_running(self, program: str, node: Node) -> bool:
        """Return whether another node runs a program now."""
        newest = self._newest.get(program, node.id)
        is_other = newest != node.id and newest in self._journal
        return is_other and self._journal[newest].status is NodeStatus.RUNNING

    def _known(self, program: str, taker: Node) -> Node | None:
        """Return another node that a program belongs to; None for none.

        One that was lost, or failed by the machine, has no claim to it.
        """
        id_ = self._programs.get(program, "")
        if id_ not in self._journal or id_ == taker.id:
            return None
        node = self._journal[id_]
        is_no_fault_of_it = node.error is not None and node.error.kind in _OF_THE_MACHINE
        if is_no_fault_of_it or node.status in {NodeStatus.LOST, NodeStatus.CANCELLED}:
            return None
        # The number of a node that was dropped may be that of another one now.
        is_its_own = node.artifacts is None or self._program(node, node.artifacts) == program
        return node if is_its_own else None

    def _program(self, node: Node, artifacts: Artifacts) -> str:
        """Return the hash of a whole program: files, commands, and cells that run before it."""
        is_script = isinstance(artifacts, ScriptArtifact)
        before = {} if is_script or node.parent is None else self._journal.files(node.parent)
        whole = {
            "files": {**before, **artifact_files(artifacts)},
            "commands": artifact_commands(artifacts),
            "line": [self._journal.files(id_).get(SCRIPT) for id_ in node.line],
        }
        return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    def _of(self, node: Node) -> dict[str, str]:
        """Return the changes of a node's parent: each may be tried to improve, and to take away."""
        return self._changes.setdefault((node.parent, node.kind is NodeKind.ABLATION), {})
