"""One question to a model that has a memory: shown, updated, asked again with what it read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from taskweaver.memory.branched.errors import (
    InvalidUpdate,
    MemoryUpdateError,
    RecordNotVisible,
)
from taskweaver.memory.branched.protocol.blocks import Presence, read_reply
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.memory.branched.protocol.protocol import check_updates, has_reads, instructions
from taskweaver.memory.branched.protocol.updates import format_results
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.types import RenderResult

_ATTEMPTS = 3
_ECHO_CHARS = 2000
_FINAL = "These are the results of your reads. Write your whole reply now, best without reading."


@dataclass(slots=True)
class Answer:
    """What came of a question.

    Attributes:
        body: The final reply without its block.
        results: Results of every block that was applied, in order.
        calls: How often the model was asked.
        shown: The memory its prompt showed.
    """

    body: str
    results: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    shown: RenderResult | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and where.

    Attributes:
        prompt: The prompt; the memory and its instructions are added to it.
        branch_id: The branch whose memory is shown and written.
        task_hint: What is being done, such as ``draft``.
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


def ask_with_memory(
    memory: BranchedMemory,
    ask: Callable[[str], str],
    question: Question,
    *,
    log: MemoryPromptLog | None = None,
) -> Answer:
    """Ask a model, apply what it writes, and ask again while it reads or errs.

    A reply that reads is answered with the results, `memory.max_memory_read_rounds` times; its
    reads after that are done and not shown, and its body is taken. A reply whose block is
    missing, malformed or refused is sent back with the reason, three replies in all. A reply to
    results of reads needs no block of its own: the one that read was the block of the question.

    Args:
        memory: The memory.
        ask: The model: a prompt in, its reply out.
        question: What is asked.
        log: Where to note what was shown and done.

    Raises:
        MemoryUpdateError, InvalidUpdate, RecordNotVisible: If the last reply was still unusable.
        UnknownBranch, BranchSealed: If the branch takes no writes.
    """
    shown = _shown(memory, question)
    if log is not None:
        log.injection(shown, task_hint=question.task_hint, node_id=question.node_id)
    memory[question.branch_id].note_injection(shown, question.task_hint)
    answer, feedback, failures = Answer("", shown=shown), "", 0
    rounds = memory.config.max_memory_read_rounds
    while True:
        text = ask(_prompt(question, shown, feedback, rounds))
        answer.calls += 1
        is_written = bool(answer.results) and question.presence == "required"
        try:
            reply = read_reply(text, "optional" if is_written else question.presence)
            updates = check_updates(reply.updates or {})
            results = _apply(memory, question, reply.updates)
        except (MemoryUpdateError, InvalidUpdate, RecordNotVisible) as error:
            failures += 1
            if failures >= _ATTEMPTS:
                raise
            feedback = f"Your last reply could not be used.\n{error}\nIt was:\n{text[:_ECHO_CHARS]}"
            continue
        if reply.updates:
            answer.results.append(results)
            if log is not None:
                log.operations(updates, results, label=question.task_hint, counter=answer.calls)
        if not has_reads(updates) or rounds <= 0:
            answer.body = reply.body
            return answer
        rounds -= 1
        most = memory.config.section_budgets["results"]
        feedback = f"{format_results(results, max_chars=most)}\n{_FINAL}"


def _shown(memory: BranchedMemory, question: Question) -> RenderResult:
    """Render the memory; where it overflows, relieve it first."""
    branch = memory[question.branch_id]
    branch.relieve_if_needed(question.task_hint)
    return branch.render(question.task_hint, task=question.task)


def _apply(
    memory: BranchedMemory, question: Question, updates: dict[str, Any] | None
) -> dict[str, Any]:
    if not updates:
        return {}
    return memory[question.branch_id].apply(updates, question.node_id, question.task_hint)


def _prompt(question: Question, shown: RenderResult, feedback: str, reads: int) -> str:
    parts = [question.prompt]
    if shown.text:
        parts.append(f"# Memory\n{shown.text}")
    if question.presence != "forbidden":
        is_required = question.presence == "required"
        said = instructions(is_required=is_required, reads=reads)
        parts.append(f"# Memory operations\n{said}")
    if feedback:
        parts.append(f"# Feedback\n{feedback}")
    return "\n\n".join(parts)
