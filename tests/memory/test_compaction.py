"""Background summaries, each with its real thread and a small real summariser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S

from taskweaver.config.keys.known_keys import BY_NAME
from taskweaver.memory import (
    Attachment,
    CompactorConfig,
    ContextCompactor,
    Memory,
    Post,
    Round,
)
from taskweaver.memory.compaction import PROMPT_FILE
from taskweaver.memory.summaries.transcript import ROUND_CHARS
from taskweaver.utils.files import read_yaml
from taskweaver.utils.text import wrap_temporal


class Notes:
    """A summariser that answers with what a function makes of the call's number.

    Attributes:
        calls: Instructions, text and alias of each call.
    """

    def __init__(self, answer: Callable[[int], str] = lambda call: f"notes {call}") -> None:
        self._answer = answer
        self.calls: list[tuple[str, str, str]] = []

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        self.calls.append((instructions, text, llm_alias))
        return self._answer(len(self.calls))

    def text(self, call: int = -1) -> str:
        return self.calls[call][1]


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


class Log:
    """A log that is kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, msg: str, /) -> None:
        self.lines.append(msg)

    def exception(self, msg: str, /) -> None:
        self.lines.append(msg)


def compactors() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "compaction"]


def settle() -> None:
    """Wait until no summary is in the making."""
    for thread in compactors():
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@pytest.fixture(autouse=True)
def _no_compactor_left() -> Iterator[None]:
    yield
    settle()


class Chat:
    """A memory whose Planner is summarised."""

    def __init__(
        self, model: object | None = None, log: Log | None = None, **config: object
    ) -> None:
        facts = {"threshold": 4, "retain_recent": 1, "token_threshold": 0, **config}
        self.memory = Memory("s")
        self.model = model or Notes()
        self.log = log or Log()
        self.compactor = ContextCompactor(
            CompactorConfig(**facts),  # type: ignore[arg-type]
            self.model,  # type: ignore[arg-type]
            lambda: self.memory.get_role_rounds("Planner"),
            self.log,
            "small",
        )
        self.memory.register_compaction_provider("Planner", self.compactor)

    def begin(self, query: str, answer: str = "answer") -> Round:
        round_ = self.memory.create_round(query)
        self.memory.add_post(round_, Post.create(query, "User", "Planner"))
        self.memory.add_post(round_, Post.create(f"{answer} {query}", "Planner", "User"))
        return round_

    def play(self, *queries: str, state: str = "finished", answer: str = "answer") -> None:
        """Play rounds; each waits for the summary it may start."""
        for query in queries:
            self.memory.end_round(self.begin(query, answer), state)  # type: ignore[arg-type]
            settle()

    def seen(self) -> tuple[list[str], str | None]:
        """Return the queries the Planner reads in full, and the summary it reads."""
        rounds, summary = self.memory.get_role_rounds_with_compaction("Planner")
        return [r.user_query for r in rounds], summary.summary if summary else None


def queries(count: int, start: int = 1) -> list[str]:
    return [f"query {number}" for number in range(start, start + count)]


def test_nothing_happens_before_enough_rounds_were_said() -> None:
    chat = Chat()
    chat.play(*queries(3))

    assert chat.seen() == (queries(3), None)
    assert chat.model.calls == []  # type: ignore[attr-defined]


def test_the_oldest_rounds_are_summarised_and_the_newest_kept() -> None:
    chat = Chat()
    chat.play(*queries(4))

    compaction = chat.compactor.get_compaction()

    assert chat.seen() == (["query 4"], "notes 1")
    assert compaction is not None
    assert (compaction.start_index, compaction.end_index) == (1, 3)
    assert compaction.last_round_id == chat.memory.conversation.rounds[2].id
    assert len(chat.memory.conversation.rounds) == 4


def test_no_thread_exists_before_there_is_work_and_none_after_it() -> None:
    hanging = Hanging()
    chat = Chat(hanging)
    chat.play(*queries(2))
    assert compactors() == []
    chat.begin("query 3")
    chat.begin("query 4")

    assert hanging.called.wait(PATIENCE_S)
    assert len(compactors()) == 1

    hanging.let_go.set()
    settle()
    assert compactors() == []


def test_a_later_summary_is_made_of_the_former_and_the_new_rounds_and_replaces_it() -> None:
    model = Notes()
    chat = Chat(model)
    chat.play(*queries(7))

    assert chat.seen() == (["query 7"], "notes 2")
    assert "notes 1" in model.text()
    assert "query 3" not in model.text()
    assert "### Round 4\nThe user asked: query 4" in model.text()
    assert "answer query 6" in model.text()
    assert "query 7" not in model.text()


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


