"""Orders in words: the interpreter looks, computes and answers, in every form of replies."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from kept_sessions import KeptSessions
from sizes import some
from support import add_table, make_project
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.reading.cells import successful_cells
from taskweaver.memory.round import Round

pytestmark = pytest.mark.usefixtures("no_states")

KIND = AttachmentType
FORMS = ("tools", "json", "fences")
RELAY = {"session.leader_writes_code": False}
ALONE = {"session.roles": ["code_interpreter"]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def cell(form: str, code: str, *, is_last: bool = False) -> list[bytes]:
    """Return a reply with a cell, in a form."""
    if form == "tools":
        return called(("run_python", {"intent": "look", "code": code, "is_last": is_last}))
    if form == "json":
        last = "yes" if is_last else "no"
        fields = {"thought": "look", "message": "", "code": code, "is_last": last}
        return good(json.dumps({"response": fields}))
    return good(f"look\n```python{' last' * is_last}\n{code}\n```")


def words(form: str, text: str) -> list[bytes]:
    """Return a reply in words, in a form."""
    fields = {"thought": "", "message": text, "send_to": "User"}
    return good(json.dumps({"response": fields}) if form == "json" else text)


def order(form: str, text: str, role: str = "CodeInterpreter") -> list[bytes]:
    """Return an order of the Planner, in a form."""
    if form == "tools":
        return called(("ask", {"role": role, "order": text}))
    if form == "json":
        return good(json.dumps({"response": {"send_to": role, "message": text}}))
    return good(f"```ask {role}\n{text}\n```")


def play(
    project: Path, form: str, *bodies: list[bytes], rounds: int = 1, **config: Any
) -> tuple[list[Round], list[Call]]:
    """Play rounds with an endpoint that answers with these bodies, in order; all are used."""
    with serving(lambda call: call.stream(bodies[call.number])) as endpoint:
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "llm.max_retries": 0, "llm.form": form, **config,
        }  # fmt: skip
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            played = [session.send_message(f"go {n}") for n in range(rounds)]
    assert len(endpoint.calls) == len(bodies)
    return played, endpoint.calls


def go_on(
    kept: KeptSessions, form: str, *bodies: list[bytes], **config: Any
) -> tuple[Round, list[Call]]:
    """Play a round of a session that goes on, with an endpoint that answers with these bodies."""
    answer = lambda call: call.stream(bodies[call.number])  # noqa: E731
    session, calls = kept.answered(answer, **{"llm.form": form, **config})
    round_ = session.send_message("go")
    assert len(calls) == len(bodies)
    return round_, calls


def hops(round_: Round) -> list[str]:
    short = {"Planner": "P", "CodeInterpreter": "C", "User": "U"}
    posts = round_.post_list
    return [f"{short.get(p.send_from, '?')}{short.get(p.send_to, '?')}" for p in posts]


def newest(call: Call) -> str:
    return str(call.body["messages"][-1]["content"])


def texts(post: Post, kind: AttachmentType) -> list[str]:
    return [str(item.content) for item in post.get_attachment(kind)]


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_look_then_compute_is_one_order(project: Path, form: str) -> None:
    add_table(project)
    (round_,), calls = play(
        project,
        form,
        order(form, "sum of Count"),
        cell(form, "df = pd.read_csv('tiny.csv')\nlist(df)"),
        cell(form, "df.Count.sum()"),
        words(form, "The sum is 8."),
        words(form, "It is 8."),
        **RELAY,
    )
    assert round_.state == "finished"
    assert hops(round_) == ["UP", "PC", "CC", "CC", "CP", "PU"]
    assert [ran.code for ran in successful_cells([round_])] == [
        "df = pd.read_csv('tiny.csv')\nlist(df)", "df.Count.sum()",
    ]  # fmt: skip
    assert "Region" in newest(calls[2])  # the outcome of the look
    assert "df: " in newest(calls[2])  # and the variable that it made
    assert (
        calls[3].body["messages"][: len(calls[2].body["messages"])] == (calls[2].body["messages"])
    )
    report = round_.post_list[4]
    assert report.message.startswith("The sum is 8.")
    assert "df.Count.sum()" in report.message
    assert "Region" in newest(calls[4])


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_a_cell_that_is_marked_as_the_last_costs_no_further_call(
    kept_sessions: KeptSessions, form: str
) -> None:
    round_, calls = go_on(
        kept_sessions,
        form,
        order(form, "multiply"),
        cell(form, "6 * 7", is_last=True),
        words(form, "It is 42."),
        **RELAY,
    )
    assert hops(round_) == ["UP", "PC", "CP", "PU"]
    assert "42" in newest(calls[2])
    assert "6 * 7" in newest(calls[2])


@pytest.mark.parametrize("form", some(("fences", "json", "tools"), 1))
def test_an_interpreter_alone_answers_the_question(project: Path, form: str) -> None:
    add_table(project)
    (one, _), calls = play(
        project,
        form,
        cell(form, "df = pd.read_csv('tiny.csv')\ndf.head()"),
        cell(form, "df.Count.sum()"),
        words(form, "The sum is 8."),
        words(form, "Still 8."),
        rounds=2,
        **ALONE,
    )
    assert hops(one) == ["UC", "CC", "CC", "CU"]
    assert one.post_list[-1].message == "The sum is 8."
    system = str(calls[0].body["messages"][0]["content"])
    assert "never talk to the user" not in system
    assert "last" not in json.dumps(calls[0].body.get("tools", ""))
    said = [m for m in calls[3].body["messages"] if m["role"] == "assistant"]
    assert "The sum is 8." in str(said[-1]["content"])
    assert "df: " in newest(calls[3])  # the variables, before the next question


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_its_own_failure_is_corrected_and_a_look_is_no_try(project: Path, form: str) -> None:
    (round_,), calls = play(
        project,
        form,
        cell(form, "a = 1\na"),
        cell(form, "b = 2\nb"),
        cell(form, "a / 0"),
        cell(form, "a / b"),
        words(form, "It is 0.5."),
        **{**ALONE, "code_interpreter.max_retry_count": 1},
    )
    assert round_.post_list[-1].message == "It is 0.5."
    assert "ZeroDivisionError" in newest(calls[3])
    assert "write the whole corrected cell" in newest(calls[3])


@pytest.mark.parametrize("form", some(("json", "tools", "fences"), 1))
def test_the_same_cell_for_ever_ends_with_an_answer(project: Path, form: str) -> None:
    (round_,), calls = play(
        project, form, *[cell(form, "1 + 1")] * 3, words(form, "It is 2."), **ALONE
    )
    assert round_.post_list[-1].message == "It is 2."
    assert "Do not send it again" in newest(calls[2])
    assert "No further cell runs" in newest(calls[3])
    assert calls[3].body.get("tool_choice") == ("none" if form == "tools" else None)
    if form == "json":
        schema = calls[3].body["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]["response"]["properties"]) == ["thought", "message"]


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_after_eight_cells_an_answer_is_asked_for(kept_sessions: KeptSessions, form: str) -> None:
    cells = [cell(form, f"{n} + 1") for n in range(8)]
    round_, _ = go_on(
        kept_sessions,
        form,
        order(form, "count"),
        *cells,
        cell(form, "9 + 1"),  # a ninth is not run
        words(form, "The worker counted to 8."),
        **RELAY,
    )
    assert len(successful_cells([round_])) == 8
    report = round_.post_list[-2]
    assert (report.send_from, report.send_to) == ("CodeInterpreter", "Planner")
    assert "7 + 1" in report.message
    assert len(report.message) < 9_000
    assert round_.state == "finished"


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_an_empty_reply_after_an_outcome_is_nudged_then_the_outcome_is_reported(
    project: Path, form: str
) -> None:
    (round_,), calls = play(project, form, cell(form, "6 * 7"), good(" "), good(" "), **ALONE)
    assert round_.state == "finished"
    assert "No further cell runs" in newest(calls[2])
    assert "42" in round_.post_list[-1].message


@pytest.mark.long
def test_two_hundred_calls_of_the_interpreter_are_cut_to_eight(project: Path) -> None:
    many = called(*[("run_python", {"intent": str(n), "code": f"t = {n}"}) for n in range(200)])
    (round_,), calls = play(project, "tools", many, good("Done."), **ALONE)
    assert len(successful_cells([round_])) == 8
    results = [m for m in calls[1].body["messages"] if m["role"] == "tool"]
    assert len(results) == 200


def test_a_failed_cell_stops_the_cells_after_it_in_one_reply(project: Path) -> None:
    codes = ["a = 1\na", "a / 0", "a = 99"]
    many = called(*[("run_python", {"intent": "x", "code": code}) for code in codes])
    last = called(("run_python", {"intent": "x", "code": "a + 1"}))
    (round_,), calls = play(project, "tools", many, last, good("It is 2."), **ALONE)
    results = [str(m["content"]) for m in calls[1].body["messages"] if m["role"] == "tool"]
    assert len(results) == 3
    assert "ZeroDivisionError" in results[1]
    assert "Not done" in results[2]
    assert "2" in newest(calls[2])
    assert round_.post_list[-1].message == "It is 2."


def test_two_orders_in_one_reply_keep_the_result_of_the_first_when_the_second_stops(
    project: Path,
) -> None:
    roles = {"session.roles": ["planner", "code_interpreter", "echo"], **RELAY}
    both = called(
        ("ask", {"role": "Echo", "order": "hello"}),
        ("ask", {"role": "CodeInterpreter", "order": "divide"}),
    )
    (round_,), calls = play(
        project, "tools", both, good(" "), good("Echo said hello."),
        **roles, **{"code_interpreter.max_retry_count": 0},
    )  # fmt: skip
    assert round_.state == "finished"
    first, second = [str(m["content"]) for m in calls[2].body["messages"] if m["role"] == "tool"]
    assert "hello" in first
    assert "No usable code" in second


def test_a_prompt_file_of_version_1_keeps_one_cell_an_order(project: Path, tmp_path: Path) -> None:
    packaged = Path("taskweaver/code_interpreter/code_generator_prompt_version_1.yaml")
    own = tmp_path / "own.yaml"
    own.write_text(packaged.read_text().replace("You are {ROLE_NAME}.", "You are Ada."))
    fields = {"thought": "", "reply_type": "python", "reply_content": "6 * 7"}
    (round_,), calls = play(
        project,
        "tools",
        good(json.dumps({"response": fields})),
        **ALONE,
        **{"code_generator.prompt_file_path": str(own)},
    )
    assert hops(round_) == ["UC", "CU"]
    assert "You are Ada." in str(calls[0].body["messages"][0]["content"])
    assert "tools" not in calls[0].body


@pytest.mark.long
def test_an_endpoint_without_tools_gets_the_next_form(project: Path) -> None:
    def answer(call: Call) -> None:
        if call.number == 0:
            call.refuse(400, "this model does not support tools")
        else:
            call.stream([cell("json", "6 * 7"), words("json", "It is 42.")][call.number - 1])

    with serving(answer) as endpoint:
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "llm.max_retries": 0, **ALONE,
        }  # fmt: skip
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            round_ = session.send_message("go")
    assert round_.post_list[-1].message == "It is 42."
    assert "tools" not in endpoint.calls[1].body


def test_an_order_that_is_answered_in_words_alone_needs_no_cell(
    kept_sessions: KeptSessions,
) -> None:
    round_, calls = go_on(
        kept_sessions, "tools", order("tools", "hm"), good("Which file?"), good("Which?"), **RELAY
    )
    assert texts(round_.post_list[2], KIND.reply_type) == ["text"]
    assert newest(calls[2]) == "Which file?"


TABLE = "pd.DataFrame({'a': [1, 2]}).to_csv('made.csv')"


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_an_interpreter_reads_the_files_once_and_then_their_changes(
    project: Path, form: str
) -> None:
    add_table(project)
    replies = [cell(form, "x = 1"), words(form, "One."), cell(form, TABLE), words(form, "Two.")]
    _, calls = play(project, form, *replies, words(form, "Three."), rounds=3, **ALONE)
    for before, after in itertools.pairwise(calls):
        old = before.body["messages"]
        assert after.body["messages"][: len(old)] == old  # for the cache
    last = [str(message["content"]) for message in calls[4].body["messages"][1:]]
    assert sum('"tiny.csv"' in text for text in last) == 1
    assert sum(text.count("- x: 1") for text in last) == 2  # as the outcome, and as a change
    assert sum('"made.csv"' in text and "rows" in text for text in last) == 1


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_an_interpreter_sees_its_figures_in_their_round(project: Path, form: str) -> None:
    plot = "plt.bar(['North', 'South'], [3, 5])\nplt.title('Counts')\nplt.savefig('chart.png')"
    code = f"import matplotlib.pyplot as plt\n{plot}"
    replies = [cell(form, code), words(form, "South leads."), words(form, "As I said.")]
    _, calls = play(project, form, *replies, rounds=2, **ALONE, **{"llm.model": "gpt-4o"})
    shown = [json.dumps(call.body["messages"]) for call in calls]
    assert ["data:image/png" in text for text in shown] == [False, True, False]
    assert all("Counts" in text for text in shown[1:])  # its description stays
