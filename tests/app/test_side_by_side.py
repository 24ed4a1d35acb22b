"""Orders to different roles in one reply: carried out at the same time, reported in order."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fake_endpoint import Call, good, serving
from support import Listener, make_project
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.module.event_emitter import PostEventType, TaskWeaverEvent
from taskweaver.session.session import Session

ROLE = """
import threading
from injector import inject
from taskweaver.errors import TaskWeaverError
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role import Role
from taskweaver.role.role import RoleConfig, RoleEntry
from roles_that_meet import MEETING

class {name}Config(RoleConfig):
    pass

class {name}(Role):
    @inject
    def __init__(self, config: {name}Config, logger: TelemetryLogger, tracing: Tracing,
                 event_emitter: SessionEventEmitter, role_entry: RoleEntry):
        super().__init__(config, logger, tracing, event_emitter, role_entry)

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
KEYS = {"session.roles": ["planner", "one", "two"], "llm.form": "tools", "llm.max_retries": 0}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "roles_that_meet.py").write_text(
        "import threading\nMEETING = threading.Barrier(2)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    found = make_project(tmp_path / "project", has_table=False)
    for name in ("one", "two"):
        folder = found / "roles" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(ROLE.replace("{name}", name.title()))
        text = (
            f"alias: {name.title()}\nmodule: {name}.{name}.{name.title()}\nintro: |-\n  - helps\n"
        )
        (folder / f"{name}.role.yaml").write_text(text)
    return found


class Threads(Listener):
    """The threads in which events are handled."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def handle(self, event: TaskWeaverEvent) -> None:
        super().handle(event)
        self.threads.add(threading.get_ident())


def play(project: Path, *orders: tuple[str, str]) -> tuple[Session, Threads, list[str]]:
    """Play a round whose leader gives these orders in one reply, and then answers."""
    seen: list[str] = []

    def reply(call: Call) -> None:
        seen.append(str(call.body["messages"][-1]["content"]))
        if len(seen) == 1:
            calls = [("ask", {"role": role, "order": order}) for role, order in orders]
            call.stream(called(*calls))
        else:
            call.stream(good("Both are done."))

    listener = Threads()
    with serving(reply) as endpoint:
        keys = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.api_key": "k"}
        with TaskWeaverApp(project, config=KEYS | keys | {"llm.model": "m"}) as app:
            session = app.get_session()
            session.send_message("do both", listener)
            session.stop()
    return session, listener, seen


def test_orders_to_different_roles_are_carried_out_at_the_same_time(project: Path) -> None:
    """Each waits for the other; what they show comes in one thread, one after the other."""
    session, listener, _seen = play(project, ("One", "meet first"), ("Two", "meet second"))
    round_ = session.memory.conversation.rounds[-1]
    assert round_.state == "finished", round_
    assert [post.message for post in round_.post_list if post.send_to == "Planner"][1:] == [
        "One did: meet first",
        "Two did: meet second",
    ]
    assert listener.threads == {threading.get_ident()}
    shown = listener.messages(PostEventType.post_message_update)
    assert shown.index("One did: meet first") < shown.index("Two did: meet second")


def test_an_order_that_fails_keeps_the_report_on_the_other(project: Path) -> None:
    session, _listener, _seen = play(project, ("One", "fail"), ("Two", "go on"))
    round_ = session.memory.conversation.rounds[-1]
    assert round_.state == "failed"
    assert "Two did: go on" in [post.message for post in round_.post_list]


def test_two_orders_to_one_role_come_one_after_the_other(project: Path) -> None:
    session, _listener, _seen = play(project, ("One", "first"), ("One", "second"))
    round_ = session.memory.conversation.rounds[-1]
    assert round_.state == "finished"
    reports = [post.message for post in round_.post_list if post.send_from == "One"]
    assert reports == ["One did: first", "One did: second"]
