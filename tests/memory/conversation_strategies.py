"""Conversations of every kind, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.utils.text import TEMPORAL_END, TEMPORAL_START

ROLES = ["User", "Planner", "CodeInterpreter", "WebSearch"]

LINES = (
    *("", "  indented", "- item", "# no comment", "key: value", "日本語", "🙂", "\ttab", "end "),
    *("```python", "x = {'a': 1}", "null", "2020-01-01", "\r", "\u2028", "{PREVIOUS}", "'\""),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.lists(
    st.sampled_from(LINES), max_size=6
).map("\n".join)
ids = st.uuids().map(str)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def shared_entries(draw: st.DrawFn) -> SharedMemoryEntry:
    scope = draw(st.sampled_from(["round", "conversation"]))
    kind = draw(st.sampled_from(["plan", "example_sub_path"]))
    return SharedMemoryEntry(kind, draw(texts), scope, draw(ids))


@st.composite
def attachments(draw: st.DrawFn) -> Attachment:
    kind = draw(st.sampled_from(AttachmentType))
    content: Any = draw(texts)
    if kind is AttachmentType.artifact_paths:
        content = draw(st.lists(texts, max_size=3))
    if kind is AttachmentType.shared_memory_entry:
        return Attachment(draw(ids), kind, content, draw(shared_entries()))
    return Attachment(draw(ids), kind, content, draw(plain))


def temporal(text: str) -> str:
    return f"before {TEMPORAL_START}{text}{TEMPORAL_END} after"


@st.composite
def posts(draw: st.DrawFn) -> Post:
    role = st.sampled_from(ROLES)
    listed = draw(st.lists(attachments(), max_size=3))
    message = draw(texts | texts.map(temporal))
    return Post(draw(ids), draw(role), draw(role), message, listed)


@st.composite
def rounds(draw: st.DrawFn) -> Round:
    state = draw(st.sampled_from(["created", "finished", "failed"]))
    return Round(draw(ids), draw(texts), state, draw(st.lists(posts(), max_size=4)))


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    return Conversation(
        id=draw(ids),
        rounds=draw(st.lists(rounds(), max_size=4)),
        plugins=draw(st.lists(st.dictionaries(texts, plain, max_size=3), max_size=2)),
        roles=draw(st.lists(st.sampled_from(ROLES), min_size=1, unique=True)),
        enabled=draw(st.booleans()),
    )
