"""The tolerant parser of structured replies, whole and while they stream."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.llm.parsing.json_text import FieldDelta, ParsedReply, ReplyStream, parse_reply

FIELDS = {"thought": "let me see", "reply_type": "python", "reply_content": 'print("ü\n")\n'}
WRAPPED = json.dumps({"response": FIELDS})


def stream(pieces: Iterable[str]) -> tuple[dict[str, str], ParsedReply, list[FieldDelta]]:
    """Feed a reply; return the joined deltas, the parsed reply, and all deltas."""
    reader = ReplyStream()
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    rest, reply = reader.finish()
    deltas += rest
    joined: dict[str, str] = {}
    for delta in deltas:
        joined[delta.key] = joined.get(delta.key, "") + delta.text
    return joined, reply, deltas


def cut(text: str, places: Iterable[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize(
    "text",
    [
        WRAPPED, json.dumps(FIELDS), json.dumps({"response": FIELDS}, indent=2, ensure_ascii=False),
        f"Sure, here it is:\n```json\n{WRAPPED}\n```\nHave fun {{really}}!",
        f'<think>maybe {{"thought": 1}}?</think>\n{WRAPPED}', repr({"response": FIELDS}),
        f'I use {{braces}} and {{"oddly}} first. {WRAPPED}', f"[{WRAPPED}]",
        WRAPPED.replace("\\n", "\n"), f"\ufeff{WRAPPED}\n\n",
    ],
)  # fmt: skip
def test_the_fields_are_found_whatever_stands_around_them(text: str) -> None:
    reply = parse_reply(text)
    assert reply.fields == FIELDS
    assert reply.problem is None
    assert stream(text)[1].fields == FIELDS


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "C:\data\new"}', "C:\\data\new"), (r'{"a": "\d+ \w"}', r"\d+ \w"),
        (r'{"a": "\ud83d\ude00"}', "😀"), (r'{"a": "\ud83d!"}', "\ufffd!"),
        (r'{"a": "\ude00\d"}', "\ufffd\\d"), ('{"a": "tab\there"}', "tab\there"),
        ('{"a": "\ud83d"}', "\ufffd"), ('{"a": {"b": [1, "ü"]}}', '{"b": [1, "ü"]}'),
        ('{"a": true}', "true"), ('{"a": null}', ""), ('{"a": 1.50}', "1.5"),
        (r"{'a': 'it\'s \d', 'b': None}", r"it's \d"),
        ('{"a": "x,}\\",]", "b": [1, 2, ],\n}', 'x,}",]'),
    ],
)  # fmt: skip
def test_values_come_as_text_that_can_be_encoded(text: str, value: str) -> None:
    joined, reply, _ = stream(text)
    assert parse_reply(text).fields["a"] == reply.fields["a"] == joined["a"] == value
    assert reply.problem is None
    reply.raw.encode()


@pytest.mark.parametrize(
    ("text", "fields", "words"),
    [
        ("", {}, "empty"), (" \n", {}, "empty"), ("I would rather talk.", {}, "no JSON object"),
        ('<think>{"a": 1', {}, "no JSON object"), ("{}", {}, "no members"),
        ('{"response": {"a": "one", "b": "tw', {"a": "one", "b": "tw"}, "breaks off"),
        ('{"response": {"a": {"k": "v"}, "b": "tw', {"a": '{"k": "v"}', "b": "tw"}, "breaks off"),
        ('{"a": "one", "b": tr', {"a": "one"}, "breaks off"),
        (r'{"a": "one\u00', {"a": "one"}, "breaks off"),
        ('{"a": "one", "b": "say "hi" now"}', {"a": "one", "b": "say "}, "malformed in line 1"),
        ('{"a": "one"\n"b": "two"}', {"a": "one"}, "malformed in line 2"),
        ('{"a": "one" "b": "two"}', {"a": "one"}, 'after `{"a": "one" `, before `"b": "two"}`'),
        ('{"a": "one", b: 2}', {"a": "one"}, "a name in double quotes is needed"),
        ('{"a": ' * 100_000, {}, "too deeply"), ("{" * 100_000, {}, "no JSON object"),
    ],
)  # fmt: skip
def test_the_problem_of_a_broken_reply(text: str, fields: dict[str, str], words: str) -> None:
    reply = parse_reply(text)
    assert reply.fields == fields
    assert reply.problem is not None
    assert words in reply.problem


def test_a_field_given_twice_with_different_texts_is_a_problem() -> None:
    _, reply, _ = stream('{"a": "one", "b": "two", "a": "three"}')
    assert reply.problem is not None
    assert "`a`" in reply.problem
    assert reply.fields == {"a": "one", "b": "two"}


def test_a_field_ends_when_the_next_begins() -> None:
    reader = ReplyStream()
    deltas = reader.feed('{"response": {"a": "one", "b": "tw')
    assert deltas == [FieldDelta("a", "one", True), FieldDelta("b", "tw", False)]


texts = st.text(alphabet=st.characters(), max_size=60)
replies = st.dictionaries(st.text(min_size=1, max_size=8), texts, min_size=1, max_size=5)


@settings(max_examples=examples(40))
@given(replies, st.booleans(), st.booleans(), st.lists(st.integers(0, 10**6), max_size=30))
def test_any_reply_cut_anywhere_gives_its_fields(
    fields: dict[str, str], wrapped: bool, ascii_only: bool, places: list[int]
) -> None:
    fields.pop("response", None)
    text = json.dumps({"response": fields} if wrapped else fields, ensure_ascii=ascii_only)
    joined, reply, deltas = stream(cut(text, places))
    clean = {key.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for key in fields}
    if fields and len(clean) == len(fields):
        assert reply.problem is None
        assert joined == reply.fields == parse_reply(text).fields
        assert [len(joined)] == [len(fields)]
        assert sum(delta.is_end for delta in deltas) == len(fields)


@settings(max_examples=examples(40))
@given(replies, st.integers(0, 10**6))
def test_a_broken_reply_gives_beginnings_of_fields(fields: dict[str, str], place: int) -> None:
    fields.pop("response", None)
    text = json.dumps({"response": fields})
    broken = text[: place % len(text)]
    joined, reply, _ = stream(broken)
    assert reply.problem is not None
    for key, value in joined.items():
        whole = fields[key].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert whole.startswith(value.rstrip("\ufffd"))


@given(st.text(alphabet=st.sampled_from("{}[]\"\\:,'u0d8 \n`abcé\ud83d<think>/tru1"), max_size=80))
def test_no_text_whatever_raises(text: str) -> None:
    joined, reply, deltas = stream(text)
    reply.raw.encode()
    "".join([*reply.fields.values(), *joined.values()]).encode()
    assert sum(delta.is_end for delta in deltas) == len(joined)
