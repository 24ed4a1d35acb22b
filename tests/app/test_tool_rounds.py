"""Rounds over an endpoint that takes calls, refuses or ignores them, and what goes back to it.

Numbers are rows of the table of cases.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fake_endpoint import DONE, Call, event, good
from rounds import Body, app_over, cell, check_pairs, newest, play, results, shown
from support import Listener, Script, make_project, planner_reply, trust_project
from tool_replies import called, delta, piece

import taskweaver
from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.branched import MemoryManager
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.session.export import export

pytestmark = pytest.mark.usefixtures("no_states")

KIND = AttachmentType
SECRET = "c2lnbmF0dXJl-sk-0123456789abcdefABCDEF0123"
SIGNATURE = {"google": {"thought_signature": SECRET}}
VERSION_1 = Path(taskweaver.__file__).parent / "planner" / "planner_prompt_version_1.yaml"


def signed(*codes: str) -> list[bytes]:
    """Return a reply with cells, the first call with a signature, after some reasoning."""
    body = [delta(reasoning_content="deep thought")]
    for index, code in enumerate(codes):
        more = {"extra_content": SIGNATURE} if index == 0 else {}
        arguments = json.dumps({"intent": "look", "code": code})
        body.append(piece(arguments, "run_python", index=index, id=f"call_{index}", **more))
    return [*body, *called()]


def memory_file(project: Path) -> Path:
    (file,) = project.glob("workspace/sessions/*/memory.sqlite")
    return file


def test_4_the_calls_of_a_reply_go_back_as_one_message_also_later(project: Path) -> None:
    plan = ("set_plan", {"steps": ["one", "two", "three"]})
    cells = called(cell("a = 1\na"), plan, cell("a += 1\na"), cell("a * 10"))
    _, calls, _ = play(project, cells, good("It is 20."), good("As before."), rounds=2)
    for call in calls[1:]:
        check_pairs(call)
        (reply,) = [m for m in call.body["messages"] if len(m.get("tool_calls", ())) == 4]
        names = [made["function"]["name"] for made in reply["tool_calls"]]
        assert names == ["run_python", "set_plan", "run_python", "run_python"]
    texts = results(calls[1])[-4:]
    assert "The user sees the plan" in texts[1]
    assert [text.split("```")[1].strip() for text in (texts[0], *texts[2:])] == ["1", "2", "20"]


def test_a_plan_alone_costs_one_more_call_and_is_no_failure(project: Path) -> None:
    plan = called(("set_plan", {"steps": ["load", "sum"]}))
    (round_,), calls, _ = play(project, plan, good("Done."), **{"planner.max_retry_count": 0})
    assert round_.state == "finished"
    assert calls[1].body["messages"][-1]["role"] == "tool"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([event(" on."), event(finish="stop"), DONE], "It goes on."),
        ([event(" on.")], "It goes on.\n\n(The answer"),
    ],
)
def test_an_answer_that_is_cut_off_goes_on_once(
    project: Path, more: list[bytes], said: str
) -> None:
    cut = [event("It goes"), event(finish="length"), DONE]
    (round_,), calls, _ = play(project, cut, *[more] * 9)
    assert calls[1].body["messages"][-2] == {"role": "assistant", "content": "It goes"}
    assert round_.answer.text.startswith(said)
    assert "(The" in said or round_.answer.text == said


def test_an_example_stays_an_answer_where_its_continuation_lowers_the_form(project: Path) -> None:
    """A reply is read as its prompt asked for it, whatever is learnt meanwhile."""
    example = "You write:\n```python\n6 * 7\n```\n"
    cut = [event(example), event(finish="length"), DONE]

    def refuse(call: Call) -> None:
        call.refuse(400, "tools is not supported by this model", param="tools")

    bodies: list[Body] = [called(cell("1")), good("1"), cut, refuse]
    (_, round_), _, _ = play(project, *bodies, rounds=2)
    assert round_.answer.text.startswith(example)


def test_24_after_two_empty_replies_the_outcome_is_the_answer(project: Path) -> None:
    works, empty = called(cell("6 * 7")), good("")
    bodies: list[Body] = [works, empty, empty, works, empty, good("It is 42."), *[empty] * 9]
    (reported, answered, failed), calls, _ = play(project, *bodies, rounds=3)
    assert reported.state == "finished"
    assert "42" in reported.post_list[-1].message
    assert not reported.is_answered
    assert "Answer now" in newest(calls[2])
    assert calls[2].body["tool_choice"] == "none"
    assert answered.answer.text == "It is 42."
    assert (failed.state, len(calls)) == ("failed", 6 + 4)


def test_48_49_reasoning_and_signatures_go_back_after_a_resume_and_on_both_sides_of_a_fork(
    project: Path,
) -> None:
    bodies = [signed("6 * 7", "8 * 9"), *map(good, ("It is 42.", "Yes.", "One.", "Two."))]
    with app_over(project, *bodies) as (app, calls):
        session = app.get_session()
        session.send_message("go")
        session.stop()
        session = app.resume_session(session.session_id)
        session.send_message("sure?")
        name = session.fork("side")
        session.send_message("on the first")
        session.checkout(name)
        session.send_message("on the second")
    for call in calls[1:]:
        check_pairs(call)
        (reply,) = [m for m in call.body["messages"] if "reasoning_content" in m]
        assert reply["reasoning_content"] == "deep thought"
        assert reply["tool_calls"][0]["extra_content"] == SIGNATURE
        assert [made["id"] for made in reply["tool_calls"]] == ["call_0", "call_1"]
    assert "on the first" not in shown(calls[-1])


@pytest.fixture(scope="module")
def _signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_project(tmp_path_factory.mktemp("signed") / "project", has_table=False)
    play(project, signed("6 * 7", "8 * 9"), good("It is 42."))
    return project


@pytest.fixture
def signed_project(_signed: Path, tmp_path: Path) -> Path:
    """A project with a session that has a record, which the test may go on with."""
    folder = tmp_path / "signed"
    shutil.copytree(_signed, folder)
    trust_project(folder)
    return folder


@pytest.mark.parametrize(
    "config",
    [{"llm.model": "other"}, {"llm.form": "json"}, {"planner.prompt_file_path": str(VERSION_1)}],
)
def test_90_another_model_or_form_goes_on_without_records(
    signed_project: Path, config: dict[str, object]
) -> None:
    with app_over(signed_project, good(planner_reply("User", "Yes.")), **config) as (app, calls):
        assert app.resume_session().send_message("sure?").state == "finished"
    check_pairs(calls[0])
    text = shown(calls[0])
    assert "It is 42." in text
    assert ("8 * 9" in text) or "llm.model" not in config
    for mark in (SECRET, "deep thought", "call_0", "reply_record"):
        assert mark not in text


def test_a_record_is_shown_nowhere_and_in_no_masked_copy(project: Path, tmp_path: Path) -> None:
    listener = Listener()
    with app_over(project, signed("6 * 7"), good("It is 42.")) as (app, _):
        session = app.get_session()
        round_ = session.send_message("go", listener)
        assert SECRET in json.dumps(round_.to_dict())
        for ending in ("ipynb", "py", "md"):
            file = tmp_path / f"out.{ending}"
            export([round_], file, title="t")
            assert SECRET not in file.read_text()
        for is_thin in (True, False):
            path = session.memory.save_experience(tmp_path / str(is_thin), thin_mode=is_thin)
            assert SECRET not in path.read_text()
        assert SECRET not in json.dumps(round_.shown_dict())
    assert KIND.reply_record not in {event.extra.get("type") for event in listener.events}
    assert SECRET not in "".join(event.msg for event in listener.events)
    with BranchedMemory(memory_file(project)) as store:
        for name, is_private in (("masked", False), ("private", True)):
            store.export(tmp_path / f"{name}.jsonl", is_private=is_private)
            assert (SECRET in (tmp_path / f"{name}.jsonl").read_text()) is is_private
            with MemoryManager(tmp_path / f"{name}.sqlite") as other:
                other.import_(tmp_path / f"{name}.jsonl")


def test_92_a_session_of_the_first_release_goes_on_in_the_form_in_force(project: Path) -> None:
    script = Script([planner_reply("User", "hello"), planner_reply("User", "again")])
    with TaskWeaverApp(project, model=script) as app:
        session = app.get_session()
        session.send_message("hi")
        session.send_message("hi again")
    with closing(sqlite3.connect(memory_file(project))) as connection:
        for table in ("vectors", "archival_fts", "event_words"):  # later ones
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DROP INDEX archival_closed")
        for column in ("replaced_by", "valid_to", "valid_from"):
            connection.execute(f"ALTER TABLE archival DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 4")
    with app_over(project, called(cell("6 * 7")), good("It is 42.")) as (app, calls):
        assert app.resume_session().send_message("compute").answer.text == "It is 42."
    for call in calls:
        check_pairs(call)
    said = [m["content"] for m in calls[0].body["messages"] if m["role"] == "assistant"]
    assert said[-2:] == ["hello", "again"]
