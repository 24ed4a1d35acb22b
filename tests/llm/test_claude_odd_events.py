"""Streams of events that no endpoint should send."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from claude_replies import (
    event,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.llm.dialects.switch import dialect_named
from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.reply import ReplyReader

KINDS = st.sampled_from(
    "message_start content_block_start content_block_delta content_block_stop message_delta error"
    " message_stop ping".split()
)

FIELDS = st.sampled_from(
    "index message content_block delta usage error model text thinking signature input id name"
    " partial_json stop_reason stop_details input_tokens output_tokens"
    " output_tokens_details".split()
)

TYPES = st.sampled_from(
    "text thinking redacted_thinking tool_use text_delta thinking_delta signature_delta"
    " input_json_delta overloaded_error".split()
)


def _typed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.dictionaries(FIELDS, inner, max_size=4)
    return st.builds(lambda kind, more: {**more, "type": kind}, TYPES | inner, fields)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | _typed(inner),
    max_leaves=8,
)


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(KINDS, st.dictionaries(FIELDS, VALUES, max_size=4)), max_size=8))
def test_odd_events_are_read_or_refused(events: list[tuple[str, dict[str, Any]]]) -> None:
    reader = ReplyReader("m1", dialect_named("anthropic").events())
    body = b"".join(event(kind, **fields) for kind, fields in events)
    with suppress(ModelError):
        reader.feed(body)
        reader.end()
        reader.last()
