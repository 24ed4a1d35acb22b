"""Records of replies in whole sessions; the numbers are rows of the table of cases."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from kept_sessions import KeptSessions
from patience import PATIENCE_S
from sizes import some
from support import Listener, Script, make_project, planner_reply, trust_project
from tool_replies import called, delta, piece

import taskweaver
from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.branched import MemoryManager, StoreTooNew
from taskweaver.memory.branched.storage import schema
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.round import Round
from taskweaver.memory.summaries.transcript import tokens_of
from taskweaver.module.events import PostEventType
from taskweaver.session.exports.export import export
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

Body = list[bytes]
Bodies = Sequence[Body | Callable[[Call], None]]
SECRET = "c2lnbmF0dXJl-sk-0123456789abcdefABCDEF0123"
SIGNATURE = {"google": {"thought_signature": SECRET}}
VERSION_1 = Path(taskweaver.__file__).parent / "planner" / "planner_prompt_version_1.yaml"
NOT_ENDED = "Interrupted, not run to its end: it may have been done in part."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def cell(code: str, intent: str = "look") -> tuple[str, object]:
    return ("run_python", {"intent": intent, "code": code})


def signed(*codes: str) -> Body:
    """Return a reply with cells, the first call with a signature, after some reasoning."""
    body = [delta(reasoning_content="deep thought")]
    for index, code in enumerate(codes):
        more = {"extra_content": SIGNATURE} if index == 0 else {}
        arguments = json.dumps({"intent": "look", "code": code})
        body.append(piece(arguments, "run_python", index=index, id=f"call_{index}", **more))
    return [*body, *called()]


@contextmanager
def app_at(
    project: Path, bodies: Bodies, model: str = "m", **config: object
) -> Iterator[tuple[TaskWeaverApp, list[dict[str, Any]]]]:
    """Open the project with an endpoint that gives these replies; yield the bodies it gets."""
    asked: list[dict[str, Any]] = []

    def answer(call: Call) -> None:
        asked.append(call.body)
        body = bodies[len(asked) - 1]
        body(call) if callable(body) else call.stream(body)

    with serving(answer) as endpoint:
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": model,
            "llm.api_key": "k", "llm.max_retries": 0, **config,
        }  # fmt: skip
        with TaskWeaverApp(project, config=keys) as app:
            yield app, asked


def going_on(kept: KeptSessions, *bodies: Body) -> tuple[Session, list[Call]]:
    """Return a session that goes on, whose endpoint gives these replies, and its calls."""
    return kept.answered(lambda call: call.stream(bodies[call.number]))


def check_pairs(messages: Sequence[dict[str, Any]]) -> None:
    """Check that each call has its result, in order, before anything else."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert not waiting


def results(body: dict[str, Any]) -> list[str]:
    return [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]


def memory_file(project: Path) -> Path:
    (file,) = project.glob("workspace/sessions/*/memory.sqlite")
    return file


def test_4_the_calls_of_a_reply_go_back_as_one_message_also_later(
    kept_sessions: KeptSessions,
) -> None:
    plan = ("set_plan", {"steps": ["one", "two", "three"]})
    cells = called(cell("a = 1\na"), plan, cell("a += 1\na"), cell("a * 10"))
    session, calls = going_on(kept_sessions, cells, good("It is 20."), good("As before."))
    session.send_message("go")
    session.send_message("again")
    asked = [call.body for call in calls]
    for body in asked[1:]:
        check_pairs(body["messages"])
        (reply,) = [m for m in body["messages"] if len(m.get("tool_calls", ())) == 4]
        names = [call["function"]["name"] for call in reply["tool_calls"]]
        assert names == ["run_python", "set_plan", "run_python", "run_python"]
    shown = results(asked[1])[-4:]
    assert "The user sees the plan" in shown[1]
    assert [text.split("```")[1].strip() for text in (shown[0], *shown[2:])] == ["1", "2", "20"]


