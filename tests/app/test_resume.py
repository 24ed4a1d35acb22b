"""Sessions on disk: resumed, locked, listed, removed; after a sudden death too."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest
from sizes import some
from support import NO_SNAPSHOTS, Listener, Script, code_reply, make_project, planner_reply
from warm_commands import WarmCommands

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.branched import StoreUnwritable
from taskweaver.module.events import RoundEventType
from taskweaver.session.errors import SessionError, SessionInUse
from taskweaver.session.storage.stored_sessions import (
    SessionListing,
    remove_session,
    stored_sessions,
)

ALONE = {"session.roles": ["code_interpreter"], **NO_SNAPSHOTS}


def codes(*cells: str) -> Script:
    return Script(code_reply(cell) for cell in cells)


def first_session(project: Path, *cells: str) -> str:
    with TaskWeaverApp(project, model=codes(*cells), config=ALONE) as app:
        session = app.get_session()
        for number, _ in enumerate(cells):
            session.send_message(f"question {number} ☃ \0")
        return session.session_id


def talk(project: Path, rounds: int = 1) -> str:
    """Return the id of a session in which no code ran."""
    with TaskWeaverApp(project, model=Script([planner_reply("User", "hi")] * rounds)) as app:
        session = app.get_session()
        for number in range(rounds):
            session.send_message(f"question {number}")
        return session.session_id


OPENING = """
import os, sys
from support import planner_reply
from taskweaver.app.app import TaskWeaverApp

app = TaskWeaverApp(sys.argv[1], model=lambda _: planner_reply("User", "hi"))
sessions = sorted([app.get_session(), app.get_session()], key=lambda one: one.session_id)
for session in reversed(sessions):  # they are listed, and recovered, in the order of their ids
    session.send_message("hello")
print(session.session_id, os.getpid(), flush=True)
sys.stdin.read()
"""


def test_sessions_are_open_in_one_process_and_the_last_used_is_resumed_after_its_kill(
    project: Path, warm_commands: WarmCommands
) -> None:
    root = project / "workspace" / "sessions"
    with subprocess.Popen(
        [*warm_commands.script, OPENING, str(project)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        id_, pid = process.stdout.readline().split()
        with TaskWeaverApp(project, model=Script([])) as app:
            with pytest.raises(SessionInUse, match=f"process {pid}"):
                app.resume_session(id_)
            with pytest.raises(SessionInUse, match=f"newest session, {id_}, is open"):
                app.resume_session()
        assert stored_sessions(root)[0].is_open
        with pytest.raises(SessionInUse):
            remove_session(root, id_)
        os.kill(int(pid), signal.SIGKILL)
    for _ in range(2):
        assert stored_sessions(root)[0].session_id == id_
    with TaskWeaverApp(project, model=Script([])) as app:
        assert app.resume_session(id_).session_id == id_
        with pytest.raises(SessionInUse):
            app.resume_session(id_)


def test_sessions_are_listed_newest_first_and_removed(project: Path) -> None:
    root = project / "workspace" / "sessions"
    assert stored_sessions(root) == []
    first = talk(project)
    second = talk(project, rounds=2)
    with TaskWeaverApp(project, model=Script([])) as app:
        app.get_session()  # nothing was asked in it
    assert [(item.session_id, item.rounds) for item in stored_sessions(root)] == [
        (second, 2), (first, 1)
    ]  # fmt: skip
    remove_session(root, second)
    assert [item.session_id for item in stored_sessions(root)] == [first]
    for wrong in (second, "../project", "", "."):
        with pytest.raises(SessionError):
            remove_session(root, wrong)
    with (
        TaskWeaverApp(project, model=Script([])) as app,
        pytest.raises(SessionError, match="no session"),
    ):
        app.resume_session(second)


@pytest.mark.parametrize("when", some([9e999, 1e300, -9e999], 1))
def test_a_time_that_none_can_be_does_not_keep_sessions_from_being_listed(
    project: Path, when: float
) -> None:
    id_ = talk(project)
    file = project / "workspace" / "sessions" / id_ / "memory.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        for table in ("rounds", "posts", "round_ends"):
            connection.execute(f"UPDATE {table} SET created_at = ?", (when,))
    (found,) = stored_sessions(file.parents[1])
    assert (found.session_id, found.problem) == (id_, "")


def test_a_full_disk_is_told_and_the_session_goes_on_when_there_is_room(project: Path) -> None:
    replies = [planner_reply("User", "x" * 200_000)] * 40 + [planner_reply("User", "room")]
    with TaskWeaverApp(project, model=Script(replies)) as app:
        session = app.get_session()
        session.send_message("before")
        writing = session._stored.store._parts.database._writing
        (pages,) = writing.execute("PRAGMA page_count").fetchone()
        writing.execute(f"PRAGMA max_page_count = {pages + 60}")
        listener, states = Listener(), []
        for number in range(10):
            with contextlib.suppress(StoreUnwritable):  # when not even the end can be written
                states.append(session.send_message(f"question {number}", listener).state)
        assert "Check the disk" in " ".join(listener.messages(RoundEventType.round_error))
        assert "finished" not in states[1:]
        writing.execute("PRAGMA max_page_count = 1000000")
        assert session.send_message("after").state == "finished"
    with TaskWeaverApp(project, model=Script([])) as app:
        rounds = app.resume_session().memory.conversation.rounds
        assert rounds[0].user_query == "before"
        assert rounds[-1].user_query == "after"
        assert all(round_.state in {"finished", "failed"} for round_ in rounds)


def test_a_secret_of_the_environment_is_named_and_cannot_be_rebuilt(project: Path) -> None:
    first_session(project, "import os\nos.environ['DB_PASSWORD'] = 'swordfish-1'\nx = 1")
    with TaskWeaverApp(project, model=codes("x"), config=ALONE) as app:
        session = app.resume_session()
        (line,) = session.restore_notice()  # and no offer of /rebuild, which would not help
        assert "os.environ['DB_PASSWORD']" in line
        assert "set it again" in line
        with pytest.raises(SessionError, match="nothing to rebuild"):
            session.rebuild()


def test_a_list_of_sessions_that_is_read_again_has_what_changed(tmp_path: Path) -> None:
    script = Script([planner_reply("User", "x")] * 4)
    with TaskWeaverApp(make_project(tmp_path / "project", has_table=False), model=script) as app:
        folder = app.session_manager.sessions_folder
        listed = SessionListing(folder)
        assert listed.read() == []
        sessions = [app.get_session() for _ in range(2)]
        for session in sessions:
            session.send_message("first words")
        found = listed.read()
        assert found == stored_sessions(folder)
        assert [(item.rounds, item.is_open) for item in found] == [(1, True)] * 2
        sessions[0].send_message("second words")
        sessions[1].stop()
        found = listed.read()
        assert found == stored_sessions(folder)
        facts = {item.session_id: (item.rounds, item.is_open) for item in found}
        assert facts[sessions[0].session_id] == (2, True)
        assert facts[sessions[1].session_id] == (1, False)
        remove_session(folder, sessions[1].session_id)
        assert [item.session_id for item in listed.read()] == [sessions[0].session_id]
