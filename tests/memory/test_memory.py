"""The memory of a session: writes, views, shared entries, saved experiences."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweaver.memory import (
    Attachment,
    AttachmentType,
    CompactedMessage,
    Conversation,
    Memory,
    Post,
    Round,
    SharedMemoryEntry,
)
from taskweaver.memory.conversation import ConversationError
from taskweaver.memory.round import file_notes, split_notes
from taskweaver.memory.views import PastOutcomes, outcome_chars, short_outcome
from taskweaver.utils.text import wrap_temporal


def said(memory: Memory, query: str, *messages: str, state: str = "finished") -> Round:
    """Play a round in which the Planner says `messages` to the user."""
    round_ = memory.create_round(query)
    for message in messages:
        memory.add_post(round_, Post.create(message, "Planner", "User"))
    memory.end_round(round_, state)  # type: ignore[arg-type]
    return round_


def share(sender: str, content: str, scope: str, kind: str = "plan") -> Post:
    entry = SharedMemoryEntry.create(kind, content, scope)  # type: ignore[arg-type]
    attachment = Attachment.create("shared_memory_entry", content, extra=entry)
    return Post.create("m", sender, "User", [attachment])


def contents(memory: Memory, kind: str = "plan") -> list[str]:
    return [entry.content for entry in memory.get_shared_memory_entries(kind)]


def test_a_round_cannot_get_a_state_that_does_not_exist() -> None:
    memory = Memory("s")
    with pytest.raises(ValueError, match="state is one of"):
        memory.end_round(memory.create_round("q"), "done")  # type: ignore[arg-type]


def test_posts_are_shared_with_the_view_unless_their_text_changes() -> None:
    memory = Memory("s")
    plain = Post.create("plain", "Planner", "User")
    passing = Post.create(f"found {wrap_temporal('a page')}", "Planner", "User")
    passing.add_attachment(Attachment.create("text", wrap_temporal("more")))
    passing.add_attachment(Attachment.create("plan", "kept"))
    first = memory.create_round("one")
    memory.add_post(first, plain)
    memory.add_post(first, passing)
    while_last = memory.get_role_rounds("Planner")[0].post_list
    lasting = memory.get_lasting_rounds("Planner")[0].post_list
    memory.create_round("two")
    later = memory.get_role_rounds("Planner")[0].post_list
    assert while_last[0] is plain
    assert while_last[1].message == "found a page"
    assert [item.content for item in while_last[1].attachment_list] == ["more", "kept"]
    assert lasting == later
    assert later[0] is plain
    assert later[1].message == "found "
    assert [item.content for item in later[1].attachment_list] == ["", "kept"]
    assert later[1].attachment_list[1] is passing.attachment_list[1]
    assert "a page" in passing.message


def test_changing_a_view_changes_neither_the_conversation_nor_other_views() -> None:
    memory = Memory("s")
    said(memory, "one", "hello")
    view = memory.get_role_rounds("Planner")
    view[0].post_list.clear()
    view[0].change_round_state("failed")
    view.clear()
    [seen] = memory.get_role_rounds("Planner")
    assert [post.message for post in seen.post_list] == ["hello"]
    assert memory.conversation.rounds[0].state == "finished"


def test_an_experience_keeps_plans_only(tmp_path: Path) -> None:
    memory = Memory("abc")
    round_ = said(memory, "q", "hello")
    for kind in (AttachmentType.plan, AttachmentType.thought, AttachmentType.reply_content):
        round_.post_list[0].add_attachment(Attachment.create(kind, "x"))
    path = memory.save_experience(tmp_path / "new" / "folder")
    kept = Conversation.from_yaml(path).rounds[0].post_list[0].attachment_list
    assert path == tmp_path / "new" / "folder" / "raw_exp_abc.yaml"
    assert [item.type for item in kept] == [AttachmentType.plan]
    assert len(round_.post_list[0].attachment_list) == 3


def test_a_whole_experience_is_the_whole_conversation(tmp_path: Path) -> None:
    memory = Memory("abc")
    memory.add_post(memory.create_round("q"), share("Planner", "1. go", "round"))
    path = memory.save_experience(str(tmp_path), thin_mode=False)
    other = Memory("x").from_yaml("def", path)
    assert other.session_id == "def"
    assert other.conversation.rounds == memory.conversation.rounds
    assert contents(other) == ["1. go"]


@pytest.mark.parametrize("session_id", ["../up", "a/b", "nul\0"])
def test_a_session_id_that_leads_elsewhere_is_not_saved(session_id: str, tmp_path: Path) -> None:
    with pytest.raises(ConversationError, match="session id"):
        Memory(session_id).save_experience(tmp_path / "exp")
    assert list(tmp_path.iterdir()) == []


class Summary:
    """A provider whose summary is what a test says."""

    def __init__(self) -> None:
        self.rounds_getter = list
        self.summary: CompactedMessage | None = None
        self.notices = 0

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def get_compaction(self) -> CompactedMessage | None:
        return self.summary

    def notify_rounds_changed(self) -> None:
        self.notices += 1


def summary_of(*rounds: Round) -> CompactedMessage:
    ids = frozenset(round_.id for round_ in rounds)
    return CompactedMessage(1, len(rounds), "so far", rounds[-1].id, ids)


def test_the_first_provider_of_a_role_stays() -> None:
    memory, first, second = Memory("s"), Summary(), Summary()
    memory.register_compaction_provider("Planner", first, lambda: memory.get_role_rounds("A"))
    memory.register_compaction_provider("Planner", second, lambda: [])
    memory.create_round("q")
    assert second.notices == 0
    assert second.rounds_getter is list
    assert len(first.rounds_getter()) == 1


def test_failed_rounds_and_late_failures_do_not_shift_what_a_summary_covers() -> None:
    memory, provider = Memory("s"), Summary()
    memory.register_compaction_provider("Planner", provider)
    one = said(memory, "one", "a")
    said(memory, "broken", "b", state="failed")
    two = said(memory, "two", "c")
    said(memory, "three", "d")
    provider.summary = summary_of(one, two)
    memory.end_round(two, "failed")
    rounds, summary = memory.get_role_rounds_with_compaction("Planner")
    every, _ = memory.get_role_rounds_with_compaction("Planner", include_failure_rounds=True)
    assert [round_.user_query for round_ in rounds] == ["three"]
    assert summary is not None
    assert [round_.user_query for round_ in every] == ["broken", "three"]
    said(memory, "four", "e")
    provider.summary = CompactedMessage(1, 2, "so far")  # which knows only positions
    rounds, _ = memory.get_role_rounds_with_compaction("Planner")
    assert [round_.user_query for round_ in rounds] == ["four"]


def test_posts_give_back_and_lose_attachments_by_type() -> None:
    post = Post.create("hello", "User", "Planner")
    for kind in ("plan", "text", "plan"):
        post.add_attachment(Attachment.create(kind, "x"))
    post.del_attachment([AttachmentType.plan])
    assert post.get_attachment(AttachmentType.plan) == []
    assert [str(item) for item in post.attachment_list] == ["TEXT: x"]
    assert str(post) == "User -> Planner: hello"


ADDED = "files added: orders.csv."
GONE = "variable that is gone, make it again before use: x: too large"


@pytest.mark.parametrize(
    ("query", "notes", "words"),
    [
        ("how many?", [], "how many?"), (f"{ADDED}\n{GONE}\nhow many?", [ADDED, GONE], "how many?"),
        (f"how many?\n{ADDED}", [], f"how many?\n{ADDED}"), (ADDED, [ADDED], ""), ("", [], ""),
        ("files added today?", [], "files added today?"),
    ],
)  # fmt: skip
def test_notes_stand_before_the_words_of_the_user(query: str, notes: list[str], words: str) -> None:
    assert split_notes(query) == (notes, words)
    round_ = Round.create(query)
    assert (round_.notes, round_.question, round_.user_query) == (notes, words, query)


def test_notes_of_files_name_the_files_that_came() -> None:
    assert file_notes(f"{ADDED}\n{GONE}\n{ADDED}\nhow many?") == f"{ADDED}\n{ADDED}"
    assert file_notes(f"how many?\n{ADDED}") == ""


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
        memory.add_post(said(memory, "go", "it runs"), report(text))
    return memory.get_role_rounds("Planner")


def test_beginning_end_and_the_numbers_left_out_are_stated() -> None:
    short = short_outcome(LONG, 600)
    assert len(short) <= 700
    assert short.startswith("## Output\nrow 0 0.0")
    assert short.endswith("last line")
    assert "characters with numbers from " in short
    assert short_outcome(LONG, len(LONG)) is LONG
    others = "x" * 60 + " 2024-01-05 12:30 /9/ 1.2.3 a7 1,234 5e999e 17 " + "y" * 300
    assert "numbers from 17 to 17 left out" in short_outcome(others, 100)


@given(st.text(max_size=3000), st.integers(100, 2000))
def test_a_short_outcome_is_never_longer_and_keeps_both_ends(text: str, limit: int) -> None:
    short = short_outcome(text, limit)
    assert len(short) <= max(limit + 150, 0)
    assert short[: limit // 2] == text[: limit // 2]
    assert short == text or short[-limit // 4 :] == text[-limit // 4 :]


def test_the_room_follows_the_window() -> None:
    windows = (0, 2_048, 8_192, 200_000)
    assert [outcome_chars(tokens) for tokens in windows] == [2_000, 400, 655, 2_000]


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