def test_19_of_two_hundred_calls_eight_run_and_all_are_answered(project: Path) -> None:
    cells = [cell(f"total = {n}", str(n)) for n in range(200)]
    with app_at(project, [called(*cells), good("Done.")]) as (app, asked):
        round_ = app.get_session().send_message("go")
    assert sum(post.send_to == "CodeInterpreter" for post in round_.post_list) == 8
    check_pairs(asked[1]["messages"])
    texts = results(asked[1])[-200:]
    assert [text.startswith("Not done") for text in texts] == [False] * 8 + [True] * 192


def test_48_49_reasoning_and_signatures_go_back_after_a_resume_too(project: Path) -> None:
    bodies = [signed("6 * 7", "8 * 9"), good("It is 42."), good("Yes.")]
    with app_at(project, bodies) as (app, asked):
        session = app.get_session()
        session.send_message("go")
        session.stop()
        app.resume_session(session.session_id).send_message("sure?")
    for body in asked[1:]:
        check_pairs(body["messages"])
        (reply,) = [m for m in body["messages"] if "reasoning_content" in m]
        assert reply["reasoning_content"] == "deep thought"
        assert reply["tool_calls"][0]["extra_content"] == SIGNATURE
        assert [call["id"] for call in reply["tool_calls"]] == ["call_0", "call_1"]


@pytest.fixture(scope="module")
def _signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Round]:
    project = make_project(tmp_path_factory.mktemp("signed") / "project", has_table=False)
    with app_at(project, [signed("6 * 7", "8 * 9"), good("It is 42.")]) as (app, _):
        return project, app.get_session().send_message("go")


@pytest.fixture
def signed_project(_signed: tuple[Path, Round], tmp_path: Path) -> Path:
    """A project with a session that has a record, which the test may go on with."""
    folder = tmp_path / "signed"
    shutil.copytree(_signed[0], folder)
    trust_project(folder)
    return folder


@pytest.fixture
def signed_round(_signed: tuple[Path, Round]) -> Round:
    """The round of that session."""
    return _signed[1]


def test_90_another_model_goes_on_with_a_neutral_history(signed_project: Path) -> None:
    with app_at(signed_project, [good("Yes.")], model="other") as (app, asked):
        assert app.resume_session().send_message("sure?").state == "finished"
    check_pairs(asked[0]["messages"])
    text = json.dumps(asked[0])
    assert "8 * 9" in text
    for mark in (SECRET, "deep thought", "call_0"):
        assert mark not in text


@pytest.mark.parametrize(
    "config",
    some(
        [
            {"llm.form": "json"},
            {"llm.form": "fences"},
            {"planner.prompt_file_path": str(VERSION_1)},
        ],
        1,
    ),
)
def test_90_another_form_goes_on_without_records(
    signed_project: Path, config: dict[str, object]
) -> None:
    answer = good(planner_reply("User", "Yes."))
    with app_at(signed_project, [answer], **config) as (app, asked):
        assert app.resume_session().send_message("sure?").state == "finished"
    text = json.dumps(asked[0])
    assert "It is 42." in text
    for mark in (SECRET, "deep thought", "call_0", "reply_record", "tool_calls"):
        assert mark not in text


def test_a_record_counts_where_rounds_are_summarised(signed_round: Round) -> None:
    shown = Round.from_dict(signed_round.shown_dict())
    assert tokens_of(signed_round, 2_000) > tokens_of(shown, 2_000) > 0


def test_50_a_refused_signature_does_not_end_the_session(project: Path) -> None:
    def refusing(call: Call) -> None:
        assert SECRET in json.dumps(call.body)
        call.refuse(400, "Corrupted thought signature.")

    bodies = [signed("6 * 7"), refusing, good("It is 42."), good("Yes.")]
    with app_at(project, bodies) as (app, asked):
        session = app.get_session()
        assert session.send_message("go").post_list[-1].message == "It is 42."
        assert session.send_message("sure?").state == "finished"
    assert all(SECRET not in json.dumps(body) for body in asked[2:])


