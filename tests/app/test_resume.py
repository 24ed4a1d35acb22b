"""Sessions on disk: resumed, locked, listed, removed; after a sudden death too."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from support import NO_SNAPSHOTS, Listener, Script, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.branched import StoreUnwritable
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.session.errors import SessionError, SessionInUse
from taskweaver.session.storage.stored_sessions import (
    SessionListing,
    remove_session,
    stored_sessions,
)

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
    project: Path, command_line: CommandLine
) -> None:
    root = project / "workspace" / "sessions"
    with subprocess.Popen(
        [*command_line.script, OPENING, str(project)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        id_, pid = process.stdout.readline().split()
        with TaskWeaverApp(project, model=Script([])) as app:
            with pytest.raises(SessionInUse, match=f"process {pid}"):
                app.resume_session(id_)
            with pytest.raises(SessionInUse, match=id_):
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
    script = Script([planner_reply("User", "x")] * 4)
    with TaskWeaverApp(project, model=script) as app:
        folder = app.session_manager.sessions_folder
        listed = SessionListing(folder)
        assert listed.read() == stored_sessions(folder) == []
        first, second, _ = (app.get_session() for _ in range(3))  # in one nothing is asked
        for session in (first, second):
            session.send_message("first words")
        found = listed.read()
        assert found == stored_sessions(folder)
        assert [(item.session_id, item.rounds, item.is_open) for item in found] == [
            (second.session_id, 1, True), (first.session_id, 1, True)
        ]  # fmt: skip
        first.send_message("second words")
        second.stop()
        found = listed.read()
        assert found == stored_sessions(folder)
        facts = {item.session_id: (item.rounds, item.is_open) for item in found}
        assert facts == {first.session_id: (2, True), second.session_id: (1, False)}
        remove_session(folder, second.session_id)
        assert [item.session_id for item in listed.read()] == [first.session_id]
        for wrong in (second.session_id, "../project", "", "."):
            with pytest.raises(SessionError):
                remove_session(folder, wrong)
        with pytest.raises(SessionError, match="no session"):
            app.resume_session(second.session_id)
    file = first.workspace / "memory.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        for table in ("rounds", "posts", "round_ends"):  # a time that none can be
            connection.execute(f"UPDATE {table} SET created_at = ?", (9e999,))
    assert [item.problem for item in stored_sessions(folder)] == [""]


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
    with TaskWeaverApp(project, model=Script([]), config=NO_SNAPSHOTS) as app:
        app.get_session().run_code("import os\nos.environ['DB_PASSWORD'] = 'swordfish-1'\nx = 1")
    with TaskWeaverApp(project, model=Script([]), config=NO_SNAPSHOTS) as app:
        session = app.resume_session()
        (line,) = session.restore_notice()  # and no offer of /rebuild, which would not help
        assert "os.environ['DB_PASSWORD']" in line
        assert "set it again" in line
        with pytest.raises(SessionError, match="nothing to rebuild"):
            session.rebuild()
