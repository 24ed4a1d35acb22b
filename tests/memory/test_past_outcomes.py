"""Outcomes of past rounds in prompts: shortened, with the store as it was."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from taskweaver.memory import Attachment, AttachmentType, Memory, Post, Round
from taskweaver.memory.reading.outcomes import (
    PastOutcomes,
    outcome_chars,
    short_outcome,
    with_short_outcomes,
)

KIND = AttachmentType
LONG = "## Output\n" + "\n".join(f"row {n} {n * 0.5}" for n in range(400)) + "\nlast line"


def report(text: str) -> Post:
    items = [
        Attachment.create(KIND.reply_content, "print(1)"),
        Attachment.create(KIND.execution_status, "SUCCESS"),
        Attachment.create(KIND.execution_result, text),
    ]
    return Post.create(text, "CodeInterpreter", "Planner", items)


def played(*texts: str) -> list[Round]:
    memory = Memory("s")
    for text in texts:
        round_ = memory.create_round("go")
        memory.add_post(round_, Post.create("go", "User", "Planner"))
        memory.add_post(round_, report(text))
        memory.end_round(round_, "finished")
    return memory.get_role_rounds("Planner")


def test_beginning_end_and_the_numbers_left_out_are_stated() -> None:
    short = short_outcome(LONG, 600)
    assert len(short) <= 700
    assert short.startswith("## Output\nrow 0 0.0")
    assert short.endswith("last line")
    assert "characters with numbers from " in short
    assert short_outcome(LONG, len(LONG)) is LONG


def test_dates_paths_and_versions_are_no_numbers() -> None:
    text = "x" * 60 + " 2024-01-05 12:30 /9/ 1.2.3 a7 1,234 5e999e 17 " + "y" * 300
    assert "numbers from 17 to 17 left out" in short_outcome(text, 100)


@given(st.text(max_size=3000), st.integers(100, 2000))
def test_a_short_outcome_is_never_longer_and_keeps_both_ends(text: str, limit: int) -> None:
    short = short_outcome(text, limit)
    assert len(short) <= max(limit + 150, 0)
    assert short[: limit // 2] == text[: limit // 2]
    assert short == text or short[-limit // 4 :] == text[-limit // 4 :]


def test_the_room_follows_the_window() -> None:
    assert [outcome_chars(tokens) for tokens in (0, 2_048, 8_192, 200_000)] == [
        2_000, 400, 655, 2_000,
    ]  # fmt: skip


def test_all_rounds_but_the_last_are_short_and_made_once() -> None:
    rounds, past = played(LONG, "short", LONG), PastOutcomes()
    shown = past.shortened(rounds, 8_192)
    assert len(shown[0].post_list[-1].message) < 800
    (stored,) = shown[0].post_list[-1].get_attachment(KIND.execution_result)
    assert len(stored.content) < 800
    assert shown[1:] == rounds[1:]
    assert shown[2] is rounds[2]
    assert past.shortened(rounds, 8_192)[0] is shown[0]
    assert len(past.shortened(rounds, 0)[0].post_list[-1].message) > 2_000
    assert rounds[0].post_list[-1].message == LONG  # the posts themselves stay


def test_what_is_short_or_no_outcome_stays_the_same_object() -> None:
    (round_,) = played("short")
    assert with_short_outcomes(round_, 400) is round_
    said = Round.create("q", post_list=[Post.create("word " * 900, "User", "Planner")])
    assert with_short_outcomes(said, 400) is said
    assert json.dumps(said.to_dict())