def test_52_made_ids_are_nine_letters_or_digits(project: Path) -> None:
    bodies = [called(cell("1"), cell("2")), good("Done.")]
    with app_at(project, bodies) as (app, asked):
        app.get_session().send_message("go")
    ids = [call["id"] for m in asked[1]["messages"] for call in m.get("tool_calls", ())]
    assert ids
    assert all(len(id_) == 9 and id_.isalnum() and id_.isascii() for id_ in ids)


@pytest.mark.long
def test_equal_chats_of_two_sessions_have_equal_prompts(project: Path) -> None:
    bodies = [signed("6 * 7", "8 * 9"), good("Done."), good("Yes.")]
    with app_at(project, [*bodies, *bodies]) as (app, asked):
        for _ in range(2):
            session = app.get_session()
            session.send_message("go")
            session.send_message("sure?")
    assert [body["messages"] for body in asked[:3]] == [body["messages"] for body in asked[3:]]


def test_18_another_name_of_the_tool_runs_the_cell(kept_sessions: KeptSessions) -> None:
    names = ("python", "functions.run_python", "execute_code")
    named = list(enumerate(names, 7))
    bodies = [(called((name, {"code": f"6 * {n}"})), good(f"{n}.")) for n, name in named]
    session, calls = going_on(kept_sessions, *[body for pair in bodies for body in pair])
    for n, _ in named:
        assert session.send_message("go").post_list[-1].message == f"{n}."
        assert str(6 * n) in results(calls[-1].body)[-1]
        (call,) = calls[-1].body["messages"][-2]["tool_calls"]
        assert call["function"]["name"] == "run_python"


def test_16_a_call_without_a_name_is_corrected_as_text(kept_sessions: KeptSessions) -> None:
    nameless = [piece('{"code": "1"}', index=0, id="a"), *called()]
    session, calls = going_on(kept_sessions, nameless, good("Then not."))
    assert session.send_message("go").post_list[-1].message == "Then not."
    assert "tool_calls" not in calls[1].body["messages"][-2]
    assert "There is no tool ''" in calls[1].body["messages"][-1]["content"]


def test_3_text_alone_is_the_answer_and_is_not_corrected(kept_sessions: KeptSessions) -> None:
    session, calls = going_on(kept_sessions, good("It is ", "42."))
    round_ = session.send_message("go")
    assert [post.message for post in round_.post_list[1:]] == ["It is 42."]
    assert len(calls) == 1


def test_91_both_branches_of_a_fork_go_on_with_a_valid_history(project: Path) -> None:
    bodies = [signed("a = 1", "b = 2"), good("Done."), signed("c = 3"), good("One."), good("Two.")]
    with app_at(project, bodies) as (app, asked):
        session = app.get_session()
        session.send_message("go")
        first, name = session.branch, session.fork("side")
        session.checkout(first)
        session.send_message("on the first")
        session.checkout(name)
        session.send_message("on the second")
    for body in asked[1:]:
        check_pairs(body["messages"])
        assert SECRET in json.dumps(body)
    assert "c = 3" not in json.dumps(asked[-1])


def test_a_record_is_shown_nowhere(project: Path, tmp_path: Path) -> None:
    listener = Listener()
    with app_at(project, [signed("6 * 7"), good("It is 42.")]) as (app, _):
        session = app.get_session()
        round_ = session.send_message("go", listener)
        assert SECRET in json.dumps(round_.to_dict())
        for ending in ("ipynb", "py", "md"):
            file = tmp_path / f"out.{ending}"
            export([round_], file, title="t")
            assert SECRET not in file.read_text()
        thin, full = (tmp_path / name for name in ("thin", "full"))
        for folder in (thin, full):
            path = session.memory.save_experience(folder, thin_mode=folder == thin)
            assert SECRET not in path.read_text()
        assert SECRET not in json.dumps(round_.shown_dict())
    kinds = {event.extra.get("type") for event in listener.events}
    assert AttachmentType.reply_record not in kinds
    assert SECRET not in "".join(event.msg for event in listener.events)


