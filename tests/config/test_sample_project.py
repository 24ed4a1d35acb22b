"""The sample project: its configuration is right and its examples teach what they say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from shipped import SHIPPED

from taskweaver.config import AppConfigSource, check
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.post import Post
from taskweaver.plugin.registry import PluginRegistry

PROJECT = Path(__file__).parents[2] / "project"
PLANNER = sorted((PROJECT / "examples" / "planner_examples").glob("*.yaml"))
CODE = sorted((PROJECT / "examples" / "code_generator_examples").glob("*.yaml"))


def own_posts(path: Path, role: str) -> list[Post]:
    rounds = Conversation.from_yaml(path).rounds
    return [post for round_ in rounds for post in round_.post_list if post.send_from == role]


def text(post: Post, kind: AttachmentType) -> str:
    return "".join(str(attachment.content) for attachment in post.get_attachment(kind))


def test_the_configuration_has_no_warnings_and_leads_to_the_plugins() -> None:
    src = AppConfigSource(PROJECT / "taskweaver_config.json")
    assert check(src) == []
    registry = PluginRegistry(src.get_path("plugin.base_path"))
    assert sorted(registry.plugins) == SHIPPED
    assert registry.broken == {}


@pytest.mark.parametrize("path", PLANNER, ids=lambda path: path.stem)
def test_a_planner_example_has_complete_replies_and_ends_with_the_user(path: Path) -> None:
    conversation = Conversation.from_yaml(path)
    assert conversation.enabled
    assert set(conversation.roles) == {"User", "Planner", "CodeInterpreter"}
    assert all(round_.post_list[-1].send_to == "User" for round_ in conversation.rounds)
    for post in own_posts(path, "Planner"):
        plan, step = text(post, AttachmentType.plan), text(post, AttachmentType.current_plan_step)
        assert step in plan.splitlines()
        assert text(post, AttachmentType.plan_reasoning)
        is_for_user = post.send_to == "User"
        assert (text(post, AttachmentType.stop) == "InProcess") is not is_for_user


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.stem)
def test_a_code_example_has_complete_replies_with_code_that_parses(path: Path) -> None:
    conversation = Conversation.from_yaml(path)
    assert conversation.enabled
    assert set(conversation.roles) == {"Planner", "CodeInterpreter"}
    for post in own_posts(path, "CodeInterpreter"):
        assert text(post, AttachmentType.thought)
        content = text(post, AttachmentType.reply_content)
        if text(post, AttachmentType.reply_type) == "text":
            assert content == post.message
            continue
        assert ast.parse(content).body
        is_failure = text(post, AttachmentType.execution_status) == "FAILURE"
        assert (post.send_to == "CodeInterpreter") is is_failure
        assert text(post, AttachmentType.execution_result).startswith("### Execution")
