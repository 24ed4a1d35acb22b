"""A run is a session: its nodes are heard and read, and a chat on one is a fork of its branch."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from search_lab import ONE, Climber, lab, opened, search
from support import Listener

from taskweaver.app.app import TaskWeaverApp
from taskweaver.session.errors import SessionError
from taskweaver.session.session import Session
from taskweaver.session.storage.event_log import read_events
from taskweaver.session.storage.layout import RUN
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.service import session_on_node
from tests.treesearch.execution.test_search_scripts import RESULT, SINGLE, scripts

KEYS = SINGLE | {"num_seeds": 0}


def model() -> Climber:
    """A model whose second script goes on with the variables of the first."""
    draft = "data = list(range(5))\nopen('working/kept', 'w').write('n1')\n"
    child = "data.append(90)\n"
    ends = RESULT % "sum(data)"
    return scripts({"draft": draft + ends, "hyperparam": child + ends})


def chat_on(app: TaskWeaverApp, node: str) -> Session:
    """Open a chat on a node of the run, as the command does."""
    return session_on_node(app, f"run/{node}")[0]


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """A project with a finished run of two scripts."""
    search(lab(tmp_path), model(), name="run", **KEYS)
    return tmp_path / "lab"


def test_a_node_is_forked_with_its_variables_files_and_conversation(single: Path) -> None:
    with TaskWeaverApp(single) as app:
        session = chat_on(app, "n0001")
        assert (session.session_id, session.branch) == ("run", "n0001-chat")
        assert [branch.name for branch in session.branches()] == ["root", "n0001", "n0001-chat"]
        assert len(session.memory.conversation.rounds) == 1
        assert session.execution_cwd == single / "experiments/run" / RUN.working_folder(
            "n0001-chat"
        )
        assert (session.execution_cwd / "working/kept").read_text() == "n1"
        answer = session.run_code("data.append(1); print(sum(data))")
        assert "11" in answer.post_list[-1].message
        with pytest.raises(SessionError, match="belongs to the search"):
            session.at("n0002").run_code("data.clear()")
        with pytest.raises(SessionError, match="name of nodes"):
            session.fork("n0009")
        child = session.at("n0002").fork("other")
        assert "100" in session.at(child).run_code("print(sum(data))").post_list[-1].message
    with TaskWeaverApp(single) as app:
        session = chat_on(app, "n0001-chat")
        assert session.branch == "n0001-chat"
        assert "11" in session.run_code("print(sum(data))").post_list[-1].message


def test_listeners_hear_the_rounds_of_nodes_as_those_of_a_chat(tmp_path: Path) -> None:
    project, listener = lab(tmp_path), Listener()
    with opened(project, Climber(), **ONE) as made:
        made.event_emitter.register(listener)
        made.run(lambda _: None)
    assert {event.branch for event in listener.events} == {"n0001"}
    kinds = [event.t.value for event in listener.events]
    assert (kinds[0], kinds[-1]) == ("round_start", "round_end")
    told = {"post_send_to_update", "post_status_update"}
    heard = [event.msg or event.extra["role"] for event in listener.events if event.t.value in told]
    assert heard == ["proposal", "CodeInterpreter", "download", "coding", "compile", "run",
                     "Planner", "User"]  # fmt: skip
    with TaskWeaverApp(project) as app:
        session, _ = session_on_node(app, "run/n0001")
        posts = session.memory.conversation.rounds[0].post_list
    heard_of = dict.fromkeys(event.post_id for event in listener.events if event.post_id)
    assert [post.id for post in posts[1:]] == list(heard_of)


def test_a_run_goes_on_beside_its_chats(tmp_path: Path) -> None:
    project = lab(tmp_path)
    search(project, model(), name="run", steps=1, **KEYS)
    with TaskWeaverApp(project) as app:
        chat_on(app, "n0001").run_code("data.clear()")
    made = search(project, model(), name="run", resume=True, steps=2)
    assert [node.value for node in made.state.journal.nodes] == [10.0, 100.0]
    with TaskWeaverApp(project) as app:
        names = {branch.name for branch in app.resume_session("run").branches()}
    assert names == {"root", "n0001", "n0001-chat"}


def test_nodes_are_continued_beside_other_work_without_files_and_not_without_memory(
    single: Path,
) -> None:
    shutil.rmtree(single / "experiments/run/workspaces/branches/n0002")
    with TaskWeaverApp(single) as app, TaskWeaverApp(single) as other:
        assert list(chat_on(app, "n0002").execution_cwd.iterdir()) == []
        session = chat_on(other, "n0001")  # the run is at work: in a session of its own
        assert session.session_id != "run"
        assert len(session.memory.conversation.rounds) == 1
    with TaskWeaverApp(single) as app:
        with pytest.raises(SearchError, match="no node 'n0009'; it has n0001, n0002"):
            session_on_node(app, "run/n0009")
        (single / "experiments/run/memory/memory.sqlite").unlink()
        with pytest.raises(SearchError, match="memory of the run is gone"):
            session_on_node(app, "run/n0001")


def events(made: Search) -> list[dict[str, Any]]:
    """Return the events of the first node."""
    found, _ = read_events(made.places.logs, "n0001", 0, 1_000)
    return [event.fields for event in found]


def texts(found: list[dict[str, Any]], kind: str) -> list[str]:
    return [event["msg"] for event in found if event["type"] == kind]


def test_a_script_is_written_printed_and_measured_in_sight(tmp_path: Path) -> None:
    code = 'print("half way")\nopen("working/result.json", "w").write(\'{"metric": 1}\')\n'
    reply = f"a script\n\n```file experiment.py\n{code}```\n"
    made = search(lab(tmp_path), lambda _: reply, calls="two", phase_mode="single", **ONE)
    assert made.state.journal["n0001"].value == 1
    found = events(made)
    assert [found[0]["type"], found[-1]["type"]] == ["round_start", "round_end"]
    assert texts(found, "post_execution_output") == ["half way\n"]
    assert texts(found, "post_status_update") == ["proposal", "run"]
    first, second, *_, last = texts(found, "post_message_update")
    assert (first, second, last[:10]) == (reply, "a script", "n0001 ok: ")


def test_replies_that_cannot_be_used_and_the_failure_are_shown(tmp_path: Path) -> None:
    """A run without a memory shows them as well."""
    made = search(lab(tmp_path), lambda _: "no program", calls="two", memory=False, **ONE)
    found = events(made)
    drafts = texts(found, "post_message_update")
    assert drafts[:2] == ["no program", "no program"]
    assert len(texts(found, "post_message_restart")) == len(drafts) - 2
    assert "No reply to draft could be used" in texts(found, "post_error")[0]
    assert drafts[-1].startswith("n0001 buggy: ")


def test_a_round_that_is_stopped_says_so(tmp_path: Path) -> None:
    def stopping(_: Any) -> str:
        made.stop()
        return ""

    with opened(lab(tmp_path), stopping, **ONE) as made:
        made.run(lambda _: None)
    assert [event["type"] for event in events(made)[-2:]] == ["round_error", "round_end"]
