"""Background summaries, each with its real thread and a small real summariser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S
from summarisers import Chat, Log, Notes, failing, settle

from taskweaver.memory import (
    Attachment,
    AttachmentType,
    CompactorConfig,
    ContextCompactor,
    Memory,
    Post,
)
from taskweaver.memory.compaction import PROMPT_FILE
from taskweaver.memory.summary_texts import HEADING, LEDGER_CHARS, ledger_of, notes_of
from taskweaver.utils.files import read_yaml
from taskweaver.utils.text import wrap_temporal


class Hanging:
    """A summariser that does not answer until it is let go."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.let_go = threading.Event()
        self.ended = threading.Event()

    def summarize(self, *_: str) -> str:
        self.called.set()
        self.let_go.wait(PATIENCE_S)
        self.ended.set()
        return "late"


@pytest.fixture(autouse=True)
def _no_compactor_left() -> Iterator[None]:
    yield
    settle()


def queries(count: int, start: int = 1) -> list[str]:
    return [f"query {number}" for number in range(start, start + count)]


def test_the_oldest_rounds_are_summarised_and_later_ones_with_the_former_summary() -> None:
    chat = Chat()
    chat.play(*queries(4))
    compaction = chat.compactor.get_compaction()
    assert chat.seen() == (["query 4"], "notes 1")
    assert chat.model.calls[0][2] == "small"
    assert compaction is not None
    assert (compaction.start_index, compaction.end_index) == (1, 3)
    assert compaction.last_round_id == chat.memory.conversation.rounds[2].id
    chat.play(*queries(3, start=5))
    assert chat.seen() == (["query 7"], "notes 2")
    for part in ("notes 1", "### Round 4\nThe user asked: query 4", "answer query 6"):
        assert part in chat.model.texts[-1]
    assert "query 3" not in chat.model.texts[-1]
    assert len(chat.memory.conversation.rounds) == 7


def test_the_round_being_answered_is_never_covered_even_when_no_recent_one_is_kept() -> None:
    chat = Chat(retain_recent=0, threshold=3)
    chat.play("one", "two")
    live = chat.begin("three")
    settle()
    assert chat.seen() == (["three"], "notes 1")
    chat.memory.end_round(live, "finished")
    chat.begin("four")
    chat.begin("five")
    settle()
    assert chat.seen()[0][-1] == "five"


def test_long_texts_start_a_summary_before_many_rounds_do() -> None:
    model = Notes()
    chat = Chat(model, threshold=100, token_threshold=2_000)
    chat.play("one", "two")
    assert chat.seen()[1] is None
    chat.play("three", answer="word " * 2_000)
    assert chat.seen()[1] is None
    chat.play("four")
    assert chat.seen() == (["four"], "notes 1")
    chat.play("five", answer="word " * 10_000)  # nothing of it can be freed
    assert len(model.calls) == 1


def test_code_results_errors_and_artifacts_are_what_the_summariser_reads() -> None:
    model = Notes()
    chat = Chat(model)
    round_ = chat.begin("load it")
    post = Post.create("## Execution\nThe code ran to its end.", "CodeInterpreter", "Planner")
    for kind, content in {
        "thought": "a private thought",
        "reply_content": "df = pd.read_csv('sales.csv')",
        "execution_result": "### Execution\nThe code ran to its end.",
        "code_error": "KeyError: 'Cuont'",
        "artifact_paths": ["figure_1.png", "table.csv"],
        "session_variables": '[["df", "5 rows"]]',
    }.items():
        post.add_attachment(Attachment.create(kind, content))
    post.add_attachment(Attachment.create("text", None))
    chat.memory.add_post(round_, post)
    chat.memory.end_round(round_, "finished")
    chat.play("two", "three", "four")
    text = model.texts[0]
    for part in ("pd.read_csv('sales.csv')", "KeyError: 'Cuont'", "figure_1.png\ntable.csv", "df"):
        assert part in text
    assert "a private thought" not in text
    assert text.count("The code ran to its end.") == 1


def test_text_of_rounds_is_never_a_template_and_text_of_the_moment_is_left_out() -> None:
    model = Notes()
    chat = Chat(model)
    chat.play("{PREVIOUS_SUMMARY} {content} {0.__class__} {", "two")
    chat.play("three", answer=wrap_temporal("a whole page"))
    chat.play("four")
    assert "{PREVIOUS_SUMMARY} {content} {0.__class__} {" in model.texts[-1]
    assert "a whole page" not in model.texts[-1]


