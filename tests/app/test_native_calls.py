"""Rounds over an endpoint that takes native tool calls, refuses them, or ignores them."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_endpoint import DONE, Call, event, good, serving
from kept_sessions import KeptSessions
from sizes import some
from support import Listener, make_project
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.render import RoundView
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.reading.cells import has_run
from taskweaver.memory.round import Round
from taskweaver.module.events import PostEventType

pytestmark = pytest.mark.usefixtures("no_states")

KIND = AttachmentType
Body = list[bytes]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def cell(code: str, intent: str = "look") -> tuple[str, object]:
    return ("run_python", {"intent": intent, "code": code})


def play(
    project: Path, *bodies: Body | Callable[[Call], None], rounds: int = 1, **config: object
) -> tuple[list[Round], list[Call], Listener]:
    """Play rounds with an endpoint that answers with these bodies, in order."""

    def answer(call: Call) -> None:
        body = bodies[call.number]
        body(call) if callable(body) else call.stream(body)

    listener = Listener()
    with serving(answer) as endpoint:
        more = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m"}
        keys = {**more, "llm.api_key": "k", "llm.max_retries": 0, **config}
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            played = [session.send_message(f"go {n}", listener) for n in range(rounds)]
    return played, endpoint.calls, listener


def go_on(
    kept: KeptSessions, *bodies: Body, rounds: int = 1
) -> tuple[list[Round], list[Call], Listener]:
    """Play rounds of a session that goes on, with an endpoint that answers with these bodies."""
    session, calls = kept.answered(lambda call: call.stream(bodies[call.number]))
    listener = Listener()
    return [session.send_message(f"go {n}", listener) for n in range(rounds)], calls, listener


def hops(round_: Round) -> list[str]:
    return [f"{post.send_from}>{post.send_to}" for post in round_.post_list]


def test_a_call_runs_its_cell_and_text_is_the_answer(kept_sessions: KeptSessions) -> None:
    (round_,), calls, listener = go_on(
        kept_sessions, called(cell("6 * 7", "multiply"), text="I multiply."), good("It is 42.")
    )
    assert round_.state == "finished"
    assert hops(round_)[1:] == [
        "Planner>CodeInterpreter", "CodeInterpreter>Planner", "Planner>User",
    ]  # fmt: skip
    order = round_.post_list[1]
    assert [item.content for item in order.get_attachment(KIND.thought)] == ["I multiply."]
    assert order.message == "multiply"
    first, second = (call.body for call in calls)
    assert [tool["function"]["name"] for tool in first["tools"]] == [
        "run_python", "set_plan", "try_alternatives", "remember", "forget", "recall",
    ]  # fmt: skip
    assert "response_format" not in first
    assert "tool_choice" not in first
    said, result = second["messages"][-2:]
    assert said["tool_calls"][0]["id"] == result["tool_call_id"]
    assert "42" in result["content"]
    assert second["messages"][: len(first["messages"])] == first["messages"]  # for the cache
    drafts = listener.messages(PostEventType.post_message_restart)
    assert len(drafts) == 1


def test_code_streams_while_its_call_arrives(kept_sessions: KeptSessions) -> None:
    code = "\n".join(f"value_{n} = {n}" for n in range(400))
    listener = go_on(kept_sessions, called(cell(code)), good("Done."))[2]
    shown = [
        event.msg
        for event in listener.events
        if event.extra.get("type") is KIND.reply_content and not event.extra["is_end"]
    ]
    assert shown


@pytest.mark.long
def test_cells_of_one_reply_run_in_order_and_their_results_come_back_in_order(
    project: Path,
) -> None:
    cells = called(cell("a = 1\na", "one"), cell("a += 1\na", "two"), cell("a * 10", "three"))
    (round_,), calls, _ = play(project, cells, good("It is 20."))
    assert hops(round_)[1:-1] == ["Planner>CodeInterpreter", "CodeInterpreter>Planner"] * 3
    results = [m for m in calls[1].body["messages"] if m["role"] == "tool"]
    shown = [str(result["content"]).split("```")[1].strip() for result in results]
    assert shown == ["1", "2", "20"]


def test_a_plan_is_shown_with_its_first_cell(project: Path) -> None:
    plan = ("set_plan", {"steps": ["load", "sum", "plot"]})
    (round_,), calls, _ = play(project, called(plan, cell("1")), good("Done."))
    (shown,) = round_.post_list[1].get_attachment(KIND.plan)
    assert shown.content == "1. load\n2. sum\n3. plot"
    names = [call["function"]["name"] for call in calls[1].body["messages"][-3]["tool_calls"]]
    assert names == ["set_plan", "run_python"]


def test_a_plan_alone_costs_one_more_call_and_is_no_failure(project: Path) -> None:
    plan = ("set_plan", {"steps": ["load", "sum", "plot"]})
    (round_,), calls, _ = play(
        project, called(plan), called(cell("1")), good("Done."), **{"planner.max_retry_count": 0}
    )
    assert round_.state == "finished"
    assert calls[1].body["messages"][-1]["role"] == "tool"


def test_17_the_result_of_an_unknown_tool_names_those_there_are(
    kept_sessions: KeptSessions,
) -> None:
    (round_,), calls, _ = go_on(kept_sessions, called(("sql", {"q": "x"})), good("Then not."))
    assert round_.post_list[-1].message == "Then not."
    call, result = calls[1].body["messages"][-2:]
    assert call["tool_calls"][0]["function"]["name"] == "sql"
    assert (result["role"], result["tool_call_id"]) == ("tool", call["tool_calls"][0]["id"])
    assert "run_python, set_plan" in result["content"]


def test_a_model_that_calls_unknown_tools_for_ever_is_given_up(project: Path) -> None:
    replies = [called(("sql", {"q": "x"}))] * 9
    (round_,), calls, _ = play(project, *replies, **{"planner.max_retry_count": 2})
    assert (round_.state, len(calls)) == ("failed", 3)


REFUSALS = [
    (400, "registry.ollama.ai/library/gemma2 does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (404, "No endpoints found that support tool use."),
]


@pytest.mark.parametrize(("status", "words"), some(REFUSALS, 1))
def test_an_endpoint_without_tools_is_asked_for_json_from_then_on(
    project: Path, status: int, words: str
) -> None:
    reply = {"send_to": "CodeInterpreter", "message": "go", "code": "6 * 7"}
    rounds, calls, _ = play(
        project,
        lambda call: call.refuse(status, words),
        good(json.dumps({"response": reply})),
        good(json.dumps({"response": {"send_to": "User", "message": "42"}})),
        good(json.dumps({"response": {"send_to": "User", "message": "again"}})),
        rounds=2,
    )
    assert [round_.state for round_ in rounds] == ["finished"] * 2
    for call in calls[1:]:
        assert "tools" not in call.body
        assert "Reply with one JSON object" in call.body["messages"][0]["content"]


def test_tools_are_never_dropped_as_an_unknown_parameter(project: Path) -> None:
    _, calls, _ = play(
        project,
        lambda call: call.refuse(400, "Unsupported parameter: stream_options"),
        called(cell("1")),
        good("Done."),
    )
    assert all("tools" in call.body for call in calls)
    assert "stream_options" not in calls[1].body


@pytest.mark.long
def test_a_model_that_never_sees_its_tools_is_asked_for_fences(project: Path) -> None:
    fence = good("Sure:\n```python\n6 * 7\n```")
    (first, second), _, _ = play(project, *[fence] * 4, good("It is 42."), rounds=2)
    assert [first.post_list[-1].message, second.post_list[-1].message] == [
        "Sure:\n```python\n6 * 7\n```", "It is 42.",
    ]  # fmt: skip
    ran = [has_run(post) for round_ in (first, second) for post in round_.post_list]
    assert sum(ran) == 1


def test_a_model_that_calls_tools_may_show_code_that_is_not_run(
    kept_sessions: KeptSessions,
) -> None:
    shown = "```python\nimport os; os.getpid()\n```"
    first, second = go_on(
        kept_sessions,
        called(cell("1 + 1")),
        good("It is 2."),
        good(f"Here it is:\n{shown}"),
        rounds=2,
    )[0]
    assert first.state == second.state == "finished"
    assert hops(second)[1:] == ["Planner>User"]
    assert shown in second.post_list[-1].message


def test_reasoning_is_no_part_of_the_reply(kept_sessions: KeptSessions) -> None:
    thinking = '<think>Perhaps {"response": {"send_to": "User", "message": "no"}}</think>'
    (round_,), _, _ = go_on(kept_sessions, good(*thinking, " It is", " 42."))
    assert round_.post_list[-1].message == "It is 42."


@pytest.mark.long
def test_a_model_that_sends_the_same_cell_for_ever_is_stopped(project: Path) -> None:
    (round_,), calls, _ = play(project, *[called(cell("1 + 1"))] * 30)
    assert len(calls) < 12
    assert "circles" in round_.post_list[-1].message


@pytest.mark.long
def test_fences_by_configuration(project: Path) -> None:
    (round_,), calls, _ = play(
        project, good("```python\n6 * 7\n```"), good("It is 42."), **{"llm.form": "fences"}
    )
    assert round_.post_list[-1].message == "It is 42."
    assert "tools" not in calls[0].body
    assert "response_format" not in calls[0].body
    assert "```python" in calls[0].body["messages"][0]["content"]
    assert calls[1].body["messages"][-2]["content"] == "```python\n6 * 7\n```"


def printed(project: Path, *bodies: Body, rounds: int = 1, **config: object) -> list[str]:
    """Return the lines of a terminal without colours, of each round."""
    texts, replies = [], iter(bodies)
    with serving(lambda call: call.stream(next(replies))) as endpoint:
        more = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m"}
        with TaskWeaverApp(project, config={**more, "llm.api_key": "k", **config}) as app:
            session = app.get_session()
            for _ in range(rounds):
                shown = io.StringIO()
                listening = RoundView(PlainSurface(shown), lambda _branch: project)
                session.send_message("how many?", listening)
                texts.append(shown.getvalue())
    return texts


def test_a_cell_is_shown_once_whatever_fences_it_came_in(project: Path) -> None:
    answer = json.dumps({"response": {"send_to": "User", "message": "It is 42."}})
    bodies = []
    codes = ("```python\n6 * 7\n```", "6 * 7", "```\n6 * 7\n```\n", "\n6 * 7")
    messages = ("multiply:\n```python\n6 * 7\n```\nPlease.", "multiply")
    for code, message in itertools.product(some(codes, 2), some(messages, 1)):
        fields = {"send_to": "CodeInterpreter", "message": message, "code": code}
        order = json.dumps({"response": fields})
        pieces = [order[at : at + 3] for at in range(0, len(order), 3)]
        bodies += [good(*pieces), good(answer)]
    for shown in printed(project, *bodies, rounds=len(bodies) // 2, **{"llm.form": "json"}):
        assert shown.count("6 * 7") == 1
        assert "```" not in shown


@pytest.mark.parametrize("form", some(["tools", "json", "fences"], 1))
def test_an_answer_that_the_check_blocks_is_withdrawn(project: Path, form: str) -> None:
    def said(text: str) -> Body:
        reply = {"response": {"send_to": "User", "message": text}}
        return good(json.dumps(reply) if form == "json" else text)

    cell_reply = {"send_to": "CodeInterpreter", "message": "go", "code": "6 * 7"}
    first = {
        "tools": called(cell("6 * 7")),
        "json": good(json.dumps({"response": cell_reply})),
        "fences": good("```python\n6 * 7\n```"),
    }[form]
    (shown,) = printed(project, first, said("It is 5120."), said("It is 42."), **{"llm.form": form})
    assert "Planner withdraws its answer: not found in any result: 5120\n" in shown
    assert "It is 5120." not in shown
    assert "It is 42." in shown


SHOWN = "I would do this:\n\n```python\nimport os; os.remove('a.csv')\n```"


@pytest.mark.parametrize("form", ["tools", "json", "fences"])
def test_code_that_the_user_asks_only_to_see_does_not_run(project: Path, form: str) -> None:
    def answer(call: Call) -> None:
        call.stream(good(SHOWN))

    with serving(answer) as endpoint:
        config = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "llm.form": "auto" if form == "tools" else form,
        }  # fmt: skip
        with TaskWeaverApp(project, config=config) as app, app.get_session() as session:
            file = session.execution_cwd / "a.csv"
            file.write_text("x")
            round_ = session.send_message("How do I delete all csv files? Do not run it.")
            assert file.exists()
    assert round_.post_list[-1].message == SHOWN
    assert len(endpoint.calls) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([event(" on."), event(finish="stop"), DONE], "It goes on."),
        ([event(" on."), event(finish="length"), DONE], "It goes on.\n\n(The answer"),
        ([event("Hm.</think>, too."), event(finish="stop"), DONE], "It goes, too."),
        ([event(" on.")], "It goes on.\n\n(The answer"),
    ],
)
def test_an_answer_that_is_cut_off_goes_on_once(
    kept_sessions: KeptSessions, more: Body, said: str
) -> None:
    cut = [event("It goes"), event(finish="length"), DONE]
    (round_,), calls, _ = go_on(kept_sessions, cut, *[more] * 9)
    assert calls[1].body["messages"][-2] == {"role": "assistant", "content": "It goes"}
    assert round_.answer.text.startswith(said)
    assert "(The" in said or round_.answer.text == said