def test_without_recent_rounds_all_that_ended_are_covered() -> None:
    chat = Chat(retain_recent=0, threshold=3)
    # Rounds of the conversation itself tell nobody: the compactor first hears when all have ended.
    chat.memory.conversation.rounds += [
        Round.create(query, state="finished", post_list=[Post.create(query, "User", "Planner")])
        for query in ("one", "two", "three")
    ]
    chat.compactor.notify_rounds_changed()
    settle()

    assert chat.seen() == ([], "notes 1")


def test_failed_rounds_are_not_covered_and_shift_nothing() -> None:
    model = Notes()
    chat = Chat(model)
    chat.play("one")
    chat.play("broken", state="failed")
    chat.play("two", "three")
    chat.play("broken too", state="failed")
    chat.play("four", "five")

    assert chat.seen() == (["four", "five"], "notes 1")
    assert "broken" not in model.text()


def test_long_texts_start_a_summary_before_many_rounds_do() -> None:
    model = Notes()
    chat = Chat(model, threshold=100, token_threshold=2_000)
    chat.play("one", "two")
    assert chat.seen()[1] is None

    chat.play("three", answer="word " * 2_000)
    assert chat.seen()[1] is None
    chat.play("four")

    assert chat.seen() == (["four"], "notes 1")


def test_text_that_cannot_be_freed_starts_nothing() -> None:
    model = Notes()
    chat = Chat(model, threshold=100, token_threshold=2_000, retain_recent=1)
    chat.play("one", "two")
    chat.play("three", answer="word " * 10_000)

    assert model.calls == []


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

    text = model.text(0)

    for part in ("pd.read_csv('sales.csv')", "KeyError: 'Cuont'", "figure_1.png\ntable.csv", "df"):
        assert part in text
    assert "a private thought" not in text
    assert text.count("The code ran to its end.") == 1


def test_what_the_summariser_reads_is_bounded_however_long_rounds_are() -> None:
    model = Notes()
    chat = Chat(model)
    for query in queries(4):
        round_ = chat.begin(query, "x" * 1_000_000)
        for number in range(20):
            post = Post.create("y" * 50_000, "CodeInterpreter", "Planner")
            post.add_attachment(Attachment.create("code_error", f"{number} " + "z" * 50_000))
            chat.memory.add_post(round_, post)
        chat.memory.end_round(round_, "finished")
        settle()
    settle()

    assert len(model.calls) >= 1
    assert all(len(text) < 3 * ROUND_CHARS for _, text, _ in model.calls)


def test_more_rounds_than_one_call_may_read_take_several_calls() -> None:
    model = Notes()
    chat = Chat(model, enabled=True)
    other = ContextCompactor(
        CompactorConfig(threshold=2, retain_recent=1, token_threshold=0),
        model,
        lambda: chat.memory.get_role_rounds("Reader"),
    )
    for number in range(40):
        round_ = chat.memory.create_round(str(number))
        chat.memory.add_post(round_, Post.create("w" * 3_900, "Reader", "User"))
        chat.memory.end_round(round_, "finished")
    chat.compactor.stop()
    model.calls.clear()

    other.start()
    settle()

    compaction = other.get_compaction()
    assert compaction is not None
    assert compaction.end_index == 39
    assert len(model.calls) == 3


def test_text_of_rounds_is_never_a_template_and_text_of_the_moment_is_left_out() -> None:
    model = Notes()
    chat = Chat(model)
    chat.play("{PREVIOUS_SUMMARY} {content} {0.__class__} {", "two")
    chat.play("three", answer=wrap_temporal("a whole page"))
    chat.play("four")

    assert "{PREVIOUS_SUMMARY} {content} {0.__class__} {" in model.text()
    assert "a whole page" not in model.text()


def test_the_model_of_the_alias_is_told_what_to_keep() -> None:
    model = Notes()
    Chat(model).play(*queries(4))

    instructions, text, alias = model.calls[0]

    assert instructions == read_yaml(PROMPT_FILE)["instructions"]
    assert "## Notes so far\nNone" in text
    assert alias == "small"


@pytest.mark.parametrize("answer", ["", "  \n", "long " * 10_000])
def test_a_summary_of_no_use_leaves_everything_as_it_was_and_is_logged(answer: str) -> None:
    log = Log()
    chat = Chat(Notes(lambda _: answer), log)
    chat.play(*queries(4))

    assert chat.seen() == (queries(4), None)
    assert any("is not used" in line for line in log.lines)


def failing(call: int) -> str:
    raise ConnectionError("no model")


def test_after_failures_the_next_try_takes_more_and_more_rounds() -> None:
    model, log = Notes(failing), Log()
    chat = Chat(model, log)
    tried_at = []
    for number in range(1, 20):
        calls = len(model.calls)
        chat.play(f"query {number}")
        if len(model.calls) > calls:
            tried_at.append(number)

    assert tried_at == [4, 5, 7, 11, 19]
    assert chat.seen() == (queries(19), None)
    assert len(log.lines) == 5


