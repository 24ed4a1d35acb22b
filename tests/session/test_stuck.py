"""What counts as going in circles."""

from __future__ import annotations

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.post import Post
from taskweaver.session.branches.stuck import repetition_hint, repetitions, stuck_summary


def post(sender: str, receiver: str, message: str, error: str | None = None) -> Post:
    made = Post.create(message, sender, receiver)
    if error is not None:
        made.add_attachment(Attachment.create(AttachmentType.code_error, error))
    return made


def test_the_same_error_counts_although_the_code_differs() -> None:
    trace = "Traceback\n  line {}\nKeyError: 'Cuont'"
    posts = [
        post("Planner", "CodeInterpreter", "load it"),
        post("CodeInterpreter", "Planner", "report one", trace.format(3)),
        post("Planner", "CodeInterpreter", "try it in another way"),
        post("CodeInterpreter", "Planner", "report two", trace.format(17)),
    ]
    assert repetitions(posts) == 2


def test_progress_between_two_like_messages_ends_the_count_and_notes_to_oneself_have_none() -> None:
    posts = [post("A", "B", "failed"), post("A", "B", "done"), post("A", "B", "failed")]
    assert repetitions(posts) == 1
    assert repetitions([]) == 0
    assert repetitions([post("A", "A", "mend it"), post("A", "A", "mend it")]) == 0


def test_a_note_added_to_a_message_does_not_hide_the_repetition() -> None:
    first = post("A", "B", "done")
    first.message += repetition_hint(first)
    assert repetitions([first, post("A", "B", "done")]) == 2


def test_the_farewell_tells_plan_result_and_error() -> None:
    planned = post("Planner", "CodeInterpreter", "go")
    planned.add_attachment(Attachment.create(AttachmentType.plan, "1. load\n2. sum"))
    worked = post("CodeInterpreter", "Planner", "loaded 12 rows")
    worked.add_attachment(Attachment.create(AttachmentType.execution_status, "SUCCESS"))
    failed = post("CodeInterpreter", "Planner", "failed", "KeyError: 'x'")
    text = stuck_summary([planned, worked, failed])
    for part in ("1. load", "loaded 12 rows", "KeyError: 'x'", "CodeInterpreter"):
        assert part in text
