"""Summaries that are made at once for a prompt without room, and the program's part of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.compaction import CompactorConfig, ContextCompactor
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.summaries.ledger import HEADING, LEDGER_CHARS, ledger_of, notes_of

NEVER = CompactorConfig(threshold=1_000, retain_recent=3, token_threshold=10**9)


class Notes:
    """Summarises, or fails; keeps the texts it read."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.texts: list[str] = []

    def summarize(self, _instructions: str, text: str, _llm_alias: str = "") -> str:
        self.texts.append(text)
        if self.fails:
            raise OSError("the model is down")
        return f"notes {len(self.texts)}"


def played(*queries: str, answer: str = "It is so.") -> Memory:
    memory = Memory("s")
    for query in queries:
        round_ = memory.create_round(query)
        memory.add_post(round_, Post.create(query, "User", "Planner"))
        memory.add_post(round_, Post.create(answer, "Planner", "User"))
        memory.end_round(round_, "finished")
    return memory


def compactor(memory: Memory, model: Notes, window: int = 0) -> ContextCompactor:
    made = ContextCompactor(
        NEVER, model, memory.get_lasting_rounds, window=lambda: window, has_ledger=True
    )
    memory.register_compaction_provider("Planner", made)
    return made


def numbered(count: int) -> Sequence[str]:
    return [f"query {number}" for number in range(1, count + 1)]


def test_all_but_the_newest_rounds_are_summarised_at_once() -> None:
    memory, model = played(*numbered(8)), Notes()
    made = compactor(memory, model)

    assert made.compact(3)
    rounds, summary = memory.get_role_rounds_with_compaction("Planner")
    assert [round_.user_query for round_ in rounds] == ["query 6", "query 7", "query 8"]
    assert summary is not None
    assert summary.summary.startswith("notes 1\n\n### Kept by the program\n- 1: query 1 -> It is")
    assert not made.compact(3)
    assert made.compact(0)
    assert "notes 1" in model.texts[-1]
    assert HEADING not in model.texts[-1]


def test_without_a_model_the_programs_part_stands_alone() -> None:
    memory = played("the limit is 0.0375", *numbered(5))
    made = compactor(memory, Notes(fails=True))

    assert made.compact(2)
    summary = made.get_compaction()
    assert summary is not None
    assert summary.summary.startswith(HEADING)
    assert "0.0375" in summary.summary


def test_a_round_that_is_stopped_gets_no_lesser_summary() -> None:
    made = compactor(played(*numbered(5)), Notes(fails=True))

    assert not made.compact(2, lambda: False)
    assert made.get_compaction() is None


def test_a_small_window_bounds_each_call_and_the_summary() -> None:
    memory, model = played(*numbered(40), answer="long " * 500), Notes()
    made = compactor(memory, model, window=4_096)

    assert made.compact(0)
    assert len(model.texts) > 10
    assert max(map(len, model.texts)) < 4_096 * 2
    summary = made.get_compaction()
    assert summary is not None
    assert len(summary.summary) < 4_096


def test_files_and_variables_are_written_by_the_program() -> None:
    memory = played("load data/raw/sales.csv", "plot it")
    order, report = memory.conversation.rounds[1].post_list
    shapes = [["df", "DataFrame, 120 rows x 4 columns"], ["limit", "0.5"]]
    order.add_attachment(Attachment.create(AttachmentType.session_variables, json.dumps(shapes)))
    report.add_attachment(Attachment.create(AttachmentType.artifact_paths, ["chart.png"]))

    text = ledger_of(memory.conversation.rounds)

    assert "Files: data/raw/sales.csv, chart.png" in text
    assert "Variables: df: DataFrame, 120 rows x 4 columns; limit: 0.5" in text


def test_requests_with_exact_words_have_the_room_that_there_is() -> None:
    fillers = ["please go on with the work as before"] * 300
    memory = played("the code is ZX-8141", *fillers)

    text = ledger_of(memory.conversation.rounds)

    assert len(text) <= LEDGER_CHARS + 40
    assert "ZX-8141" in text
    assert "rounds have no line here" in text


@pytest.mark.parametrize("notes", ["", "notes", f"notes about\n{HEADING}\nof mine"])
def test_the_two_parts_are_told_apart(notes: str) -> None:
    ledger = ledger_of(played(f"a\n{HEADING}\nb").conversation.rounds)

    assert notes_of("\n\n".join(filter(None, [notes, ledger]))) == notes
