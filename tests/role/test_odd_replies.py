"""Odd forms of a reply are read as they are meant, and what a text only shows does not run."""

from __future__ import annotations

import json

import pytest

from bench.odd.playing import ANSWER
from bench.odd.variants import CODE, FORMS, Meant, Reply, Variant, variants
from taskweaver.llm.parsing.call_pieces import CallCollector, read_pieces
from taskweaver.llm.parsing.reply import ThinkingSplitter
from taskweaver.llm.types import Form
from taskweaver.role.forms.actions import ModelReply, ReplyReading, RunCell, Say
from taskweaver.role.forms.fences import Asked
from taskweaver.role.forms.offer import ActionOffer
from taskweaver.role.forms.reading import read_reply

OFFER = ActionOffer("python", "CodeInterpreter", has_plan=True)
CORRECTED = {
    "cut off", "empty", "endless repetition", "addressed to itself", "an unknown role",
    "the answer as the thought",
}  # fmt: skip
FENCED = {"tags", "a fence alone", "words and a fence"}
CELLS_OF_THEIR_OWN = {"a bare assignment", "print alone", "input()", "a syntax error"}
CELLS_OF_THEIR_OWN |= {"a name error", "the same cell again", "a fence inside of a text"}


def model_reply(written: Reply) -> ModelReply:
    """Return a reply as it comes from its stream."""
    message = {"content": written} if isinstance(written, str) else written
    calls, splitter = CallCollector("x"), ThinkingSplitter()
    for piece in read_pieces(message):
        calls.add(piece)
    text = splitter.feed(message.get("content", "")).text + splitter.finish().text
    return ModelReply(text, calls.finish(), message.get("finish_reason") == "length")


def read(written: Reply, form: Form, *, is_answer: bool = False) -> ReplyReading:
    """Read a reply whose author was told how code is run, unless an outcome was there."""
    asked = Asked(form, is_answer=is_answer, is_told=not is_answer)
    return read_reply(model_reply(written), OFFER, asked)


@pytest.mark.parametrize(
    ("variant", "form"),
    [
        pytest.param(variant, form, id=f"{variant.name}, {form}")
        for variant in variants()
        for form in variant.forms
    ],
)
def test_an_odd_form_is_read_as_it_is_meant(variant: Variant, form: Form) -> None:
    cell = read(variant.cell(Meant(form, "add", CODE)), form)
    if form == "tools" and variant.name in FENCED:
        assert isinstance(cell.actions[0], Say)
        return
    answer = read(variant.answer(Meant(form, ANSWER)), form, is_answer=form != "fences")
    if variant.name in CORRECTED:
        assert answer.problem or (variant.name == "cut off" and form != "json")  # its beginning
        return
    assert not cell.problem
    (run,) = cell.actions
    assert isinstance(run, RunCell)
    if variant.name in CELLS_OF_THEIR_OWN:
        return
    assert run.code == CODE
    assert answer.actions == (Say(ANSWER),)


HARM = "import os; os.remove('data.csv')"
SENT = {"send_to": "CodeInterpreter", "message": "go", "code": HARM}
CALL = {"name": "run_python", "arguments": {"code": HARM}}
QUOTED = json.dumps({"response": SENT})
ONLY_SHOWN = [
    f"A reply of mine looks like `{QUOTED}`.",
    f"The file holds this text:\n```text\n{QUOTED}\n```\nI did nothing with it.",
    f"The page says: `<tool_call>{json.dumps(CALL)}</tool_call>`, which I ignore.",
    f"The page says:\n```text\n<tool_call>{json.dumps(CALL)}</tool_call>\n```\nI ignore it.",
    f"The page says:\n```text\nAction: run_python\nAction Input: {HARM}\n```\nI ignore it.",
    f"It would be:\n```text\n{HARM}\n```",
    f'The page says "<function=run_python><parameter=code>{HARM}</parameter></function>".',
    f"The file says:\n> {QUOTED}\nI ignore it.", f"In a page one writes `<code>{HARM}</code>`.",
    json.dumps({"response": {"send_to": "User", "message": f"Run {QUOTED} yourself."}}),
    json.dumps({"response": {"send_to": "User", "message": "Here it is.", "code": HARM}}),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", ONLY_SHOWN)
def test_code_that_a_text_only_shows_does_not_run(text: str, form: Form) -> None:
    found = read(text, form)
    assert not any(isinstance(action, RunCell) for action in found.actions)


@pytest.mark.parametrize("form", ["fences", "tools"])
def test_an_object_among_words_is_no_reply_where_json_was_not_asked_for(form: Form) -> None:
    for text in (f"The rule is:\n{QUOTED}\nI do not follow it.", f"You would send {QUOTED}."):
        assert read(text, form).actions == (Say(text),)


def test_a_call_among_words_does_not_run() -> None:
    call = json.dumps(CALL)
    for text in (
        f"I used this call:\n```json\n{call}\n```\nIt gave 1.",
        f"The page says:\n<tool_call>{call}</tool_call>\nI ignore it.",
    ):
        assert read(text, "tools", is_answer=True) == ReplyReading((Say(text),))


def test_a_cell_with_a_dictionary_is_no_reply_in_json() -> None:
    code = 'answer = {"message": "hi", "send_to": "User"}'
    for form in ("json", "fences"):
        found = read(f"```python\n{code}\n```", form)
        assert found.actions == (RunCell(code),)


@pytest.mark.parametrize(
    "text",
    [
        '{"send_to": "CodeInterpreter", "code": "f("a", {"message": "x", "code": "y"})"}',
        '{"code": "print("a")", "code": "print("b")"}',
        'note: "x" {"code": "f("a")"}',
    ],
)
def test_code_whose_end_is_in_doubt_does_not_run(text: str) -> None:
    assert not any(isinstance(action, RunCell) for action in read(text, "json").actions)


def test_code_that_broke_off_is_not_completed() -> None:
    text = '{"response": {"send_to": "CodeInterpreter", "code": "x = 1"'
    cut = read_reply(ModelReply(text, is_cut=True), OFFER, Asked())
    assert cut.problem
    assert not cut.actions


@pytest.mark.parametrize(
    ("code", "cell"),
    [
        ("a = 1\\nprint('x\\ny')", "a = 1\nprint('x\\ny')"),
        ('a = 1\\nprint(\\"x\\\\ny\\")', 'a = 1\nprint("x\\ny")'),
        ("printf 'a\\nb' > f", "printf 'a\\nb' > f"),
    ],
)
def test_only_breaks_between_lines_that_were_escaped_are_undone(code: str, cell: str) -> None:
    text = json.dumps({"send_to": "CodeInterpreter", "code": code})
    assert read(text, "json").actions == (RunCell(cell),)


def test_raw_code_as_the_arguments_of_a_call_is_its_code() -> None:
    call = {"tool_calls": [{"id": "c", "function": {"name": "python", "arguments": "print(1)"}}]}
    assert read(call, "tools").actions == (RunCell("print(1)"),)
