"""Orders to different roles in one reply: carried out at the same time, reported in order."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fake_endpoint import good
from rounds import app_over
from support import Listener
from tool_replies import called

from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import PostEventType, TaskWeaverEvent

pytestmark = pytest.mark.usefixtures("no_states")

ROLE = """
from roles_that_meet import MEETING
from taskweaver.errors import TaskWeaverError
from taskweaver.ext_role.echo.echo import Echo

class {name}(Echo):
    def reply(self, memory, **kwargs):
        order = memory.get_role_rounds(self.alias)[-1].post_list[-1]
        if "meet" in order.message:
            MEETING.wait(300)
        if "fail" in order.message:
            raise TaskWeaverError("{name} fails on purpose.")
        with self.event_emitter.post(self.alias) as proxy:
            proxy.update_message("{name} did: " + order.message)
            proxy.update_send_to(order.send_from)
            return proxy.end()
"""
KEYS = {"session.roles": ["planner", "one", "two"], "llm.form": "tools"}


@pytest.fixture
def project(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "roles_that_meet.py").write_text("import threading\nMEETING = threading.Barrier(2)")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("one", "two"):
        folder = project / "roles" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(ROLE.replace("{name}", name.title()))
        text = f"alias: {name.title()}\nmodule: {name}.{name}.{name.title()}\nintro: helps\n"
        (folder / f"{name}.role.yaml").write_text(text)
    return project


class Threads(Listener):
    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def handle(self, event: TaskWeaverEvent) -> None:
        super().handle(event)
        self.threads.add(threading.get_ident())


def play(project: Path, *orders: tuple[str, str]) -> tuple[Round, Threads]:
    """Play a round whose leader gives these orders in one reply, and then answers."""
    listener = Threads()
    asks = called(*[("ask", {"role": role, "order": order}) for role, order in orders])
    with app_over(project, asks, good("Done."), **KEYS) as (app, _), app.get_session() as session:
        return session.send_message("do both", listener), listener


def test_orders_to_different_roles_are_carried_out_at_the_same_time(project: Path) -> None:
    """Each waits for the other; what they show comes in one thread, one after the other."""
    round_, listener = play(project, ("One", "meet first"), ("Two", "meet second"))
    assert round_.state == "finished", round_
    reports = [post.message for post in round_.post_list if post.send_to == "Planner"][1:]
    assert reports == ["One did: meet first", "Two did: meet second"]
    assert listener.threads == {threading.get_ident()}
    shown = listener.messages(PostEventType.post_message_update)
    assert shown.index("One did: meet first") < shown.index("Two did: meet second")


def test_an_order_that_fails_keeps_the_report_on_the_other(project: Path) -> None:
    round_, _ = play(project, ("One", "fail"), ("Two", "go on"))
    assert round_.state == "failed"
    assert "Two did: go on" in [post.message for post in round_.post_list]


def test_two_orders_to_one_role_come_one_after_the_other(project: Path) -> None:
    round_, _ = play(project, ("One", "first"), ("One", "second"))
    assert round_.state == "finished"
    reports = [post.message for post in round_.post_list if post.send_from == "One"]
    assert reports == ["One did: first", "One did: second"]
