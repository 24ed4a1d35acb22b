"""The memory's side of questions: shown in the prompts, updated and read by the replies."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog
from taskweaver.memory.branched.protocol.blocks import MemoryReply, Presence, read_reply
from taskweaver.memory.branched.protocol.protocol import check_updates, has_reads
from taskweaver.memory.branched.types import RenderResult


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """The memory's side of the questions about a node.

    Attributes:
        branch: Branch of the node.
        node_id: Id of the node.
        log: Log of the memory that was shown, and of the operations.
        left_out: Keys, tags and kinds that are not shown, since prompts have them elsewhere.
        is_required: Whether each reply begins with a block.
    """

    branch: BranchHandle
    node_id: str | None = None
    log: MemoryPromptLog | None = None
    left_out: Collection[str] = ()
    is_required: bool = False

    def shown(
        self, task_hint: str | None, label: str | None = None, *, relieves: bool = True
    ) -> RenderResult:
        """Render the memory for a prompt, and note that in the file and in the log.

        `label` names the prompt in the log. An overflow is relieved first, unless that was done.
        """
        branch, began = self.branch, time.time()
        if relieves:
            branch.relieve_if_needed(task_hint)
        shown = branch.render(task_hint, leave_out=self.left_out)
        branch.note_injection(shown, task_hint)
        if self.log is not None:
            budget = branch.config.budget(task_hint)
            marks = {"node_id": self.node_id, "label": label, "task_hint": task_hint}
            self.log.injection(shown, began=began, budget_chars=budget, **marks)
        return shown

    def look(self, text: str, presence: Presence) -> tuple[MemoryReply, bool]:
        """Take a reply apart, which must, may or must not have a block, and check that.

        Nothing is written: a reply may still be refused, and leaves no memory then.

        Returns:
            The reply, and whether its block reads.

        Raises:
            MemoryUpdateError, InvalidUpdate: If the block cannot be used.
        """
        reply = read_reply(text, presence)
        return reply, has_reads(check_updates(reply.updates or {}))

    def adopt(
        self, reply: MemoryReply, task_hint: str | None, attempt: str | None = None
    ) -> dict[str, Any]:
        """Apply the block of a reply, whole or not at all, and return the results.

        Blocks of one `attempt`, the name of a reply, are applied once.

        Raises:
            InvalidUpdate, RecordNotVisible: If the block cannot be used.
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        updates, began = reply.updates or {}, time.time()
        if not updates and attempt is None:
            return {}
        results = self.branch.apply(updates, self.node_id, task_hint, attempt=attempt)
        if self.log is not None:
            marks = {"node_id": self.node_id, "label": attempt or task_hint}
            self.log.operations(updates, results, began=began, **marks)
        return results
