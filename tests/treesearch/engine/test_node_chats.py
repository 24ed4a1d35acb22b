"""A run is a session: a chat on a node is a fork of its branch."""

from __future__ import annotations

from pathlib import Path

import pytest
from search_lab import Climber, lab, search

from taskweaver.app.app import TaskWeaverApp
from taskweaver.session.errors import SessionError
from taskweaver.session.storage.layout import RUN
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


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """A project with a finished run of two scripts."""
    search(lab(tmp_path), model(), name="run", **KEYS)
    return tmp_path / "lab"


def test_a_node_is_forked_with_its_variables_files_and_conversation(single: Path) -> None:
    with TaskWeaverApp(single) as app:
        session = app.resume_session(session_on_node(app, "run/n0001"))
        assert (session.session_id, session.branch) == ("run", "n0001-chat")
        assert {"root", "n0001", "n0002"} <= {branch.name for branch in session.branches()}
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
        session = app.resume_session(session_on_node(app, "run/n0001-chat"))
        assert session.branch == "n0001-chat"
        assert "11" in session.run_code("print(sum(data))").post_list[-1].message


def test_a_run_goes_on_beside_its_chats(tmp_path: Path) -> None:
    project = lab(tmp_path)
    search(project, model(), name="run", steps=1, **KEYS)
    with TaskWeaverApp(project) as app:
        app.resume_session(session_on_node(app, "run/n0001")).run_code("data.clear()")
    made = search(project, model(), name="run", resume=True, steps=2)
    assert [node.value for node in made.state.journal.nodes] == [10.0, 100.0]
    with TaskWeaverApp(project) as app:
        names = {branch.name for branch in app.resume_session("run").branches()}
    assert names == {"root", "n0001", "n0001-chat", "n0002"}


def test_a_run_at_work_is_continued_in_a_session_of_its_own(single: Path) -> None:
    with TaskWeaverApp(single) as app, TaskWeaverApp(single) as other:
        app.resume_session(session_on_node(app, "run/n0001"))
        session = other.resume_session(session_on_node(other, "run/n0001"))
        assert session.session_id != "run"
        assert len(session.memory.conversation.rounds) == 1


def test_what_cannot_be_continued_is_said(single: Path) -> None:
    with TaskWeaverApp(single) as app:
        with pytest.raises(SearchError, match="no node 'n0009'; it has n0001, n0002"):
            session_on_node(app, "run/n0009")
        (single / "experiments/run/memory/memory.sqlite").unlink()
        with pytest.raises(SearchError, match="memory of the run is gone"):
            session_on_node(app, "run/n0001")
