"""The code a conversation ran, for running it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.tables.plans.plan import TableRead, reads_of

TABLES_KEY = "tables"
"""Key of the reads of tables of a cell, in the extra data of its execution status."""

ORDER_KEY = "order"
"""Key of the id of the post that carried the cell, in the same data."""


@dataclass(frozen=True, slots=True)
class RecordedCell:
    """A cell that ran.

    Attributes:
        post_id: Post it belongs to; its files were named after that.
        code: The code that ran.
        role: Alias of the role that ran it.
    """

    post_id: str
    code: str
    role: str = ""

    @property
    def is_script(self) -> bool:
        """Whether it is a script of another language, which leaves no variables."""
        return self.code.startswith("%%")


@dataclass(frozen=True, slots=True)
class Ran:
    """Outcome of a cell that ran again.

    Attributes:
        report: The report on it, as it is recorded.
        error: Why it failed; empty when it did not.
        variables: The variables after it, each in a line, by name.
    """

    report: str
    error: str
    variables: Mapping[str, str] = field(default_factory=dict)


def successful_cells(rounds: Iterable[Round]) -> list[RecordedCell]:
    """Return the cells that succeeded, in order; those of failed rounds changed variables too."""
    return [cell for status, cell in _cells(rounds) if status == "SUCCESS"]


def ran_cells(rounds: Iterable[Round]) -> list[RecordedCell]:
    """Return the cells that ran, in order, with success or without."""
    return [cell for _, cell in _cells(rounds)]


def table_reads(post: Post) -> list[TableRead]:
    """Return the calls of `read_table` of the cell that a post ran."""
    status = post.get_attachment(AttachmentType.execution_status)
    extra = status[-1].extra if status else None
    return reads_of(extra.get(TABLES_KEY)) if isinstance(extra, dict) else []


def carried_code(order: Post) -> str:
    """Return the cell that an order carries, for its receiver to run; empty if it has none."""
    is_report = order.get_attachment(AttachmentType.execution_status)
    code = order.get_attachment(AttachmentType.reply_content)
    return str(code[-1].content) if code and not is_report else ""


def _cells(rounds: Iterable[Round]) -> Iterator[tuple[str, RecordedCell]]:
    for round_ in rounds:
        for post in round_.post_list:
            status = post.get_attachment(AttachmentType.execution_status)
            code = post.get_attachment(AttachmentType.reply_content)
            if status and code:
                cell = RecordedCell(post.id, str(code[-1].content), post.send_from)
                yield str(status[-1].content), cell


def ran_code(round_: Round) -> bool:
    """Return whether code ran in a round, with success or without."""
    return any(post.get_attachment(AttachmentType.execution_status) for post in round_.post_list)
