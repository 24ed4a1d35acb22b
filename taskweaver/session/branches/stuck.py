"""Detection of a conversation that goes in circles.

Two roles are stuck when one repeats a message to the other: the same step failing the same way,
or the same words echoed. The last lines of errors are compared where runs failed, whole messages
and cells otherwise; digits and white space of messages do not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.memory.attachment import Attachment, AttachmentType
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
    count = 0
    for post in reversed(same_pair):
        if _gist(post) != said:
            break
        count += 1
    return count


def _gist(post: Post) -> str:
    errors = post.get_attachment(AttachmentType.code_error)
    said = post.message.partition(_NOTE)[0]
    text = str(errors[-1].content).strip().splitlines()[-1:] if errors else [said]
    code = [] if errors else [str(item.content) for item in _cells(post)]
    return " ".join([*_DIGITS.sub("0", " ".join(text)).lower().split(), *code])


def _cells(post: Post) -> list[Attachment]:
    return post.get_attachment(AttachmentType.reply_content)


def repetition_hint(post: Post) -> str:
    """Return the hint for the receiver of a repeated post."""
    return (
        f"{_NOTE} {post.send_from} has now said the same to you again. Repeating the step will"
        " not help: change the approach, ask the user, or report what was found so far.]"
    )


def stuck_summary(posts: Sequence[Post]) -> str:
    """Return the message to the user at the end of a stuck round: attempts and findings."""
    plans = [item for post in posts for item in post.get_attachment(AttachmentType.plan)]
    errors = [item for post in posts for item in post.get_attachment(AttachmentType.code_error)]
    results = [
        post.message
        for post in posts
        if post.send_from != post.send_to
        and any(
            item.content == "SUCCESS"
            for item in post.get_attachment(AttachmentType.execution_status)
        )
    ]
    last = posts[-1]
    parts = [
        f"I stopped because the work went in circles: {last.send_from} kept telling"
        f" {last.send_to} the same."
    ]
    parts += [f"The plan was:\n\n{plans[-1].content}"] if plans else []
    parts += [f"The last step that worked gave:\n\n{results[-1]}"] if results else []
    parts += [f"What kept failing:\n\n```\n{errors[-1].content}\n```"] if errors else []
    parts.append("Tell me what to do differently, or ask in another way.")
    return "\n\n".join(parts)
