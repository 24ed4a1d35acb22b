"""The conversation of a node: its proposal and outcome, as a round and posts of a chat.

It is a real one, on the node's branch, so a chat can simply go on from there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.treesearch.agent.describe import own_code
from taskweaver.treesearch.model.artifacts import ScriptArtifact
from taskweaver.treesearch.model.node import Node, Objective
from taskweaver.utils.text import shorten

_OUTPUT_CHARS = 6000


class NodeTranscript:
    """Writes the round of a node while it happens."""

    def __init__(self, store: BranchedMemory | None, node: Node, title: str) -> None:
        """Begin it under the title of the search; without a store, nothing is written."""
        made = f"from {node.parent}" if node.parent else "from nothing"
        name = f" of {node.name}" if node.name else ""
        query = f"{title}\nAttempt {node.id}: {node.kind}{name}, {made}."
        self._round = Round.create(query)
        self._log = BranchLog(store, node.branch) if store is not None else None
        if self._log is not None:
            self._log.round_started(self._round)
            self._add(Post.create(query, "User", "Planner"))

    def _add(self, post: Post) -> None:
        self._round.add_post(post)
        if self._log is not None:
            self._log.post_added(self._round, post)

    def proposed(self, node: Node) -> None:
        """Add the proposal."""
        attachments = [
            Attachment.create(AttachmentType.plan, node.plan or "1. carry the attempt out"),
            Attachment.create(AttachmentType.current_plan_step, "1. carry the attempt out"),
        ]
        message = f"{node.plan}\n\n{own_code(node)}"
        self._add(Post.create(message, "Planner", "CodeInterpreter", attachments))

    def ran(self, node: Node, variables: Sequence[tuple[str, str]]) -> None:
        """Add the outcome of the phases; that of a script is the outcome of a cell.

        Args:
            node: The node.
            variables: Variables of the script's kernel, with their descriptions.
        """
        phases = [f"{p.name}: {p.status}, {p.seconds:.1f} s {p.message}" for p in node.phases]
        message = "\n".join([*phases, shorten(node.output, _OUTPUT_CHARS)])
        status = "SUCCESS" if node.error is None else "FAILURE"
        attachments = [
            Attachment.create(AttachmentType.execution_status, status),
            Attachment.create(AttachmentType.execution_result, message),
        ]
        if isinstance(node.artifacts, ScriptArtifact):
            names = json.dumps([list(one) for one in variables])
            attachments += [
                Attachment.create(AttachmentType.reply_content, node.artifacts.code),
                Attachment.create(AttachmentType.session_variables, names),
            ]
        self._add(Post.create(message, "CodeInterpreter", "Planner", attachments))

    def ended(self, node: Node, objective: Objective) -> None:
        """Add the outcome, and end the round."""
        lines = [f"{node.id} {node.status}: {objective.name} {objective.text(node.value)}."]
        if node.error:
            lines.append(f"{node.error.kind}: {node.error.message}")
        lines += [node.analysis, json.dumps(dict(node.summary)) if node.summary else ""]
        self._add(Post.create("\n".join(filter(None, lines)), "Planner", "User"))
        self._round.change_round_state("finished")
        if self._log is not None:
            self._log.round_ended(self._round)
