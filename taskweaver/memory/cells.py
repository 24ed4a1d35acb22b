"""The cells a conversation ran: their code, for running it again, and their outcomes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.tables.plans.plan import TableRead, reads_of

TABLES_KEY = "tables"
"""Key of the reads of tables of a cell, in the extra data of its execution status."""

ORDER_KEY = "order"
"""Key of the id of the post that carried the cell, in the same data."""

_HEADING = re.compile(r"#{2,4} ([A-Z][A-Za-z ]{2,20})")
_FENCE = re.compile(r"(`{3,})\w*")


@dataclass(frozen=True, slots=True)
class RecordedCell:
    """A cell that ran, the post that names the cell's files, and the alias of the role."""

    post_id: str
    code: str
    role: str = ""
    is_success: bool = True

    @property
    def is_script(self) -> bool:
        """Whether the cell is a script of another language, which leaves no variables."""
        return self.code.startswith("%%")


@dataclass(frozen=True, slots=True)
class Ran:
    """Outcome of a cell that ran again: report as recorded, error or empty, a line per variable."""

    report: str
    error: str
    variables: Mapping[str, str] = field(default_factory=dict)


def successful_cells(rounds: Iterable[Round]) -> list[RecordedCell]:
    """Return the cells that succeeded, in order. Cells of failed rounds changed variables too."""
    return [cell for cell in ran_cells(rounds) if cell.is_success]


def ran_cells(rounds: Iterable[Round]) -> Iterator[RecordedCell]:
    """Yield the cells that ran, in order, with success or without."""
    return filter(None, (cell_of(post) for round_ in rounds for post in round_.post_list))


def variables_of(rounds: Sequence[Round]) -> dict[str, str]:
    """Return the variables after the newest cell of a conversation, with their descriptions."""
    return variables_after(post for one in reversed(rounds) for post in reversed(one.post_list))


def variables_after(newest_first: Iterable[Post]) -> dict[str, str]:
    """Return the variables after the newest cell of some posts, with their descriptions.

    A cell that failed without naming any, such as one whose kernel died, is passed over.
    """
    for post in newest_first:
        if post.last(AttachmentType.session_variables):
            return dict(_variables(post))
        cell = cell_of(post)
        if cell is not None and cell.is_success and not cell.is_script:
            return {}
    return {}


def table_reads(post: Post) -> list[TableRead]:
    """Return the calls of `read_table` of the cell that a post ran."""
    return reads_of(_extra(post).get(TABLES_KEY))


def carried_code(order: Post) -> str:
    """Return the cell that an order carries for the receiver to run, or an empty text."""
    return "" if has_run(order) else order.last(AttachmentType.reply_content)


def order_of(report: Post) -> str:
    """Return the id of the post whose cell a report is of, if the report names a post."""
    return str(_extra(report).get(ORDER_KEY, ""))


def _extra(report: Post) -> Mapping[str, Any]:
    """Return the extra data of the execution status of a report."""
    status = report.get_attachment(AttachmentType.execution_status)
    extra = status[-1].extra if status else None
    return extra if isinstance(extra, Mapping) else {}


def parts_of(report: str) -> dict[str, str]:
    """Return the texts of a cell's report, without fences, by heading: ``Result``, ``Output``."""
    found: dict[str, list[str]] = {}
    title = fence = ""
    for line in report.split("\n"):
        if fence and line == fence:
            fence = ""
        elif not fence and (heading := _HEADING.fullmatch(line)):
            title = heading[1]
        elif not fence and (opening := _FENCE.fullmatch(line)):
            fence = opening[1]
        else:
            found.setdefault(title, []).append(line)
    return {title: "\n".join(lines).rstrip("\n") for title, lines in found.items() if title}


def has_failed(report: Post) -> bool:
    """Return whether a report is of a cell that failed."""
    return _status(report) == "FAILURE"


def cell_of(post: Post) -> RecordedCell | None:
    """Return the cell that a post reports, if any."""
    status, code = _status(post), post.last(AttachmentType.reply_content)
    is_success = status == "SUCCESS"
    return RecordedCell(post.id, code, post.send_from, is_success) if status and code else None


def has_orders(round_: Round) -> bool:
    """Return whether a role gave another one an order in a round, so that work may be done."""
    return any(
        post.send_from not in ("User", post.send_to) and post.send_to != "User"
        for post in round_.post_list
    ) or ran_code(round_)


def ran_code(round_: Round) -> bool:
    """Return whether code ran in a round, with success or without."""
    return any(map(has_run, round_.post_list))


def last_with_code(rounds: Sequence[Round]) -> Round | None:
    """Return the last round in which code ran."""
    return next(filter(ran_code, reversed(rounds)), None)


@dataclass(frozen=True, slots=True)
class ExecutedCell:
    """A cell that ran, with success or without. The number in the conversation is from 1.

    The report has result, output and errors, as recorded; variables are names and descriptions, and
    artifacts the names of the files it made.
    """

    number: int
    post_id: str
    role: str
    code: str
    is_success: bool
    report: str
    variables: tuple[tuple[str, str], ...] = ()
    artifacts: tuple[str, ...] = ()


def executed_cells(rounds: Iterable[Round]) -> list[ExecutedCell]:
    """Return the cells of a conversation that ran, in order."""
    posts = (post for round_ in rounds for post in round_.post_list if has_run(post))
    return [executed_cell(number, post) for number, post in enumerate(posts, start=1)]


def has_run(post: Post) -> bool:
    """Return whether the cell of a post ran."""
    return bool(_status(post))


def executed_cell(number: int, post: Post) -> ExecutedCell:
    """Return the cell of a post whose cell ran, with its number in the conversation."""
    return ExecutedCell(
        number=number,
        post_id=post.id,
        role=post.send_from,
        code=post.last(AttachmentType.reply_content),
        is_success=_status(post) == "SUCCESS",
        report=post.text(AttachmentType.execution_result),
        variables=tuple(_variables(post)),
        artifacts=tuple(post.artifacts),
    )


def _status(post: Post) -> str:
    return post.last(AttachmentType.execution_status)


def _variables(post: Post) -> Iterator[tuple[str, str]]:
    stored = post.last(AttachmentType.session_variables)
    try:
        pairs = json.loads(stored) if stored else []
    except ValueError:  # shortened by another program; the report has the rest
        pairs = []
    for pair in pairs if isinstance(pairs, list) else []:
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])
