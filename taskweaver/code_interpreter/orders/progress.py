"""The state of an order in words: the cells that ran for it so far, and whether it must end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import has_run
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.role.correction import task_of, tries_so_far
from taskweaver.utils.text import fenced, shorten

MOST_CELLS = 8
"""Most cells that run for one order, those that failed included."""

_SAME_CELLS = 3
"""Cells in a row with the same code and outcome that end an order."""

_EARLIER_CHARS = 6_000


@dataclass(frozen=True, slots=True)
class OrderProgress:
    """An order, and the posts that its receiver wrote to itself since.

    Attributes:
        task: The order.
        notes: The posts, the oldest first.
        tries: Number of corrections among them.
    """

    task: Post
    notes: tuple[Post, ...]
    tries: int

    @property
    def cells(self) -> list[Post]:
        """The posts whose cells ran."""
        return [post for post in self.notes if has_run(post)]

    @property
    def room(self) -> int:
        """Number of cells that may still run."""
        return MOST_CELLS - len(self.cells)

    @property
    def must_answer(self) -> bool:
        """Whether the order ends with the next reply, which is one in words.

        After the last cell, after cells that all do the same, and after an empty reply to an
        outcome.
        """
        cells = self.cells
        if self.room <= 0 or repeats(cells) >= _SAME_CELLS:
            return True
        newest = self.notes[-1] if self.notes else None
        return bool(cells) and newest is not None and _is_empty_reply(newest)


def progress_of(rounds: Sequence[Round], alias: str) -> OrderProgress | None:
    """Return the state of the newest order of a role; None if there is no order."""
    task = task_of(rounds, alias)
    if task is None:
        return None
    posts = reversed(rounds[-1].post_list)
    notes = list(takewhile(lambda post: post.send_from == post.send_to == alias, posts))
    return OrderProgress(task, tuple(reversed(notes)), tries_so_far(rounds, alias))


def repeats(cells: Sequence[Post]) -> int:
    """Count the newest cells that have the same code and the same outcome."""
    newest = _gist(cells[-1]) if cells else None
    return sum(1 for _ in takewhile(lambda post: _gist(post) == newest, reversed(cells)))


def earlier_outcomes(cells: Sequence[Post], *, level: int = 2) -> str:
    """Return the cells of an order with their outcomes, bounded, for the report on it.

    Failed ones are left out where a later one succeeded.
    """
    shown = [post for at, post in enumerate(cells) if _is_success(post) or at == len(cells) - 1]
    limit_chars = _EARLIER_CHARS // max(len(shown), 1)
    heading = "#" * level
    parts = []
    for number, post in enumerate(shown, start=1):
        code = fenced(text_of(post, AttachmentType.reply_content), "python")
        result = text_of(post, AttachmentType.execution_result)
        text = shorten(f"{code}\n\n{result}", limit_chars)
        parts.append(f"{heading} Cell {number}\n{text}")
    return "\n\n".join(parts)


def text_of(post: Post, kind: AttachmentType) -> str:
    """Return the attachments of a type as one text."""
    return "\n".join(str(item.content) for item in post.get_attachment(kind))


def _is_success(post: Post) -> bool:
    return text_of(post, AttachmentType.execution_status) == "SUCCESS"


def _gist(post: Post) -> tuple[str, str]:
    code = text_of(post, AttachmentType.reply_content)
    return code, text_of(post, AttachmentType.execution_result)


def _is_empty_reply(post: Post) -> bool:
    invalid = post.get_attachment(AttachmentType.invalid_response)
    return bool(invalid) and not str(invalid[-1].content).strip()
