"""Detection of a conversation that goes in circles.

Two roles are stuck when one repeats a message to the other: the same step failing the same way,
or the same words echoed. The last lines of errors are compared where runs failed, whole messages
and cells otherwise; digits and white space of messages do not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post

_DIGITS = re.compile(r"\d+")
_NOTE = "\n\n[Note:"


def repetitions(posts: Sequence[Post]) -> int:
    """Count the posts in a row, up to the newest, that repeat it to the same receiver."""
    if not posts or posts[-1].send_from == posts[-1].send_to:
        return 0
    newest = posts[-1]
    same_pair = [
        post
        for post in posts
        if (post.send_from, post.send_to) == (newest.send_from, newest.send_to)
    ]
    said = _gist(newest)
    return sum(1 for _ in takewhile(lambda post: _gist(post) == said, reversed(same_pair)))


def _gist(post: Post) -> str:
    error = post.last(AttachmentType.code_error)
    said = "" if error else post.message.partition(_NOTE)[0]
    code = "" if error else post.text(AttachmentType.reply_content)
    text = "".join(error.strip().splitlines()[-1:]) or said
    return " ".join([*_DIGITS.sub("0", text).lower().split(), code])


def repetition_hint(post: Post) -> str:
    """Return the hint for the receiver of a repeated post."""
    return (
        f"{_NOTE} {post.send_from} has now said the same to you again. Repeating the step will"
        " not help: change the approach, ask the user, or report what was found so far.]"
    )


def stuck_summary(posts: Sequence[Post]) -> str:
    """Return the message to the user at the end of a stuck round: attempts and findings."""
    plans = [plan for post in posts if (plan := post.last(AttachmentType.plan))]
    errors = [error for post in posts if (error := post.last(AttachmentType.code_error))]
    results = [
        post.message
        for post in posts
        if post.send_from != post.send_to
        and post.last(AttachmentType.execution_status) == "SUCCESS"
    ]
    last = posts[-1]
    parts = [
        f"I stopped because the work went in circles: {last.send_from} kept telling"
        f" {last.send_to} the same."
    ]
    parts += [f"The plan was:\n\n{plans[-1]}"] if plans else []
    parts += [f"The last step that worked gave:\n\n{results[-1]}"] if results else []
    parts += [f"What kept failing:\n\n```\n{errors[-1]}\n```"] if errors else []
    parts.append("Tell me what to do differently, or ask in another way.")
    return "\n\n".join(parts)
