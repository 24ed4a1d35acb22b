"""Applications and sessions in threads: opened, interrupted while a kernel starts, released."""

from __future__ import annotations

import ast
import builtins
import gc
import threading
import weakref
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sizes import some
from support import Listener, Script, code_reply, has_bwrap, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.utils import parsing

pytestmark = pytest.mark.usefixtures("no_states")

VERIFIED = {"llm.api_type": "offline", "code_interpreter.code_verification_on": True}


def test_a_chat_builds_syntax_trees_under_the_lock_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of libraries in this process as well; see `taskweaver.utils.parsing`."""
    plain, lock, guarded = builtins.compile, threading.RLock(), list[bool]()

    def compiled(source: Any, name: Any, mode: str, flags: int = 0, *more: Any, **keys: Any) -> Any:
        if flags & ast.PyCF_ONLY_AST:
            guarded.append(lock._is_owned())  # type: ignore[attr-defined]
        return plain(source, name, mode, flags, *more, **keys)

    monkeypatch.setattr(parsing, "_CONVERSIONS", lock)  # on every version of Python
    with TaskWeaverApp(make_project(tmp_path / "project", VERIFIED)) as app:
        session = app.get_session()
        monkeypatch.setattr(builtins, "compile", compiled)
        assert session.send_message("mean of Count per Region in tiny.csv").state == "finished"
        session.run_code("x = 1")
        monkeypatch.setattr(builtins, "compile", plain)
    assert guarded
    assert all(guarded)


def test_sessions_that_were_stopped_are_released(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", {"llm.api_type": "offline"}, has_table=False)
    kept: list[weakref.ref[Any]] = []
    with TaskWeaverApp(project) as app:
        for number in range(3):
            session = app.get_session()
            if number == 0:
                session.run_code("x = 1")
                session.fork("b")
                session.checkout("b")
                session.run_code("x")
            branch = session.at(session.branch)
            kept += [
                weakref.ref(session),
                weakref.ref(branch.kernel.get()),
                weakref.ref(branch.memory),
            ]
            session.stop()
        del session, branch
        gc.collect()
        assert [reference() for reference in kept if reference() is not None] == []
        assert app.session_manager.session_store.list_all_session_ids() == []


@pytest.mark.parametrize(
    ("sandbox", "after_s"),
    some([("none", 0.3), ("bwrap", 0.0), *product(("none", "bwrap"), (0.0, 0.3, 0.1, 0.6))], 2),
)
def test_a_round_is_interrupted_while_its_kernel_starts(
    tmp_path: Path, sandbox: str, after_s: float
) -> None:
    """Its cell would run for ten minutes: it ends at once, or does not begin."""
    if sandbox == "bwrap" and not has_bwrap():
        pytest.skip("bubblewrap does not work here")
    project = make_project(tmp_path / "project", {"execution.sandbox": sandbox}, has_table=False)
    replies = [
        planner_reply("CodeInterpreter", "work"),
        code_reply("import time\ntime.sleep(600)"),
        planner_reply("User", "fine"),
    ]
    listener = Listener()
    with TaskWeaverApp(project, model=Script(replies)) as app:
        session = app.get_session()

        class Interrupts:
            def handle(self, event: Any) -> None:
                listener.handle(event)
                if event.t is RoundEventType.round_start:
                    timer.start()

        timer = threading.Timer(after_s, session.interrupt)
        assert session.send_message("go", Interrupts()).state == "failed"
        timer.join()
        assert listener.messages(RoundEventType.round_error) == ["interrupted"]
        assert session.run_code("1 + 1").state == "finished"
