"""The code a conversation ran, for running it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round


@dataclass(frozen=True, slots=True)
class RecordedCell:
    """A cell that ran and succeeded.

    Attributes:
        post_id: Post it belongs to; its files were named after that.
        code: What was run.
        role: Alias of the role that ran it.
    """

    post_id: str
    code: str
    role: str = ""


def successful_cells(rounds: Iterable[Round]) -> list[RecordedCell]:
    """Return the cells that succeeded, in order; those of failed rounds changed variables too."""
    cells = []
    for round_ in rounds:
        for post in round_.post_list:
            status = post.get_attachment(AttachmentType.execution_status)
            code = post.get_attachment(AttachmentType.reply_content)
            if status and code and str(status[-1].content) == "SUCCESS":
                cells.append(RecordedCell(post.id, str(code[-1].content), post.send_from))
    return cells


def ran_code(round_: Round) -> bool:
    """Return whether code ran in a round, with success or without."""
    return any(post.get_attachment(AttachmentType.execution_status) for post in round_.post_list)
