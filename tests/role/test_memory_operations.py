"""Operations on long-term memory in a model's reply, and in later prompts."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from taskweaver.llm.types import ChatMessage, Form, ToolCall
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.post import Post
from taskweaver.role.forms.actions import ModelReply, ReplyReading, RunCell, Say
from taskweaver.role.forms.fences import Asked
from taskweaver.role.forms.history import History
from taskweaver.role.forms.memory_calls import (
    MOST_OPERATIONS,
    FactOperation,
    extra_of,
    kept,
)
from taskweaver.role.forms.offer import ActionOffer
from taskweaver.role.forms.reading import read_reply

OFFER = ActionOffer("python", "CodeInterpreter", has_plan=True, has_memory=True)
FORMS: tuple[Form, ...] = get_args(Form)
FACT = FactOperation("remember", "revenue is net")


def read(text: str, *calls: tuple[str, object], offer: ActionOffer = OFFER) -> ReplyReading:
    made = tuple(
        ToolCall(f"c{n}", name, json.dumps(given)) for n, (name, given) in enumerate(calls)
    )
    return read_reply(ModelReply(text, made), offer, Asked(is_told=True))


def fields(**texts: str) -> str:
    return json.dumps({"response": texts})


CALL = ("remember", {"text": "revenue is net"})
FENCE = "```remember\nrevenue is net\n```"


def test_a_fact_beside_an_answer_leaves_the_answer() -> None:
    for found in (
        read("Noted.", CALL),
        read(fields(send_to="User", message="Noted.", remember="revenue is net", forget="")),
        read(f"Noted.\n{FENCE}"),
        read(f"{FENCE}\nNoted."),
    ):
        assert found == ReplyReading((Say("Noted."),), memory=(FACT,))


def test_a_fact_beside_a_cell_leaves_the_cell() -> None:
    for found in (
        read("", CALL, ("run_python", {"intent": "", "code": "1"})),
        read(fields(send_to="CodeInterpreter", message="", code="1", remember="revenue is net")),
        read(f"{FENCE}\n```python\n1\n```"),
        read(f"```python\n1\n```\n{FENCE}"),
    ):
        assert (found.actions, found.memory) == ((RunCell("1"),), (FACT,))


@pytest.mark.parametrize("text", ["No parking available", "2024", "none needed"])
def test_a_fact_that_resembles_a_filler_is_kept(text: str) -> None:
    assert read(fields(remember=text, recall="-")).memory == (FactOperation("remember", text),)


def test_a_fact_alone_is_no_action_and_no_problem() -> None:
    for found in (read("", CALL), read(fields(remember="revenue is net")), read(FENCE)):
        assert found == ReplyReading(memory=(FACT,))


def test_words_beside_a_search_are_no_answer_yet() -> None:
    for found in (
        read("I look.", ("recall", {"query": "revenue"})),
        read(fields(send_to="User", thought="I look.", recall="revenue")),
        read("I look.\n```recall\nrevenue\n```"),
    ):
        assert (found.actions, found.memory) == ((), (FactOperation("recall", "revenue"),))


def test_an_answer_in_json_goes_before_a_search() -> None:
    found = read(fields(send_to="User", message="It is 42.", recall="revenue"))
    assert found == ReplyReading((Say("It is 42."),))


def test_an_only_argument_may_have_another_name_but_needs_a_text() -> None:
    assert read("", ("remember", {"fact": "revenue is net"})).memory == (FACT,)
    assert read("", ("forget", {"text": " "})).problem


def test_at_most_eight_operations_of_a_reply_are_carried_out() -> None:
    calls = [("remember", {"text": f"fact {n}"}) for n in range(200)]
    assert len(read("Noted.", *calls).memory) == MOST_OPERATIONS


def test_operations_that_were_not_offered_are_no_operations() -> None:
    offer = ActionOffer("python", "CodeInterpreter")
    assert "no tool" in read("", CALL, offer=offer).problem
    assert read(FENCE, offer=offer).actions == (Say(FENCE),)
    assert "remember" not in offer.fields


def post(to: str, message: str, *done: FactOperation) -> Post:
    kind = AttachmentType.function
    kept = [Attachment.create(kind, one.line, extra=extra_of(one)) for one in done]
    return Post.create(message, "Planner", to, kept)


def messages(form: Form, *posts: Post) -> list[ChatMessage]:
    return History("Planner", form, "From: {SENDER}\nMessage: {MESSAGE}").messages(posts)


KEPT = FactOperation("remember", "revenue is net", "kept as p1")
FOUND = FactOperation("recall", "revenue", '- p1 (user): "revenue is net"')


@pytest.mark.parametrize("form", FORMS)
def test_the_history_has_the_search_and_its_result(form: Form) -> None:
    asked, found = messages(form, post("Planner", "", FOUND))
    assert "revenue" in json.dumps(asked)
    assert found["content"] == FOUND.result
    assert found["role"] == ("tool" if form == "tools" else "user")


def test_each_call_of_the_history_has_its_own_id_and_result() -> None:
    said, *results = messages("tools", post("User", "Noted.", KEPT, KEPT, FOUND))
    assert said["content"] == "Noted."
    ids = [made["id"] for made in said["tool_calls"]]
    assert len(set(ids)) == 3
    assert [result["tool_call_id"] for result in results] == ids


@pytest.mark.parametrize("form", ["json", "fences"])
def test_an_own_reply_of_the_history_reads_as_it_was(form: Form) -> None:
    (said,) = messages(form, post("User", "Noted.", KEPT))
    assert read(str(said["content"])) == ReplyReading((Say("Noted."),), memory=(FACT,))


def test_other_attachments_of_this_type_are_no_operations() -> None:
    given = [None, "text", {"memory": "x"}, {"memory": {"name": "drop"}}, {"other": 1}]
    items = [Attachment.create(AttachmentType.function, "f()", extra=extra) for extra in given]
    assert kept(Post.create("", "Planner", "User", items)) == []
