"""The cells a conversation ran, with their outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round


@dataclass(frozen=True, slots=True)
class ExecutedCell:
    """A cell that ran, with success or without.

    Attributes:
        number: Its place among the cells of the conversation, from 1.
        post_id: The post it belongs to.
        role: Alias of the role that ran it.
        code: The code.
        is_success: Whether it ran to its end.
        report: Result, output and errors, as recorded.
        variables: Names and descriptions of the variables after it.
        artifacts: Names of the files it made.
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
    """Return the cell of a post whose cell ran, and its place among those of the conversation."""
    return ExecutedCell(
        number=number,
        post_id=post.id,
        role=post.send_from,
        code=_last(post, AttachmentType.reply_content),
        is_success=_status(post) == "SUCCESS",
        report="\n\n".join(_texts(post, AttachmentType.execution_result)),
        variables=tuple(_variables(post)),
        artifacts=tuple(_artifacts(post)),
    )


def _status(post: Post) -> str:
    return _last(post, AttachmentType.execution_status)


def _texts(post: Post, kind: AttachmentType) -> list[str]:
    return [str(attachment.content) for attachment in post.get_attachment(kind)]


def _last(post: Post, kind: AttachmentType) -> str:
    texts = _texts(post, kind)
    return texts[-1] if texts else ""


def _variables(post: Post) -> Iterator[tuple[str, str]]:
    stored = _last(post, AttachmentType.session_variables)
    try:
        pairs = json.loads(stored) if stored else []
    except ValueError:  # shortened by another program; the report has the rest
        pairs = []
    for pair in pairs if isinstance(pairs, list) else []:
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])


def _artifacts(post: Post) -> Iterator[str]:
    for attachment in post.get_attachment(AttachmentType.artifact_paths):
        content = attachment.content
        yield from map(str, content if isinstance(content, list | tuple) else [content])