def test_a_model_that_recovers_is_used_again() -> None:
    def answer(call: int) -> str:
        return failing(call) if call < 3 else "notes at last"

    chat = Chat(Notes(answer))
    chat.play(*queries(7))

    assert chat.seen() == (["query 7"], "notes at last")


def test_a_failing_pass_keeps_the_former_summary() -> None:
    chat = Chat(Notes(lambda call: "notes" if call == 1 else failing(call)))
    chat.play(*queries(7))

    assert chat.seen() == (queries(4, start=4), "notes")


def test_after_a_failure_less_is_offered_at_once() -> None:
    model = Notes(failing)
    chat = Chat(model)
    chat.play(*queries(11), answer="x" * 20_000)

    sizes = [len(text) for _, text, _ in model.calls]
    assert sizes[-1] < sizes[1]


def test_a_round_a_summary_cannot_be_made_of_is_a_failure_like_any_other() -> None:
    class Unreadable:
        def __str__(self) -> str:
            raise ZeroDivisionError

    log = Log()
    chat = Chat(Notes(), log)
    chat.play("one")
    attachment = Attachment.create("text", Unreadable())
    chat.memory.conversation.rounds[0].post_list[0].add_attachment(attachment)
    chat.play("two", "three", "four")

    assert chat.seen()[1] is None
    assert log.lines == ["old rounds could not be summarised; they stay as they are"]


def test_rounds_that_cannot_be_read_are_logged_and_disturb_nobody() -> None:
    log = Log()

    def getter() -> list[Round]:
        raise RuntimeError("gone")

    compactor = ContextCompactor(CompactorConfig(), Notes(), getter, log)
    compactor.notify_rounds_changed()

    assert compactor.get_compaction() is None
    assert log.lines == ["the rounds to summarise cannot be read"]


def test_a_compactor_that_is_switched_off_does_nothing() -> None:
    chat = Chat(enabled=False)
    chat.play(*queries(9))

    assert chat.seen() == (queries(9), None)


def test_stopping_ends_it_and_starting_begins_again() -> None:
    chat = Chat()
    chat.play(*queries(4))
    chat.compactor.stop()
    chat.compactor.stop()
    chat.play(*queries(4, start=5))
    assert chat.seen() == (queries(5, start=4), "notes 1")

    chat.compactor.start()
    settle()

    assert chat.seen() == (["query 8"], "notes 2")


def test_stopping_does_not_wait_for_a_model_that_hangs_and_takes_nothing_from_it() -> None:
    hanging, log = Hanging(), Log()
    chat = Chat(hanging, log)
    for query in queries(4):
        chat.memory.end_round(chat.begin(query), "finished")
    assert hanging.called.wait(PATIENCE_S)

    chat.compactor.stop()

    assert not hanging.ended.is_set()
    assert any("no longer wanted" in line for line in log.lines)
    hanging.let_go.set()
    settle()
    assert chat.seen() == (queries(4), None)


def test_a_conversation_put_in_place_of_another_is_summarised_from_its_start(
    tmp_path: Path,
) -> None:
    model = Notes()
    chat = Chat(model)
    chat.play(*queries(4))
    other = Chat()
    other.compactor.stop()
    other.play(*queries(6, start=100))

    chat.memory.from_yaml("t", other.memory.save_experience(tmp_path))
    settle()

    assert chat.seen() == (["query 105"], "notes 2")
    assert "notes 1" not in model.text()


def test_a_prompt_of_the_users_own_is_used(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("version: 1\ncontent: 'Before: {PREVIOUS_SUMMARY}; new: {content}'\n")
    model = Notes()
    Chat(model, prompt_template_path=own).play(*queries(4))

    instructions, text, _ = model.calls[0]
    assert text.startswith("Before: None; new: ### Round 1")
    assert instructions == read_yaml(PROMPT_FILE)["instructions"]


@pytest.mark.parametrize("content", ["content: no place\n", "[]", "{", None])
def test_a_prompt_that_cannot_be_used_is_logged_and_replaced(
    content: str | None, tmp_path: Path
) -> None:
    own = tmp_path / "own.yaml"
    if content is not None:
        own.write_text(content)
    log = Log()
    chat = Chat(Notes(), log, prompt_template_path=str(own))
    chat.play(*queries(4))

    assert chat.seen()[1] == "notes 1"
    assert any("own.yaml" in line for line in log.lines)


def test_the_defaults_are_those_of_the_configuration() -> None:
    table = {name: key.default for name, key in BY_NAME.items()}
    default = CompactorConfig()

    assert table["planner.compaction_threshold"] == default.threshold
    assert table["planner.compaction_retain_recent"] == default.retain_recent
    assert table["planner.compaction_token_threshold"] == default.token_threshold
    assert table["planner.prompt_compression"] == default.enabled


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
