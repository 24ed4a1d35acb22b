"""The memory's side of a question: shown in the prompt, updated and read by the replies."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog
from taskweaver.memory.branched.protocol.blocks import MemoryReply, Presence, read_reply
from taskweaver.memory.branched.protocol.protocol import check_updates, has_reads


class MemoryTurn:
    """The memory's side of a question: rendered for the prompt, and updated by the replies.

    Attributes:
        shown: The memory as the prompt shows it.
    """

    def __init__(  # noqa: PLR0913 - a question, its node and its log
        self,
        branch: BranchHandle,
        task_hint: str | None,
        *,
        node_id: str | None = None,
        log: MemoryPromptLog | None = None,
        label: str | None = None,
        leave_out: Collection[str] = (),
        is_relieved: bool = False,
    ) -> None:
        """Render the memory for a prompt, and note that in the file and in a log.

        `label` names the prompt in the log. Keys, tags and kinds in `leave_out` are not shown; with
        `is_relieved` no overflow is relieved.
        """
        self._branch = branch
        self._task_hint = task_hint
        self._node_id = node_id
        self._log = log
        began = time.time()
        if not is_relieved:
            branch.relieve_if_needed(task_hint)
        self.shown = branch.render(task_hint, leave_out=leave_out)
        branch.note_injection(self.shown, task_hint)
        if log is not None:
            budget = branch.config.budget(task_hint)
            marks = {"node_id": node_id, "label": label, "task_hint": task_hint}
            log.injection(self.shown, began=began, budget_chars=budget, **marks)

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

    def adopt(self, reply: MemoryReply, attempt: str | None = None) -> dict[str, Any]:
        """Apply the block of a reply, whole or not at all, and return the results.

        Blocks of one `attempt`, the name of a reply, are applied once.

        Raises:
            InvalidUpdate, RecordNotVisible: If the block cannot be used.
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        updates, began = reply.updates or {}, time.time()
        if not updates and attempt is None:
            return {}
        results = self._branch.apply(updates, self._node_id, self._task_hint, attempt=attempt)
        if self._log is not None:
            marks = {"node_id": self._node_id, "label": attempt or self._task_hint}
            self._log.operations(updates, results, began=began, **marks)
        return results
