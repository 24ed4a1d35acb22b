"""Sessions that branch: conversation, variables and files go apart, and can be told apart.

Branches start from the state of the live kernel, or say why they do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from rounds import run
from support import NO_SNAPSHOTS, NO_STATES

from taskweaver.app.app import TaskWeaverApp
from taskweaver.session.errors import SessionClosed, SessionError
from taskweaver.session.session import Session

KEPT: dict[str, Any] = {"session.state_limit_mb": 512, **NO_SNAPSHOTS}
"""Settings of a session that goes back to states on disk."""
STAMP = "import time; stamp = time.time_ns(); stamp"
"""Differs each time it runs, so that a state that was rebuilt is told from one that was kept."""


def opened(project: Path, **config: object) -> TaskWeaverApp:
    return TaskWeaverApp(project, model=lambda _: "", config=config)


@pytest.fixture
def session(project: Path) -> Iterator[Session]:
    """A session that keeps no states of its rounds: the present alone can be forked."""
    with opened(project, **NO_STATES) as app:
        yield app.get_session()


def rounds(session: Session) -> int:
    return len(session.memory.conversation.rounds)


def on_fork(session: Session, name: str, at_round: int | None = None) -> Session:
    session.fork(name, at_round=at_round)
    session.checkout(name)
    return session


def test_a_branch_beyond_the_limit_of_processes_says_so_at_once(project: Path) -> None:
    limit = {"execution.process_limit": 40}
    with opened(project, **NO_STATES, **limit) as app, app.get_session() as session:
        run(session, "x = 6 * 7")
        why, name = "", ""
        while not why and len(session.branches()) < 8:
            name = session.fork()
            why = session.at(name).kernel.why_restored
        assert "execution.process_limit allows 40" in why
        refused = session.at(name).run_code("1")
        assert "execution.process_limit allows 40" in str(refused.reason)
        assert run(session, "x") == "42", "the others go on"


def test_both_sides_of_a_fork_live_on_apart_and_are_compared(session: Session) -> None:
    run(session, "x = 1; open('f.txt', 'w').write('one')")
    assert (session.fork("idea"), session.branch) == ("idea", "main")
    run(session, "x += 10; y = 5; open('new.txt', 'w').write('12345')")
    session.checkout("idea")
    assert session.restoring() is None
    assert run(session, "x += 100; open('f.txt', 'w').write('two'); x") == "101"
    session.checkout("main")
    assert run(session, "x") == "11"
    assert (session.execution_cwd / "f.txt").read_text() == "one"
    assert [(b.name, b.parent, b.rounds, b.is_current) for b in session.branches()] == [
        ("main", None, 3, True), ("idea", "main", 2, False)
    ]  # fmt: skip
    found = session.diff("main", "idea")
    assert [len(side) for side in found.rounds] == [2, 1]
    assert found.variables == {"x": ("11", "101"), "y": ("5", None)}
    assert found.files["new.txt"] == ("5 bytes", None)
    said = str(found).splitlines()
    assert "variable x: 11  |  101" in said
    assert "file new.txt: 5 bytes  |  -" in said
    assert "Difference(" not in str(found)
    assert str(session.diff("idea", "idea")) == "They are the same."


def test_a_fork_at_an_earlier_round_and_undo(project: Path) -> None:
    with opened(project, **KEPT) as app:
        session = app.get_session()
        for n in range(1, 4):
            run(session, f"x = {n}")
        assert run(on_fork(session, "early", 1), "x") == "1"
        assert rounds(session) == 2
        session.checkout("main")
        assert session.undo() == "branch-1"
        assert rounds(session) == 2
        assert run(session, "x += 5; x") == "7"
        session.checkout("main")
        assert rounds(session) == 3
        assert rounds(on_fork(session, "start", 0)) == 0
        with pytest.raises(SessionError, match="no round to undo"):
            session.undo()
        session.checkout("branch-1")
    with opened(project, **KEPT) as app:
        session = app.resume_session()
        assert session.branch == "branch-1"
        assert run(session, "x") == "7"
        session.checkout("main")
        assert run(session, "x") == "3"


def test_a_branch_that_is_renamed_keeps_its_name_and_its_work(session: Session) -> None:
    run(session, "x = 1")
    session.fork("idea")
    session.at("main").rename("base")
    session.at("idea").rename("Ohne Ausreißer?")
    assert [(b.name, b.title) for b in session.branches()] == [
        ("main", "base"), ("idea", "Ohne Ausreißer?")
    ]  # fmt: skip
    session.checkout("idea")
    assert run(session, "x") == "1"
    for taken in ("base", "main", " ", "two\nlines"):
        with pytest.raises(SessionError, match=r"is taken|one line"):
            session.at("idea").rename(taken)
    for name in ("base", "a b"):
        with pytest.raises(SessionError, match=r"is taken|no spaces"):
            session.fork(name)
    assert session.at("main").fork(title="Mit Ausreißern!") == "Mit-Ausrei-ern"
    assert session.branches()[-1].title == "Mit Ausreißern!"
    assert session._stored.new_name("base", is_similar=True) == "base-1"


def test_what_cannot_be_is_refused(session: Session) -> None:
    for name in ("main", "a b", "../x", "x" * 65, "\u00e4", ".", "a/b"):
        with pytest.raises(SessionError):
            session.fork(name)
    assert len(session.branches()) == 1
    for call in (
        lambda: session.checkout("nobody"),
        lambda: session.at("nobody"),
        lambda: session.diff("main", "nobody"),
        lambda: session.merge("nobody"),
        lambda: session.fork("x", at_round=2),
        lambda: session.fork("x", at_round=-1),
    ):
        with pytest.raises(SessionError):
            call()
    here = session.at("main")
    session.stop()
    late = (lambda: session.fork("late"), session.branches, lambda: session.core_memory("main"))
    for act in (*late, lambda: here.send_message("late"), session.release):
        with pytest.raises(SessionClosed):
            act()


def test_a_fork_that_was_cut_off_can_be_made_again(session: Session) -> None:
    """A crash between the copy and the row leaves a folder, and no branch."""
    left = session.workspace / "branches" / "idea" / "cwd"
    left.mkdir(parents=True)
    (left / "rest.txt").write_text("x")
    on_fork(session, "idea")
    assert not (session.execution_cwd / "rest.txt").exists()


def test_a_fork_has_the_very_objects_or_says_why_not(project: Path) -> None:
    with opened(project) as app:
        session = app.get_session()
        stamp = run(session, STAMP)
        assert run(on_fork(session, "idea"), "stamp") == stamp
        assert (session.restoring(), session.why_restored) == (None, "")
        nothing = run(on_fork(session, "start", 0), "'stamp' in dir()")
        assert nothing == "False", "before any code there is nothing"
        session.checkout("main")
        run(session, "x = 'half'; 1 / 0")
        assert run(on_fork(session, "failed"), "x") == "half", "a failed cell changes the state"
        session.checkout("main")
        run(session, "import threading; e = threading.Event()")
        run(session, "t = threading.Thread(target=e.wait, name='waiter'); t.start()")
        on_fork(session, "stored")
        assert "the thread 'waiter' is running" in session.why_restored
        assert "t (threading.Thread)" in session.restore_notice()[0]
        assert run(session, "stamp") == stamp
        session.checkout("main")
        run(session, "e.set(); t.join()")
        assert run(on_fork(session, "again"), "stamp") == stamp
        assert session.why_restored == ""


def test_the_oldest_states_go_when_the_memory_is_used_up(project: Path) -> None:
    with opened(project, **{"session.snapshot_memory_mb": 40}) as app:
        session = app.get_session()
        for n in range(5):
            run(session, f"a = bytearray([{n}]) * (10 << 20); stamp = {n}; stamp")
        count, extra_bytes = session.kept_states
        assert 2 <= count < 5
        assert extra_bytes <= 40 << 20
        on_fork(session, "late", 4)
        assert session.why_restored == ""
        assert run(session, "stamp") == "3"
        session.checkout("main")
        on_fork(session, "early", 1)
        assert "No snapshot is kept" in session.why_restored
        assert run(session, "stamp") == "0"


def test_kernels_of_a_warm_project_are_alike_and_are_warmed_anew_for_a_new_library(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "more-packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(packages)
    with opened(project, **{"execution.zygote": True, **NO_STATES}) as app:
        first, second = app.get_session(), app.get_session()
        draws = [run(session, "import random; random.random()") for session in (first, second)]
        assert draws[0] != draws[1]
        run(first, "import os; os.environ['LEFT'] = 'x'; secret = 1; import this")
        assert (
            run(second, "import os; os.environ.get('LEFT'), 'secret' in dir()") == "(None, False)"
        )
        before = warm()
        assert run(app.get_session(), "1 + 2") == "3"
        assert warm() == before
        (packages / "installed.py").write_text("")
        assert run(app.get_session(), "20 + 1") == "21"
        assert warm() != before


def warm() -> list[int]:
    children = [p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE]
    return [child.pid for child in children if "warm" in child.cmdline()]
