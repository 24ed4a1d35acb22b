"""The actions in a model's reply, in whichever form it came."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taskweaver.llm.types import Form, ToolCall
from taskweaver.role.forms.actions import ModelReply, Order, ReplyReading, RunCell, Say
from taskweaver.role.forms.fences import Asked
from taskweaver.role.forms.offer import ActionOffer
from taskweaver.role.forms.reading import read_reply

OFFER = ActionOffer("python", "CodeInterpreter", ("WebExplorer",), has_plan=True)
FORMS: tuple[Form, ...] = get_args(Form)
TOLD, ANSWER = Asked(is_told=True), Asked(is_answer=True)


def read(
    text: str, *calls: ToolCall, asked: Asked = TOLD, offer: ActionOffer = OFFER
) -> ReplyReading:
    return read_reply(ModelReply(text, calls), offer, asked)


def call(name: str, arguments: object, id_: str = "c1") -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(id_, name, text)


def reply(**fields: str) -> str:
    return json.dumps({"response": fields})


def test_calls_are_actions_in_their_order_and_the_words_before_them_a_thought() -> None:
    found = read(
        "Let me see.",
        call("set_plan", {"steps": ["load", "2. sum"]}),
        call("run_python", {"intent": "a", "code": "1"}),
        call("ask", {"role": "web explorer", "order": "open it"}),
    )
    actions = (RunCell("1", "a"), Order("WebExplorer", "open it"))
    assert found == ReplyReading(actions, "Let me see.", "1. load\n2. sum")


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("python", {"code": "1"}, "1"),
        ("functions.run_python", {"code": "1"}, "1"),
        ("run_python", {"source": "1"}, "1"),
        ("run_python", '{"code": "a = 1\nb = 2"}', "a = 1\nb = 2"),
        ("run_python", '{"code": "print(\\"x\\")",}', 'print("x")'),
        ("run_python", {"code": "```python\nx = 1\n```"}, "x = 1"),
        ("run_python", {"code": "a = 1\\na"}, "a = 1\na"),
        ("run_python", {"code": "print('a\\\\nb')"}, "print('a\\\\nb')"),
    ],
)
def test_odd_calls_are_read(name: str, arguments: object, code: str) -> None:
    assert read("", call(name, arguments)).actions == (RunCell(code),)


def test_a_call_in_the_text_is_a_call_where_its_tool_was_offered() -> None:
    text = 'I add.\n<tool_call>{"name": "run_python", "arguments": {"code": "1+1"}}</tool_call>'
    assert read(text) == ReplyReading((RunCell("1+1"),), "I add.", ignores_form=True)
    assert read(text, offer=ActionOffer()).actions == (Say(text),)


def test_a_call_in_the_text_that_cannot_be_read_is_no_answer() -> None:
    assert read('<tool_call> {"name": "run_python", "arguments": {"code": "print("x")"}}').problem
    assert read("<|python_tag|>x = ", asked=ANSWER).problem
    assert not read("A line may begin with `<tool_call>`.").problem


def test_code_beside_an_answer_after_an_outcome_does_not_run_again() -> None:
    text = reply(send_to="user", message="It is 8.", code="total")
    assert read(text, asked=ANSWER).actions == (Say("It is 8."),)
    assert "leave code empty" in read(text).problem


def test_an_unknown_tool_is_answered_with_the_names_of_those_there_are() -> None:
    problem = read("", call("sql", {"query": "select 1"})).problem
    assert "'sql'" in problem
    assert "run_python, set_plan, ask" in problem


def test_one_unreadable_call_makes_the_whole_reply_unusable() -> None:
    found = read("", call("run_python", {"code": "1"}), call("run_python", "{'code"))
    assert found.problem
    assert not found.actions


def test_an_answer_may_be_a_call_or_stand_beside_a_plan() -> None:
    assert read("", call("final_answer", {"answer": "42"})).actions == (Say("42"),)
    found = read("It is 42.", call("set_plan", {"steps": ["a"]}))
    assert found.actions == (Say("It is 42."),)


def test_of_many_calls_the_first_eight_are_carried_out() -> None:
    calls = [call("run_python", {"code": str(n)}, f"c{n}") for n in range(200)]
    found = read("", *calls)
    assert len(found.actions) == 8
    assert "192 further actions were not carried out" in found.thought


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (reply(send_to="User", message="42"), Say("42")),
        (reply(send_to="CodeInterpreter", message="sum", code="1+1"), RunCell("1+1", "sum")),
        (reply(send_to="code_interpreter", message="sum it"), Order("CodeInterpreter", "sum it")),
        (reply(message="42"), Say("42")),
        (reply(thought="x", reply_type="python", reply_content="1+1"), RunCell("1+1")),
        (reply(thought="x", reply_content="1+1"), RunCell("1+1")),
        (reply(thought="x", reply_type="text", reply_content="No."), Say("No.")),
        ("Let me see:\n```py\n1+1\n```", RunCell("1+1")),
        ("```ask WebExplorer\nopen it\n```", Order("WebExplorer", "open it")),
        ("```json\n" + reply(send_to="User", message="42") + "\n```", Say("42")),
        ("Run `pip list`:\n```\npip list\n```", Say("Run `pip list`:\n```\npip list\n```")),
    ],
)
def test_forms_of_one_action(text: str, action: object) -> None:
    found = read(text)
    assert not found.problem
    assert found.actions == (action,)


def test_a_plan_may_be_a_list_in_a_field() -> None:
    text = json.dumps({"plan": ["load", "2. sum"], "send_to": "User", "message": "ok"})
    assert read(text).plan == "1. load\n2. sum"


def test_a_made_up_outcome_is_dropped_and_the_fence_of_an_answer_does_not_run() -> None:
    found = read("Look.\n```python\nx\n```\n```output\n42\n```\nIt is 42.")
    assert found == ReplyReading((RunCell("x"),), "Look.", ignores_form=True)
    text = "I used:\n```python\nx\n```\nIt gave 42."
    assert read(text, asked=ANSWER).actions == (Say(text),)


def test_with_one_worker_an_open_step_without_a_receiver_is_for_that_worker() -> None:
    offer = ActionOffer(roles=("CodeInterpreter",), has_plan=True)
    text = reply(plan="1. sum", stop="InProcess", message="sum it")
    assert read(text, offer=offer).actions == (Order("CodeInterpreter", "sum it"),)


def test_a_reply_without_content_has_a_problem() -> None:
    for text in ("", "  \n", reply(send_to="User", message=""), reply(plan="1. a")):
        assert read(text).problem


def test_a_cell_that_was_cut_off_does_not_run_and_a_long_answer_stays() -> None:
    cut = read_reply(ModelReply("```python\nx = (1,", is_cut=True), OFFER, TOLD)
    assert "length limit" in cut.problem
    long = read_reply(ModelReply("It is a long", is_cut=True), OFFER, TOLD)
    (said,) = long.actions
    assert isinstance(said, Say)
    assert said.text.startswith("It is a long\n\n(The answer is cut off")


_WORDS = st.sampled_from(
    ['{"response": ', "```python\n", "```", "\n", '"send_to": "User"', "run_python(", "}", "]", "x"]
)


@example("```python\n```", True)
@given(st.lists(_WORDS | st.text(max_size=5), max_size=20).map("".join), st.booleans())
def test_any_text_is_read_or_has_a_problem(text: str, is_answer: bool) -> None:
    found = read(text, asked=ANSWER if is_answer else TOLD)
    assert found.problem or found.actions or found.plan


@given(st.text(max_size=20), st.text(max_size=60))
def test_any_call_is_read_or_has_a_problem(name: str, arguments: str) -> None:
    found = read("", call(name, arguments), call("run_python", arguments))
    assert found.problem or found.actions


SNIPPET = "```python\nos.remove('a.csv')\n```"
TWO = f"A wrong way:\n{SNIPPET}\nBetter:\n```python\n1\n```"
DO_NOT_RUN = [
    "Show me a Python snippet that deletes all csv files. Do not run it.",
    "How do I delete the csv files? Please don't execute anything.",
    "Delete x. I do not want you to run it.", "A snippet for it, and don't you dare run it!",
    "Write it, but never, ever run it.",
    "Zeig mir ein Skript daf\u00fcr, aber nicht ausf\u00fchren!",
    "Wie l\u00f6sche ich x? Bitte f\u00fchre nichts aus.",
    "Montre-moi, mais ne l'ex\u00e9cute pas.", "Mu\u00e9strame c\u00f3mo, no lo ejecutes.",
]  # fmt: skip
ONLY_ASKED = [
    "Give me the code for it, I will run it myself.", "Write it down without running it.",
    "What would the code for that look like?", "How do I read a CSV in pandas?",
    "Explain how one would delete x; I'll run it myself", "Can you share a script to delete x?",
    "Write code for deleting x but leave running to me", "What's the command to delete x?",
    "I want to see the Python for it.", "Delete x, but make sure not to run it.",
    "You must not execute the code.", "Which command deletes x?", "Draft a snippet to delete x",
]  # fmt: skip
ORDINARY = [
    "How many runs were not finished?", "Show the revenue per zip code.",
    "Show me the code and run it.", "How many jobs never ran?",
    "Which jobs do not run on weekends?", "Which ads should not run in May?",
    "Sum the orders never executed", "Sum the sales, bitte nicht so ausf\u00fchrlich",
    "Quel produit n'a pas \u00e9t\u00e9 lanc\u00e9 ?",
    "\u00bfCu\u00e1ntos pedidos no se ejecutaron?", "Show me the programs with the highest revenue",
    "What is the program with the most users?", "Give me the cell with the largest value",
    "show the codes by region", "Read the script in data.txt and count its lines",
    "top 3 snippets by views", "Plot the sales, but don't run any ads analysis",
    "Which engines run cold, and never run that hot?",
]  # fmt: skip
MEANT = [
    ("tools", SNIPPET, "", "doubt"), ("tools", f"{SNIPPET}\nIt deletes it.", "", "shown"),
    ("json", SNIPPET, "", "doubt"), ("json", f"I do it.\n{SNIPPET}", "", "doubt"),
    ("fences", SNIPPET, "", "run"), ("fences", f"I do it.\n{SNIPPET}", "", "run"),
    ("fences", f"{SNIPPET}\n```output\ndone\n```\nIt is done.", "", "run"),
    ("fences", f"{SNIPPET}\nIt deletes it.", "", "doubt"),
    ("fences", f"{SNIPPET}\nDo not run it.", "", "shown"),
    ("fences", f"Do not run this in a folder you need:\n{SNIPPET}", "", "shown"),
    ("fences", TWO, "", "doubt"), ("json", TWO, "", "doubt"),
    ("fences", f"I will count the jobs that never ran:\n{SNIPPET}", "", "run"),
    *(("fences", SNIPPET, text, "run") for text in ORDINARY),
    *(("fences", SNIPPET, text, "doubt") for text in ONLY_ASKED),
    *((form, f"So:\n{SNIPPET}", text, "shown") for form in FORMS for text in DO_NOT_RUN),
]  # fmt: skip


@pytest.mark.parametrize(("form", "text", "request_", "meant"), MEANT)
def test_code_in_a_text_runs_as_an_order_alone(
    form: Form, text: str, request_: str, meant: str
) -> None:
    found = read(text, asked=Asked(form, request_))
    assert [type(action) for action in found.actions] == {
        "doubt": [], "shown": [Say], "run": [RunCell],
    }[meant]  # fmt: skip
    assert bool(found.problem) == (meant == "doubt")


AGAIN = [
    ("json", SNIPPET, RunCell), ("json", f"Here is how:\n{SNIPPET}", Say), ("json", TWO, Say),
    ("tools", SNIPPET, Say), ("fences", TWO, Say), ("fences", SNIPPET, RunCell),
]  # fmt: skip


@pytest.mark.parametrize(("form", "text", "kind"), AGAIN)
def test_code_that_is_sent_again_runs_where_its_author_was_told_so(
    form: Form, text: str, kind: type
) -> None:
    (action,) = read(text, asked=Asked(form, ONLY_ASKED[0], is_told=True)).actions
    assert isinstance(action, kind)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        reply(send_to="CodeInterpreter", message="delete", code="1"),
        'delete\n<tool_call>{"name": "run_python", "arguments": {"code": "1"}}</tool_call>',
        "delete\n<|python_tag|>1",
    ],
)
def test_an_order_runs_where_the_user_forbids_it_by_a_native_call_alone(
    form: Form, text: str
) -> None:
    asked = Asked(form, DO_NOT_RUN[0])
    assert not any(isinstance(one, RunCell) for one in read(text, asked=asked).actions)
    native = read("", call("run_python", {"code": "1"}), asked=asked)
    assert native.actions == (RunCell("1"),)


@pytest.mark.parametrize(
    ("text", "is_call"),
    [
        ("Llama marks code with <|python_tag|> before it.", False),
        ('A model calls by writing: <tool_call>{"name": "run_python", "arguments": {}}', False),
        ('In JS, to=python {"a":1}', False),
        ('I add.\n<tool_call>{"name": "run_python", "arguments": {"code": "1"}}', True),
        ("I add.\n<|python_tag|>1", True),
    ],
)
def test_words_about_calls_after_an_outcome_are_an_answer(text: str, is_call: bool) -> None:
    (action,) = read(text, asked=Asked("tools", is_answer=True)).actions
    assert action == (RunCell("1") if is_call else Say(text))


def test_a_line_of_backticks_in_a_text_of_the_code_does_not_end_its_fence() -> None:
    code = 'page = """\n```\nx\n```\n"""\nprint(page)'
    text = f"I write it.\n```python\n{code}\n```"
    assert read(text, asked=Asked("fences")).actions == (RunCell(code),)


FILLERS = ["None", "N/A", "null", "-", "[]", "", "24", "none needed", "Not applicable."]
UNUSED = ("plan", "alternatives", "remember", "forget", "recall")


@pytest.mark.parametrize("filler", FILLERS)
def test_fillers_of_unused_fields_mean_nothing(filler: str) -> None:
    offer = replace(OFFER, has_memory=True, has_branches=True)
    # Each number or sentence may be a fact.
    fields = UNUSED if filler in FILLERS[:6] else UNUSED[:2]
    unused = dict.fromkeys(fields, filler)
    answer = reply(send_to="User", message="It is 42.", code=filler, **unused)
    assert read(answer, offer=offer) == ReplyReading((Say("It is 42."),))
    cell = reply(send_to="CodeInterpreter", message="sum", code="1+1", **unused)
    assert read(cell, offer=offer) == ReplyReading((RunCell("1+1", "sum"),))


@pytest.mark.parametrize("code", ["none()", "null = 1", "24", "[]", "empty"])
def test_code_for_its_runner_is_no_filler_where_it_may_be_code(code: str) -> None:
    found = read(reply(send_to="CodeInterpreter", message="look", code=code))
    is_word = code in {"[]", "empty"}
    assert isinstance(found.actions[0], Order if is_word else RunCell)


def test_fields_that_a_reply_may_lack_are_null_in_the_schema() -> None:
    (response,) = OFFER.schema()["properties"].values()
    types = {name: facts["type"] for name, facts in response["properties"].items()}
    assert [name for name, kind in types.items() if kind == "string"] == ["thought", "send_to"]