def test_a_masked_copy_of_a_memory_has_no_record_and_a_private_one_has_it(
    signed_project: Path, tmp_path: Path
) -> None:
    with BranchedMemory(memory_file(signed_project)) as store:
        store.export(tmp_path / "masked.jsonl")
        store.export(tmp_path / "private.jsonl", is_private=True)
    assert "reply_record" not in (tmp_path / "masked.jsonl").read_text()
    assert SECRET in (tmp_path / "private.jsonl").read_text()
    for name in ("masked", "private"):
        with MemoryManager(tmp_path / f"{name}.sqlite") as other:
            other.import_(tmp_path / f"{name}.jsonl")


def test_an_earlier_version_says_that_the_file_is_newer(
    signed_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "VERSION", schema.VERSION - 1)
    with app_at(signed_project, []) as (app, _), pytest.raises(StoreTooNew, match="newer version"):
        app.resume_session()


def test_66_after_a_stop_in_the_middle_of_arguments_the_next_question_works(
    project: Path,
) -> None:
    def endless(call: Call) -> None:
        call.start()
        call.send(piece('{"intent": "look", "code": "x = ', "run_python", index=0, id="a"))
        call.stall()

    class Stops(Listener):
        def handle(self, event: Any) -> None:
            kind = event.extra.get("type")
            if event.t is PostEventType.post_attachment_update and kind is not None:
                session.interrupt()

    bodies = [endless, called(cell("6 * 7")), good("It is 42.")]
    with app_at(project, bodies) as (app, asked):
        session = app.get_session()
        states: list[str] = []
        thread = threading.Thread(
            target=lambda: states.append(session.send_message("go", Stops()).state)
        )
        thread.start()
        thread.join(PATIENCE_S)
        assert states == ["failed"]
        assert session.send_message("again").post_list[-1].message == "It is 42."
    for body in asked:
        check_pairs(body["messages"])


def delete_reports(project: Path) -> None:
    """Delete the outcomes of cells from the file of a session."""
    with closing(sqlite3.connect(memory_file(project))) as connection:
        connection.execute("DELETE FROM posts WHERE body LIKE '%execution_status%'")
        connection.commit()


def test_89_a_call_whose_result_is_lost_may_have_run(signed_project: Path) -> None:
    delete_reports(signed_project)
    with app_at(signed_project, [good("Then not.")]) as (app, asked):
        assert app.resume_session().send_message("and?").state == "finished"
    check_pairs(asked[0]["messages"])
    assert results(asked[0])[-1] == NOT_ENDED
    assert len(asked) == 1


KILLED = """
import os, signal, sys
from taskweaver.app.app import TaskWeaverApp

class Kill:
    def handle(self, event):
        if event.t.value == "post_start" and event.extra.get("role") == "CodeInterpreter":
            os.kill(os.getpid(), signal.SIGKILL)

keys = {"llm.api_type": "openai", "llm.api_base": sys.argv[2], "llm.model": "m",
        "llm.api_key": "k", "llm.max_retries": 0}
with TaskWeaverApp(sys.argv[1], config=keys) as app:
    app.get_session().send_message("go", Kill())
"""


