"""The memory of a session: writes, views, shared entries, saved experiences."""

from __future__ import annotations

from pathlib import Path

import pytest

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
from taskweaver.memory.errors import ConversationError
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


def test_an_empty_conversation_has_an_empty_view_and_nothing_shared() -> None:
    memory = Memory("s")

    assert memory.get_role_rounds("Planner") == []
    assert memory.get_role_rounds_with_compaction("Planner") == ([], None)
    assert memory.get_shared_memory_entries("plan") == []


def test_a_conversation_of_failed_rounds_has_an_empty_view_and_nothing_shared() -> None:
    memory = Memory("s")
    round_ = memory.create_round("q")
    memory.add_post(round_, share("Planner", "1. go", "conversation"))
    memory.end_round(round_, "failed")

    assert memory.get_role_rounds("Planner") == []
    assert len(memory.get_role_rounds("Planner", include_failure_rounds=True)) == 1
    assert contents(memory) == []


def test_a_round_in_which_a_role_has_no_part_is_seen_without_posts() -> None:
    memory = Memory("s")
    said(memory, "one", "hello")

    [seen] = memory.get_role_rounds("CodeInterpreter")

    assert (seen.user_query, seen.state, seen.post_list) == ("one", "finished", [])


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


def test_the_latest_entry_of_each_sender_holds_in_the_order_of_writing() -> None:
    memory = Memory("s")
    round_ = memory.create_round("q")
    for post in (
        share("Planner", "first", "round"),
        share("Recepta", "other", "round"),
        share("Planner", "second", "round"),
        share("Planner", "path", "round", kind="example_sub_path"),
    ):
        memory.add_post(round_, post)

    assert contents(memory) == ["other", "second"]
    assert contents(memory, "example_sub_path") == ["path"]


def test_an_entry_of_the_round_ends_with_it_and_one_of_the_conversation_stays() -> None:
    memory = Memory("s")
    round_ = memory.create_round("one")
    memory.add_post(round_, share("Planner", "for ever", "conversation"))
    memory.add_post(round_, share("Planner", "for now", "round"))
    assert contents(memory) == ["for now"]

    memory.end_round(round_, "finished")
    memory.create_round("two")

    assert contents(memory) == ["for ever"]


def test_a_shared_attachment_without_an_entry_shares_nothing() -> None:
    memory = Memory("s")
    attachment = Attachment.create("shared_memory_entry", "only text")
    memory.add_post(memory.create_round("q"), Post.create("m", "Planner", "User", [attachment]))

    assert contents(memory) == []


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


def test_a_file_that_cannot_be_read_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    memory = Memory("s")
    said(memory, "one", "hello")

    with pytest.raises(ConversationError):
        memory.from_yaml("t", tmp_path / "none.yaml")

    assert memory.session_id == "s"
    assert len(memory.get_role_rounds("Planner")) == 1


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


def test_a_provider_is_told_when_rounds_begin_and_end() -> None:
    memory, provider = Memory("s"), Summary()
    memory.register_compaction_provider("Planner", provider)
    assert provider.notices == 1

    said(memory, "one", "hello")

    assert provider.notices == 3


def test_the_first_provider_of_a_role_stays() -> None:
    memory, first, second = Memory("s"), Summary(), Summary()
    memory.register_compaction_provider("Planner", first, lambda: memory.get_role_rounds("A"))
    memory.register_compaction_provider("Planner", second, lambda: [])

    memory.create_round("q")

    assert second.notices == 0
    assert second.rounds_getter is list
    assert len(first.rounds_getter()) == 1


def test_rounds_a_summary_covers_are_left_out() -> None:
    memory, provider = Memory("s"), Summary()
    memory.register_compaction_provider("Planner", provider)
    played = [said(memory, str(number), "answer") for number in range(4)]
    provider.summary = summary_of(*played[:2])

    rounds, summary = memory.get_role_rounds_with_compaction("Planner")

    assert [round_.user_query for round_ in rounds] == ["2", "3"]
    assert summary is provider.summary
    assert memory.get_role_rounds_with_compaction("Other") == (
        memory.get_role_rounds("Other"),
        None,
    )


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


def test_a_summary_of_another_conversation_says_nothing(tmp_path: Path) -> None:
    memory, provider = Memory("s"), Summary()
    memory.register_compaction_provider("Planner", provider)
    provider.summary = summary_of(said(memory, "one", "a"))
    other = Memory("t")
    said(other, "other", "b")

    memory.from_yaml("t", other.save_experience(tmp_path))

    rounds, summary = memory.get_role_rounds_with_compaction("Planner")
    assert [round_.user_query for round_ in rounds] == ["other"]
    assert summary is None


def test_a_summary_that_knows_only_positions_covers_the_first_rounds() -> None:
    memory, provider = Memory("s"), Summary()
    memory.register_compaction_provider("Planner", provider)
    for query in ("one", "two", "three"):
        said(memory, query, "a")
    provider.summary = CompactedMessage(1, 2, "so far")

    rounds, summary = memory.get_role_rounds_with_compaction("Planner")

    assert [round_.user_query for round_ in rounds] == ["three"]
    assert summary is not None


def test_a_summary_says_which_rounds_it_stands_for() -> None:
    text = CompactedMessage(1, 7, "they counted rows", "r7").to_system_message()

    assert "Rounds 1-7" in text
    assert "they counted rows" in text


def test_the_plugin_registry_is_found_where_it_used_to_be() -> None:
    from taskweaver.memory.plugin import PluginEntry, PluginRegistry
    from taskweaver.plugin import registry, spec

    assert PluginRegistry is registry.PluginRegistry
    assert PluginEntry is spec.PluginEntry


def test_posts_give_back_and_lose_attachments_by_type() -> None:
    post = Post.create("hello", "User", "Planner")
    for kind in ("plan", "text", "plan"):
        post.add_attachment(Attachment.create(kind, "x"))

    post.del_attachment([AttachmentType.plan])

    assert post.get_attachment(AttachmentType.plan) == []
    assert [str(item) for item in post.attachment_list] == ["TEXT: x"]
    assert str(post) == "User -> Planner: hello"
