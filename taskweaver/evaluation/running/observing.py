"""Facts about the rounds of a case, as its checks read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taskweaver.evaluation.checks.check import Observed
from taskweaver.llm.prompts import PromptRecord
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.reading.cells import executed_cells
from taskweaver.memory.round import Round
from taskweaver.module.events import RoundEventType, TaskWeaverEvent


class ErrorListener:
    """Listener that keeps the error of a round.

    Attributes:
        error: The error; empty for none.
    """

    def __init__(self) -> None:
        self.error = ""

    def handle(self, event: TaskWeaverEvent) -> None:
        """Keep an error."""
        if event.t is RoundEventType.round_error:
            self.error = event.msg


def observe(rounds: Sequence[Round], calls: Sequence[PromptRecord], cwd: Path) -> Observed:
    """Return the facts about rounds.

    Args:
        rounds: The rounds, in order.
        calls: The model calls of these rounds.
        cwd: Working directory of the session.
    """
    posts = [post for round_ in rounds for post in round_.post_list]
    last = rounds[-1] if rounds else None
    return Observed(
        question="\n".join(round_.question for round_ in rounds),
        answer=last.answer.text if last else "",
        unsupported=tuple(n for round_ in rounds for n in round_.answer.unsupported_numbers),
        is_answered=all(map(is_answered, rounds)),
        cells=tuple(executed_cells(rounds)),
        refusals=sum(map(_is_refused, posts)),
        roles=frozenset(alias for post in posts for alias in (post.send_from, post.send_to)),
        artifacts=tuple(name for round_ in rounds for name in round_.artifacts),
        cwd=cwd,
        prompts=tuple(map(_text, calls)),
    )


def is_answered(round_: Round) -> bool:
    """Return whether a round gave the user an answer, not an apology."""
    if round_.state != "finished" or not round_.post_list:
        return False
    stops = round_.post_list[-1].get_attachment(AttachmentType.stop)
    return not any(str(stop.content).strip() == "TaskFailure" for stop in stops)


def _is_refused(post: Post) -> bool:
    found = post.get_attachment(AttachmentType.verification)
    return any(str(item.content) == "INCORRECT" for item in found)


def _text(call: PromptRecord) -> str:
    """Return a prompt as text; of images nothing."""
    texts = []
    for message in call.messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content or []
        texts += [str(part["text"]) for part in parts if "text" in part]
    return "\n".join(texts)
