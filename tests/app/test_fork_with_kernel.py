"""Branches of a session start from the state of the live kernel, or say why they do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support import NO_STATES, code_reply, make_project
from warm_kernels import lean_templates

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.terminal.text import section
from taskweaver.session.session import Session

ALONE: dict[str, Any] = {"session.roles": ["code_interpreter"]}
STAMP = "import time; stamp = time.time_ns(); stamp"
"""Differs each time it runs, so that a state that was rebuilt is told from one that was kept."""


def write(messages: object) -> str:
    """Write what was asked: the message is the cell."""
    text = str(messages[-1]["content"])  # type: ignore[index]
    return code_reply(text.rpartition("run: ")[2].split("\n")[0])


def opened(folder: Path, **config: object) -> TaskWeaverApp:
    return TaskWeaverApp(
        make_project(folder / "project", has_table=False), model=write, config=ALONE | config
    )


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path) as app:
        yield app.get_session()


def run(session: Session, code: str) -> str:
    round_ = session.send_message(f"run: {code}")
    assert round_.state == "finished"
    return section(round_.post_list[-1].message, "Result")


def test_a_fork_has_the_very_objects_and_not_new_ones(session: Session) -> None:
    stamp = run(session, STAMP)
    session.fork("idea")
    session.checkout("idea")
    assert (session.restoring(), session.why_restored) == (None, "")
    assert run(session, "stamp") == stamp
    session.fork("start", at_round=0)
    session.checkout("start")
    assert run(session, "'stamp' in dir()") == "False", "before any code there is nothing"
    session.checkout("main")
    assert session.send_message("run: x = 'half'; 1 / 0").state == "finished"
    session.fork("failed")
    session.checkout("failed")
    assert "half" in run(session, "x"), "a cell that failed changes the state too"


def test_the_kernel_of_a_fork_counts_before_the_branch_is_used(session: Session) -> None:
    session.fork("empty")
    assert session.at("empty").kernel_state == "not started", "no code ran"
    run(session, "x = 1")
    session.fork("idea")
    assert session.at("idea").kernel_state == "ready"
    session.release()
    assert session.at("idea").kernel_state == "not started"
    session.checkout("idea")
    assert run(session, "x") == "1", "from disk"


@pytest.mark.long
def test_going_back_finds_the_state_of_each_round(session: Session) -> None:
    stamps = [run(session, STAMP) for _ in range(3)]
    session.undo()
    assert session.restoring() is None
    assert run(session, "stamp") == stamps[1]
    session.checkout("main")
    session.fork("first", at_round=1)
    session.checkout("first")
    assert run(session, "stamp") == stamps[0]
    session.checkout("main")
    assert run(session, "stamp") == stamps[2]


def test_what_cannot_be_forked_is_restored_and_the_reason_told(session: Session) -> None:
    stamp = run(session, STAMP)
    run(session, "import threading; e = threading.Event()")
    run(session, "t = threading.Thread(target=e.wait, name='waiter'); t.start()")
    session.fork("idea")
    assert session.why_restored == ""
    session.checkout("idea")
    assert "the thread 'waiter' is running" in session.why_restored
    assert "t (threading.Thread)" in session.restore_notice()[0]
    assert run(session, "stamp") == stamp
    session.checkout("main")
    run(session, "e.set(); t.join()")
    session.fork("again")
    session.checkout("again")
    assert session.why_restored == ""
    assert run(session, "stamp") == stamp


@pytest.mark.long
def test_without_memory_for_states_only_the_present_is_forked(tmp_path: Path) -> None:
    with opened(tmp_path, **{"session.snapshot_memory_mb": 0}) as app:
        session = app.get_session()
        stamps = [run(session, STAMP) for _ in range(2)]
        assert session.kept_states == (0, 0)
        session.fork("now")
        session.undo()
        assert "No snapshot is kept" in session.why_restored
        assert run(session, "stamp") == stamps[0]
        session.checkout("now")
        assert run(session, "stamp") == stamps[1]


def test_the_oldest_states_go_when_the_memory_is_used_up(tmp_path: Path) -> None:
    with opened(tmp_path, **{"session.snapshot_memory_mb": 40}) as app:
        session = app.get_session()
        for n in range(5):
            run(session, f"a = bytearray([{n}]) * (10 << 20); stamp = {n}; stamp")
        count, extra_bytes = session.kept_states
        assert 2 <= count < 5
        assert extra_bytes <= 40 << 20
        session.fork("late", at_round=4)
        session.checkout("late")
        assert session.why_restored == ""
        assert "3" in run(session, "stamp")
        session.checkout("main")
        session.fork("early", at_round=1)
        session.checkout("early")
        assert "No snapshot is kept" in session.why_restored
        assert "0" in run(session, "stamp")


@pytest.mark.long
def test_a_fork_of_a_resumed_session(tmp_path: Path) -> None:
    app = opened(tmp_path)
    with app:
        run(app.get_session(), "x = 41")
    with TaskWeaverApp(app.app_dir, model=write, config=ALONE) as again:
        session = again.resume_session()
        session.fork("before")
        run(session, "stamp = x + 1")
        session.fork("after")
        session.checkout("before")
        assert "41" in run(session, "x")
        assert run(session, "'stamp' in dir()") == "False"
        session.checkout("after")
        assert session.why_restored == ""
        assert "42" in run(session, "stamp")


def test_kernels_of_a_warm_project_are_alike_and_draw_their_own_numbers(tmp_path: Path) -> None:
    with opened(tmp_path, **{"execution.zygote": True, **NO_STATES}) as app:
        first, second = app.get_session(), app.get_session()
        draw = "import sys; float(np.random.rand()) * ('pandas' in sys.modules)"
        results = [run(session, draw) for session in (first, second)]
        assert results[0] != results[1]
        assert "0.0" not in results
        run(first, "secret = 1; import this")
        assert run(second, "'secret' in dir()") == "False"
        run(first, "import os; os.environ['LEFT'] = 'x'; pd.options.display.width = 3")
        left = run(app.get_session(), "import os; os.environ.get('LEFT'), pd.options.display.width")
        assert "(None, 300)" in left


@pytest.mark.long
@pytest.mark.usefixtures("cold_kernels")
def test_no_process_is_left_of_a_session_with_branches(tmp_path: Path) -> None:
    before = _descendants()
    with lean_templates(), opened(tmp_path, **{"execution.zygote": True}) as app:
        session = app.get_session()
        run(session, STAMP)
        for _ in range(3):
            session.fork()
        started = [one for one in _descendants() if one not in before]
        assert len(started) >= 6  # the warm one, main, its state, three branches
        session.stop()
        assert len(_running(started)) == 1
    assert _running(started) == []


@pytest.mark.long
@pytest.mark.usefixtures("cold_kernels")
def test_a_warm_process_is_replaced_if_it_was_killed(tmp_path: Path) -> None:
    with lean_templates(), opened(tmp_path, **{"execution.zygote": True}) as app:
        run(app.get_session(), "1")
        (warm,) = map(psutil.Process, _warm())
        warm.kill()
        warm.wait()
        assert "2" in run(app.get_session(), "1 + 1")


@pytest.mark.usefixtures("cold_kernels")
def test_a_warm_process_is_replaced_if_a_library_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "more-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    with lean_templates(), opened(tmp_path, **{"execution.zygote": True, **NO_STATES}) as app:
        assert "2" in run(app.get_session(), "1 + 1")
        before = _warm()
        assert "3" in run(app.get_session(), "1 + 2")
        assert _warm() == before
        (folder / "installed.py").write_text("")
        assert run(app.get_session(), "20 + 1") == "21"
        assert _warm() != before


def _descendants() -> list[psutil.Process]:
    return _running(psutil.Process().children(recursive=True))


def _running(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [
        process
        for process in processes
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    ]


def _warm() -> list[int]:
    children = _running(psutil.Process().children())
    return [child.pid for child in children if "template" in child.cmdline()]
