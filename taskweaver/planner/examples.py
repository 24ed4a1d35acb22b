"""Example conversations, as a Planner that writes cells itself would have held them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.post import Post
from taskweaver.role.forms.offer import USER

_CODE = re.compile(r"\A## Code\n(?P<mark>`{3,})python\n(?P<code>.*?)\n(?P=mark)\n+", re.DOTALL)
_KEPT = (AttachmentType.thought, AttachmentType.plan)


def led_examples(examples: Sequence[Conversation], leader: str, runner: str) -> list[Conversation]:
    """Return examples in which the leader's orders to a runner of cells carry the cells.

    An order whose cell is not recorded stays one in words.
    """
    return _rewritten(examples, lambda posts: _led(posts, leader, runner))


def cell_examples(examples: Sequence[Conversation], leader: str, runner: str) -> list[Conversation]:
    """Return examples of a runner's own model as a leader's, to whom the user gives the orders."""
    return _rewritten(examples, lambda posts: _asked(posts, leader, runner))


def _rewritten(
    examples: Sequence[Conversation], rewrite: Callable[[Sequence[Post]], Iterator[Post]]
) -> list[Conversation]:
    return [
        replace(
            example,
            rounds=[
                replace(round_, post_list=list(rewrite(round_.post_list)))
                for round_ in example.rounds
            ],
        )
        for example in examples
    ]


def has_order_in_words(examples: Sequence[Conversation], leader: str, runner: str) -> bool:
    """Return whether the leader gives the runner an order without a cell in an example."""
    posts = (post for example in examples for round_ in example.rounds for post in round_.post_list)
    return any(_is_order(post, leader, runner) and not _code(post) for post in posts)


def _led(posts: Sequence[Post], leader: str, runner: str) -> Iterator[Post]:
    """Yield the posts, with each cell moved from the report on it to the order."""
    reports = iter([post for post in posts if post.send_from == runner])
    for post in posts:
        if _is_order(post, leader, runner):
            report = next(reports, None)
            kept = [item for item in post.attachment_list if item.type in _KEPT]
            yield replace(post, attachment_list=[*kept, *_cell(report)])
        elif post.send_from == runner:
            yield replace(post, message=_CODE.sub("", post.message, count=1))
        else:
            yield post


def _asked(posts: Sequence[Post], leader: str, runner: str) -> Iterator[Post]:
    """Yield the posts, with an order to the leader in place of each to the runner."""
    for post in posts:
        forms = [item.content for item in post.get_attachment(AttachmentType.reply_type)]
        if post.send_from != runner:
            yield replace(post, send_from=USER, send_to=leader)
        elif "text" in forms or not _code(post):
            yield replace(post, send_from=leader, send_to=USER)
        else:
            kinds = AttachmentType.thought, AttachmentType.execution_result
            thoughts, results = map(post.get_attachment, kinds)
            words, outcome = (
                "\n".join(str(item.content) for item in items) for items in (thoughts, results)
            )
            yield Post.create(words, leader, runner, [*thoughts, *_cell(post)])
            yield Post.create(outcome or _CODE.sub("", post.message), runner, leader)


def _cell(report: Post | None) -> list[Attachment]:
    """Return the cell of a report, from its attachments or else from its text."""
    if report is None:
        return []
    match = _CODE.match(report.message)
    code = [str(item.content) for item in _code(report)] or ([match["code"]] if match else [])
    if not code:
        return []
    kinds = {AttachmentType.reply_type: "python", AttachmentType.reply_content: code[-1]}
    return [Attachment.create(kind, text) for kind, text in kinds.items()]


def _is_order(post: Post, leader: str, runner: str) -> bool:
    return post.send_from == leader and post.send_to == runner


def _code(post: Post) -> list[Attachment]:
    return post.get_attachment(AttachmentType.reply_content)