@pytest.mark.parametrize("answer", ["  \n", "long " * 10_000])
def test_a_summary_of_no_use_leaves_everything_as_it_was_and_is_logged(answer: str) -> None:
    chat = Chat(Notes(lambda _: answer))
    chat.play(*queries(4))
    assert chat.seen() == (queries(4), None)
    assert any("is not used" in line for line in chat.log.lines)


def test_after_failures_the_next_try_takes_more_and_more_rounds() -> None:
    model = Notes(failing)
    chat = Chat(model)
    tried_at = []
    for number in range(1, 20):
        calls = len(model.calls)
        chat.play(f"query {number}")
        if len(model.calls) > calls:
            tried_at.append(number)
    assert tried_at == [4, 5, 7, 11, 19]
    assert chat.seen() == (queries(19), None)
    assert len(chat.log.lines) == 5
    model.calls.clear()
    other = Chat(model)
    other.play(*queries(11), answer="x" * 20_000)
    assert len(model.texts[-1]) < len(model.texts[1])  # less is offered after a failure


def test_rounds_that_cannot_be_read_are_logged_and_disturb_nobody() -> None:
    log = Log()
    compactor = ContextCompactor(CompactorConfig(), Notes(), lambda: {}["gone"], log)
    compactor.notify_rounds_changed()
    assert compactor.get_compaction() is None
    assert log.lines == ["the rounds to summarise cannot be read"]


def test_stopping_does_not_wait_for_a_model_that_hangs_and_takes_nothing_from_it() -> None:
    hanging = Hanging()
    chat = Chat(hanging)
    for query in queries(4):
        chat.memory.end_round(chat.begin(query), "finished")
    assert hanging.called.wait(PATIENCE_S)
    chat.compactor.stop()
    assert not hanging.ended.is_set()
    assert any("no longer wanted" in line for line in chat.log.lines)
    hanging.let_go.set()
    settle()
    assert chat.seen() == (queries(4), None)


def test_a_prompt_of_the_users_own_is_used(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("version: 1\ncontent: 'Before: {PREVIOUS_SUMMARY}; new: {content}'\n")
    model = Notes()
    Chat(model, prompt_template_path=own).play(*queries(4))
    instructions, text, _ = model.calls[0]
    assert text.startswith("Before: None; new: ### Round 1")
    assert instructions == read_yaml(PROMPT_FILE)["instructions"]


@pytest.mark.parametrize("content", ["content: no place\n", None])
def test_a_prompt_file_of_no_use_is_replaced(content: str | None, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    if content is not None:
        own.write_text(content)
    chat = Chat(prompt_template_path=str(own))
    chat.play(*queries(4))
    assert chat.seen()[1] == "notes 1"
    assert any("own.yaml" in line for line in chat.log.lines)


def test_writers_readers_and_the_compactor_do_not_disturb_each_other() -> None:
    chat = Chat(retain_recent=2, threshold=5)
    done = threading.Event()
    problems: list[str] = []

    def read() -> None:
        while not done.is_set():
            rounds, summary = chat.memory.get_role_rounds_with_compaction("Planner")
            numbers = [int(round_.user_query) for round_ in rounds]
            covered = summary.end_index if summary else 0
            if numbers != list(range(covered, covered + len(numbers))):
                problems.append(f"{covered} covered, then {numbers}")
            chat.memory.get_shared_memory_entries("plan")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(300):
        round_ = chat.begin(str(number))
        round_.add_post(Post.create("more", "CodeInterpreter", "Planner"))
        chat.memory.end_round(round_, "finished")
    done.set()
    for reader in readers:
        reader.join(PATIENCE_S)
    settle()
    chat.compactor.start()
    settle()
    assert problems == []
    assert chat.seen()[0][-1] == "299"
    assert len(chat.seen()[0]) < 5


NEVER = CompactorConfig(threshold=1_000, retain_recent=3, token_threshold=10**9)


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


def test_all_but_the_newest_rounds_are_summarised_at_once() -> None:
    memory, model = played(*queries(8)), Notes()
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


def test_without_a_model_the_programs_part_stands_alone_unless_the_round_is_stopped() -> None:
    memory = played("the limit is 0.0375", *queries(5))
    made = compactor(memory, Notes(failing))
    assert not made.compact(2, lambda: False)
    assert made.get_compaction() is None
    assert made.compact(2)
    summary = made.get_compaction()
    assert summary is not None
    assert summary.summary.startswith(HEADING)
    assert "0.0375" in summary.summary


def test_a_small_window_bounds_each_call_and_the_summary() -> None:
    memory, model = played(*queries(40), answer="long " * 500), Notes()
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