@pytest.mark.long
def test_89_a_chat_killed_between_a_call_and_its_result_goes_on(project: Path) -> None:
    with serving(lambda call: call.stream(signed("open('ran', 'w')", "2"))) as endpoint:
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(project), endpoint.url],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == -9, done.stderr
    with app_at(project, [called(cell("1 + 1")), good("It is 2.")]) as (app, asked):
        session = app.resume_session()
        assert session.memory.conversation.rounds[0].state == "failed"
        assert session.send_message("and now?").post_list[-1].message == "It is 2."
    assert len(asked) == 2
    for body in asked:
        check_pairs(body["messages"])
        begun, waiting = results(body)[:2]
        assert begun == NOT_ENDED
        assert waiting.startswith("Interrupted, not run.")
        assert waiting.endswith("its request has no answer.)")
        assert "open('ran', 'w')" in json.dumps(body)


def test_92_a_session_of_the_first_release_goes_on_in_the_form_in_force(project: Path) -> None:
    script = Script([planner_reply("User", "hello"), planner_reply("User", "again")])
    with TaskWeaverApp(project, model=script) as app:
        session = app.get_session()
        session.send_message("hi")
        session.send_message("hi again")
    with closing(sqlite3.connect(memory_file(project))) as connection:
        connection.execute("PRAGMA user_version = 4")
    with app_at(project, [called(cell("6 * 7")), good("It is 42.")]) as (app, asked):
        round_ = app.resume_session().send_message("compute")
    assert round_.post_list[-1].message == "It is 42."
    for body in asked:
        check_pairs(body["messages"])
    assert [m["content"] for m in asked[0]["messages"] if m["role"] == "assistant"][-2:] == [
        "hello", "again",
    ]  # fmt: skip


@pytest.mark.long
def test_24_after_an_empty_reply_the_model_is_asked_again(project: Path) -> None:
    with app_at(project, [called(cell("6 * 7")), good(""), good("It is 42.")]) as (app, _):
        assert app.get_session().send_message("go").post_list[-1].message == "It is 42."


@pytest.mark.long
def test_24_where_all_replies_are_empty_the_last_outcome_is_reported(project: Path) -> None:
    with app_at(project, [called(cell("6 * 7")), *[good("")] * 9]) as (app, asked):
        round_ = app.get_session().send_message("go")
    assert round_.state == "finished"
    assert "42" in round_.post_list[-1].message
    assert not round_.is_answered
    assert len(asked) < 6


def test_13_14_broken_arguments_are_corrected_as_text(kept_sessions: KeptSessions) -> None:
    bodies = [
        body
        for finish in ("length", "stop")
        for body in (
            called(("run_python", '{"code": "x = (1,'), finish=finish),
            called(cell("6 * 7")),
            good(f"It is 42, {finish}."),
        )
    ]
    session, calls = going_on(kept_sessions, *bodies)
    for finish in ("length", "stop"):
        assert session.send_message("go").post_list[-1].message == f"It is 42, {finish}."
    asked = [call.body for call in calls]
    for body in asked:
        check_pairs(body["messages"])
    for corrected in (asked[1], asked[4]):
        assert all("tool_calls" not in message for message in corrected["messages"][-2:])


def test_27_a_plain_answer_where_tools_are_ignored_lowers_nothing(project: Path) -> None:
    bodies = [good(f"Answer {n}.") for n in range(4)]
    with app_at(project, bodies) as (app, asked):
        session = app.get_session()
        for n in range(4):
            assert session.send_message("go").post_list[-1].message == f"Answer {n}."
    assert all("tools" in body for body in asked)
    assert len(asked) == 4


def test_26_tools_ignored_twice_are_asked_for_in_fences_from_then_on(project: Path) -> None:
    fence = good("Sure:\n```python\n6 * 7\n```")
    bodies = [fence, good("It is 42."), fence, good("Again."), good("Bye.")]
    with app_at(project, bodies) as (app, asked):
        session = app.get_session()
        for text in ("It is 42.", "Again.", "Bye."):
            assert session.send_message("go").post_list[-1].message == text
    assert ["tools" in body for body in asked] == [True, True, True, False, False]
    assert "response_format" not in asked[-1]
    assert "```python" in asked[-1]["messages"][0]["content"]
