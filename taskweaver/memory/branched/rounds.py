"""A question with a memory: shown in the prompt, updated and read by the replies."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import (
    InvalidUpdate,
    MemoryUpdateError,
    RecordNotVisible,
)
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.protocol.blocks import MemoryReply, Presence, read_reply
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.memory.branched.protocol.protocol import check_updates, has_reads, instructions
from taskweaver.memory.branched.protocol.updates import format_results
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.types import RenderResult
from taskweaver.utils.asking import Asking

_ECHO_CHARS = 2000
_FINAL = "These are the results of your reads. Write your whole reply now, best without reading."


@dataclass(slots=True)
class MemoryAnswer:
    """Answer to a question.

    Attributes:
        body: The final reply without its block.
        results: Results of every block that was applied, in order.
        calls: Number of calls to the model.
        shown: The memory in its prompt.
    """

    body: str
    results: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    shown: RenderResult | None = None


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """A question on a branch.

    Attributes:
        prompt: The prompt; the memory and its instructions are added to it.
        branch_id: The branch whose memory is shown and written.
        task_hint: Kind of the task, such as ``draft``.
        task: The task in words, for the archival search.
        node_id: Node the events are noted for.
        presence: Whether a block must, may or must not be in the reply.
    """

    prompt: str
    branch_id: str
    task_hint: str | None = None
    task: str = ""
    node_id: str | None = None
    presence: Presence = "optional"


class MemoryTurn:
    """The memory's side of a question: rendered for its prompt, and updated by its replies.

    Attributes:
        shown: The memory as the prompt shows it.
    """

    def __init__(  # noqa: PLR0913 - a question, its node and its log
        self,
        branch: BranchHandle,
        task_hint: str | None,
        *,
        task: str = "",
        node_id: str | None = None,
        log: MemoryPromptLog | None = None,
        label: str | None = None,
        leave_out: Collection[str] = (),
        is_relieved: bool = False,
    ) -> None:
        """Render the memory for a prompt, and note that it was shown, in a log beside it too.

        The task in words is for the archival search, and `label` names the prompt in the log. Keys,
        tags and kinds in `leave_out` are not shown; with `is_relieved` no overflow is relieved.
        """
        self._branch = branch
        self._task_hint = task_hint
        self._node_id = node_id
        self._log = log
        began = time.time()
        if not is_relieved:
            branch.relieve_if_needed(task_hint)
        self.shown = branch.render(task_hint, task=task, leave_out=leave_out)
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
        """Apply the block of a reply, whole or not at all, and return its results.

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


class _MemoryAsking(Asking[str, MemoryAnswer]):
    """A question whose replies update and read the memory."""

    refusals = (MemoryUpdateError, InvalidUpdate, RecordNotVisible)

    def __init__(
        self,
        turn: MemoryTurn,
        model: Callable[[str], str],
        question: MemoryQuestion,
        config: MemoryConfig,
    ) -> None:
        self._turn = turn
        self._model = model
        self._question = question
        self._reads = config.max_memory_read_rounds
        self._most_chars = config.section_budgets["results"]
        self._found = self._feedback = ""
        self._answer = MemoryAnswer("", shown=turn.shown)

    def call(self) -> str:
        """Ask with the memory, its instructions, and what the last reply came to."""
        question, shown = self._question, self._turn.shown.text
        parts = [question.prompt, f"# Memory\n{shown}" if shown else ""]
        if question.presence != "forbidden":
            is_required = question.presence == "required"
            text = instructions(is_required=is_required, reads=self._reads)
            parts.append(f"# Memory operations\n{text}")
        parts.append(f"# Feedback\n{self._feedback}" if self._feedback else "")
        self._answer.calls += 1
        return self._model("\n\n".join(filter(None, parts)))

    def read(self, reply: str) -> MemoryAnswer | None:
        """Apply the block; return the answer, or None if it reads and may do so."""
        answer = self._answer
        is_written = bool(answer.results) and self._question.presence == "required"
        presence = "optional" if is_written else self._question.presence
        found, is_reading = self._turn.look(reply, presence)
        results = self._turn.adopt(found)
        answer.results += [results] if results else []
        if is_reading and self._reads > 0:
            self._reads -= 1
            self._found = f"{format_results(results, max_chars=self._most_chars)}\n{_FINAL}"
            self._feedback = self._found
            return None
        answer.body = found.body
        return answer

    def feed_back(self, error: Exception, reply: str) -> None:
        """Show the problem and the beginning of the reply, after the results of reads."""
        echo = reply[:_ECHO_CHARS]
        problem = f"Your last reply could not be used.\n{error}\nIt was:\n{echo}"
        self._feedback = f"{self._found}\n\n{problem}".lstrip()


def ask_with_memory(
    memory: BranchedMemory,
    ask: Callable[[str], str],
    question: MemoryQuestion,
    *,
    log: MemoryPromptLog | None = None,
) -> MemoryAnswer:
    """Ask a model, apply the block of its reply, and ask again while it reads or errs.

    A reply that reads is answered with the results, `memory.max_memory_read_rounds` times; its
    reads after that are done and not shown, and its body is taken. A reply whose block is
    missing, malformed or refused is sent back with the reason, three replies in all. A reply to
    results of reads needs no block of its own: the one that read was the block of the question.

    `ask` is the model: a prompt in, its reply out. The log has the memory that was shown, and the
    operations.

    Raises:
        MemoryUpdateError, InvalidUpdate, RecordNotVisible: If the last reply was still unusable.
        UnknownBranch, BranchSealed: If the branch takes no writes.
    """
    turn = MemoryTurn(
        memory[question.branch_id],
        question.task_hint,
        task=question.task,
        node_id=question.node_id,
        log=log,
    )
    return _MemoryAsking(turn, ask, question, memory.config).ask()
