"""Conversations in files and other wire forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conversation_strategies import conversations
from hypothesis import HealthCheck, given, settings
from sizes import examples

from taskweaver.memory import (
    Attachment,
    AttachmentType,
    Conversation,
    Post,
    Round,
    SharedMemoryEntry,
)
from taskweaver.memory.conversation import ConversationError

OLD_FILE = """
enabled: True
rounds:
  - user_query: count the rows of ./data.csv
    state: finished
    post_list:
      - message: count the rows
        send_from: User
        send_to: Planner
        attachment_list:
      - message: please count
        send_from: Planner
        send_to: CodeInterpreter
        attachment_list:
          - type: init_plan
            content: 1. count
          - type: plan
            content: |-
              1. count
              2. report
"""


def conversation_of(*posts: Post, **facts: Any) -> Conversation:
    return Conversation("conv", [Round("r", "q", "finished", list(posts))], **facts)


def good() -> dict[str, Any]:
    """Return the wire form of a small conversation, through JSON so that nothing is shared."""
    entry = SharedMemoryEntry("plan", "1. go", "round", "sme")
    post = Post("p", "User", "Planner", "hello", [Attachment.create("text", "note", "a")])
    post.add_attachment(Attachment.create("shared_memory_entry", "1. go", "b", entry))
    return json.loads(json.dumps(conversation_of(post, roles=["User", "Planner"]).to_dict()))


@given(conversations())
@settings(
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_yaml_and_json_round_trip(tmp_path: Path, conversation: Conversation) -> None:
    conversation.to_yaml(tmp_path / "c.yaml")
    text = json.dumps(conversation.to_dict())
    assert Conversation.from_yaml(tmp_path / "c.yaml") == conversation
    assert Conversation.from_dict(json.loads(text)) == conversation


def test_a_pair_of_surrogates_is_joined_and_half_of_one_is_replaced(tmp_path: Path) -> None:
    post = Post("p", "User", "Planner", "\ud83d\ude00 and \ud83d")
    post.add_attachment(Attachment.create("text", "half \udc00", extra={"k": ["\ud83d"]}))
    conversation_of(post).to_yaml(tmp_path / "c.yaml")
    read = Conversation.from_yaml(tmp_path / "c.yaml").rounds[0].post_list[0]
    assert read.message == "\U0001f600 and \ufffd"
    assert read.attachment_list[0].content == "half \ufffd"
    assert read.attachment_list[0].extra == {"k": ["\ufffd"]}


def test_data_that_holds_itself_is_written_and_read(tmp_path: Path) -> None:
    loop: list[Any] = ["é"]
    loop.append(loop)
    post = Post("p", "A", "B", "m", [Attachment.create("text", "t", extra=loop)])
    conversation_of(post).to_yaml(tmp_path / "c.yaml")
    extra = Conversation.from_yaml(tmp_path / "c.yaml").rounds[0].post_list[0].attachment_list[0]
    assert extra.extra[0] == "é"
    assert extra.extra[1] is extra.extra


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConversationError, match=r"none\.yaml cannot be used: No such file"):
        Conversation.from_yaml(tmp_path / "none.yaml")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConversationError, match="file"):
        Conversation.init().to_yaml(tmp_path / "file" / "c.yaml")


def test_an_object_on_an_attachment_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    post = Post("p", "A", "B", "m", [Attachment.create("text", "t", extra=object())])
    with pytest.raises(ConversationError, match=r"c\.yaml"):
        conversation_of(post).to_yaml(tmp_path / "c.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    path.write_text(OLD_FILE)
    conversation = Conversation.from_yaml(path)
    posts = conversation.rounds[0].post_list
    assert conversation.roles == ["User", "Planner", "CodeInterpreter"]
    assert conversation.plugins == []
    assert posts[0].attachment_list == []
    assert [item.type for item in posts[1].attachment_list] == [AttachmentType.plan]
    assert all([conversation.id, posts[0].id, posts[1].attachment_list[0].id])


def broken(*path: str | int, value: Any = None, delete: bool = False) -> dict[str, Any]:
    """Return the good form with one place replaced or deleted."""
    data: Any = good()
    *parents, last = path
    place = data
    for step in parents:
        place = place[step]
    if delete:
        del place[last]
    else:
        place[last] = value
    return data


POST = ("rounds", 0, "post_list", 0)
ATTACHMENT = (*POST, "attachment_list", 0)
ENTRY = (*POST, "attachment_list", 1, "extra")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("text", "the whole is text, not a mapping"),
        ({}, "rounds is missing"),
        ({"rounds": [3]}, "rounds[0] is 3, not a mapping"),
        (broken("enabled", value="yes"), "enabled is text, not true or false"),
        (broken("rounds", 0, "user_query", delete=True), "rounds[0].user_query is missing"),
        (broken("rounds", 0, "state", value="done"), "rounds[0]: state is one of"),
        (broken(*POST, "send_to", delete=True), "rounds[0].post_list[0].send_to is missing"),
        (broken(*ATTACHMENT, "content", delete=True), "attachment_list[0].content is missing"),
        (broken(*ATTACHMENT, "type", value="python"), "attachment_list[0]: 'python' is not"),
        (broken(*ENTRY, "scope", value="day"), "attachment_list[1]: scope is one of"),
        (broken(*ENTRY, "content", delete=True), "attachment_list[1]: 'content' is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(data: Any, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(data))
    with pytest.raises(ConversationError) as caught:
        Conversation.from_yaml(path)
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"rounds: [", "is not YAML"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"", "the whole is null, not a mapping"),
    ],
)
def test_other_files_are_refused(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(ConversationError, match=problem) as caught:
        Conversation.from_yaml(path)
    assert str(caught.value).count(str(path)) == 1
