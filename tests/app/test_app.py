"""Projects, sessions, roles and plugins, and what is odd about them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import PATIENCE_S
from support import Listener, OnStatus, Script, add_table, code_reply, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.llm.types import ChatMessage
from taskweaver.module.events import (
    PostEventType,
    RoundEventType,
    TaskWeaverEvent,
)
from taskweaver.role.errors import RoleError, UnknownRole
from taskweaver.session.errors import SessionBusy, SessionClosed, SessionError

pytestmark = pytest.mark.usefixtures("no_states")

ROLE = """
from injector import inject
from taskweaver.role import Role
from taskweaver.role.role import RoleConfig

class ParrotConfig(RoleConfig):
    def _configure(self):
        self.mark = self._get_str("mark", "!")

class Parrot(Role):
    @inject
    def __init__(self, config: ParrotConfig, logger: TelemetryLogger, tracing: Tracing,
                 event_emitter: SessionEventEmitter, role_entry: RoleEntry):
        super().__init__(config, logger, tracing, event_emitter, role_entry)

    def reply(self, memory, **kwargs):
        last = memory.get_role_rounds(self.alias)[-1].post_list[-1]
        proxy = self.event_emitter.create_post_proxy(self.alias)
        proxy.update_send_to(last.send_from)
        proxy.update_message(last.message + self.config.mark)
        return proxy.end()
"""
IMPORTS = """
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.role import RoleEntry
"""


def answer(_messages: Sequence[ChatMessage]) -> str:
    return planner_reply("User", "here")


def add_role(project: Path, name: str, source: str, module: str) -> None:
    folder = project / "roles" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(source)
    text = f"alias: {name.title()}\nmodule: {module}\nintro: |-\n  - repeats what it hears\n"
    (folder / f"{name}.role.yaml").write_text(text)


def test_a_project_is_found_from_a_folder_inside_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_table(project)
    monkeypatch.chdir(project / "data")
    assert TaskWeaverApp.discover_app_dir() == (project, True, False)
    assert TaskWeaverApp.discover_app_dir(project / "data") == (project / "data", False, False)


def test_a_folder_that_is_no_project_works_with_a_warning(tmp_path: Path) -> None:
    config = {"execution.zygote": False, "execution.sandbox": "none"}
    with TaskWeaverApp(tmp_path, model=answer, config=config) as app:
        assert "is not a project" in app.warnings[0]
        assert app.get_session().send_message("hi").state == "finished"


def test_a_malformed_configuration_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "taskweaver_config.json").write_text('{"llm.model": "x",\n oops}')
    with pytest.raises(ConfigError, match="line 2"):
        TaskWeaverApp(tmp_path)


def test_a_value_of_the_wrong_type_stops_the_start_and_an_unknown_key_warns(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"tracing\.endpoint"):
        TaskWeaverApp(project, config={"tracing.enabled": True, "tracing.endpoint": "here"})
    with pytest.raises(ConfigError, match=r"llm\.max_retries"):
        TaskWeaverApp(project, config={"llm.max_retries": "many"})
    with TaskWeaverApp(project, model=answer, config={"llm.modle": "x"}) as app:
        assert any("llm.model" in warning for warning in app.warnings)


@pytest.mark.parametrize(
    ("roles", "error"),
    [
        (["planner", "code_interpretor"], UnknownRole),
        (["code_interpreter", "parrot"], RoleError),
        ([], RoleError),
        (["planner", "code_interpreter", "code_interpreter_two"], RoleError),
    ],
)
def test_roles_that_cannot_play_together_are_refused(
    project: Path, roles: list[str], error: type[RoleError]
) -> None:
    with TaskWeaverApp(project, model=answer, config={"session.roles": roles}) as app:
        with pytest.raises(error) as caught:
            app.get_session()
        assert "\n" not in str(caught.value)


def test_a_role_of_the_project_takes_part(project: Path) -> None:
    add_role(project, "parrot", IMPORTS + ROLE, "parrot.parrot.Parrot")
    script = Script([planner_reply("Parrot", "hello"), planner_reply("User", "it said hello")])
    config = {"session.roles": ["planner", "parrot"], "parrot.mark": "?"}
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert not app.warnings
        round_ = app.get_session().send_message("speak")
    assert [post.message for post in round_.post_list][2] == "hello?"
    assert "repeats what it hears" in str(script.prompts[0][0]["content"])


@pytest.mark.parametrize(
    ("source", "module", "reason"),
    [
        ("raise ValueError('no')", "odd.odd.Odd", "does not import"),
        ("x = 1", "odd.odd.Odd", "does not import"),
        ("Odd = 3", "odd.odd.Odd", "is not a class"),
        ("class Odd: pass", "odd.odd.Odd", "is not a Role"),
    ],
)
def test_a_role_that_cannot_be_used_is_named(
    project: Path, source: str, module: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(__import__("sys").modules, "odd", raising=False)
    monkeypatch.delitem(__import__("sys").modules, "odd.odd", raising=False)
    add_role(project, "odd", source, module)
    config = {"session.roles": ["planner", "odd"]}
    with (
        TaskWeaverApp(project, model=answer, config=config) as app,
        pytest.raises(RoleError, match=reason),
    ):
        app.get_session()


def test_a_broken_role_file_is_a_warning(project: Path) -> None:
    (project / "roles").mkdir()
    (project / "roles" / "bad.role.yaml").write_text("alias: [")
    (project / "roles" / "half.role.yaml").write_text("alias: Half\n")
    with TaskWeaverApp(project, model=answer) as app:
        assert len([warning for warning in app.warnings if "role" in warning.lower()]) == 2


@pytest.mark.usefixtures("early_kernels")
def test_the_kernel_starts_before_the_model_has_answered(project: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    deadline = time.monotonic() + PATIENCE_S

    def answer_beside_a_kernel(messages: Sequence[ChatMessage]) -> str:
        while not set(psutil.Process().children(recursive=True)) - before:
            assert time.monotonic() < deadline, "no kernel is started"
            threading.Event().wait(0.05)
        return answer(messages)

    with TaskWeaverApp(project, model=answer_beside_a_kernel) as app:
        assert app.get_session().send_message("go").state == "finished"


def test_an_endpoint_that_is_down_fails_the_round_in_one_line_and_the_session_lives(
    project: Path,
) -> None:
    listener = Listener()
    with socket.socket() as deaf:  # has a port, which no other program gets, and does not listen
        deaf.bind(("127.0.0.1", 0))
        config = {
            "llm.api_type": "openai",
            "llm.api_base": f"http://127.0.0.1:{deaf.getsockname()[1]}/v1",
            "llm.model": "m",
            "llm.max_retries": 0,
        }
        with TaskWeaverApp(project, config=config) as app:
            session = app.get_session()
            for _ in range(2):
                assert session.send_message("hi", event_handler=listener).state == "failed"
    reasons = listener.messages(RoundEventType.round_error)
    assert len(reasons) == 2
    assert all("llm.api_base" in reason and "\n" not in reason for reason in reasons)


def test_a_model_that_raises_fails_the_round_only(project: Path) -> None:
    def model(messages: Sequence[ChatMessage]) -> str:
        if "break" in str(messages[-1]["content"]):
            raise ZeroDivisionError("inside")
        return planner_reply("User", "fine")

    listener = Listener()
    with TaskWeaverApp(project, model=model) as app:
        session = app.get_session()
        assert session.send_message("break", event_handler=listener).state == "failed"
        assert session.send_message("go on").state == "finished"
    assert "ZeroDivisionError: inside" in listener.messages(RoundEventType.round_error)[0]


def test_an_interrupt_fails_the_round_is_raised_and_the_session_goes_on(project: Path) -> None:
    def model(messages: Sequence[ChatMessage]) -> str:
        if "stop" in str(messages[-1]["content"]):
            raise KeyboardInterrupt
        return planner_reply("User", "fine")

    with TaskWeaverApp(project, model=model) as app:
        session = app.get_session()
        with pytest.raises(KeyboardInterrupt):
            session.send_message("stop")
        assert session.memory.conversation.rounds[-1].state == "failed"
        assert session.send_message("go on").state == "finished"


def test_an_interrupt_from_another_thread_gives_up_the_model_call(project: Path) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def model(_messages: Sequence[ChatMessage]) -> Iterator[str]:
        yield '{"response": {"plan_reasoning": "'
        asked.set()
        let_go.wait(PATIENCE_S)
        yield "more"

    with TaskWeaverApp(project, model=model) as app:
        session = app.get_session()
        states: list[str] = []
        thread = threading.Thread(target=lambda: states.append(session.send_message("x").state))
        thread.start()
        assert asked.wait(PATIENCE_S)
        session.interrupt()
        let_go.set()
        thread.join(PATIENCE_S)
        assert states == ["failed"]


@pytest.mark.parametrize("way", ["stop", "interrupt"])
def test_a_round_given_up_between_two_steps_asks_nobody_further(project: Path, way: str) -> None:
    script = Script([planner_reply("CodeInterpreter", "work")])

    class GivesUp:
        def handle(self, event: TaskWeaverEvent) -> None:
            if event.t is PostEventType.post_end:
                getattr(session, way)()

    with TaskWeaverApp(project, model=script) as app:
        session = app.get_session()
        assert session.send_message("x", GivesUp()).state == "failed"
    assert len(script.prompts) == 1


@pytest.mark.parametrize(("status", "asked"), [("writing code", 1), ("running code", 2)])
def test_a_round_given_up_before_a_call_or_a_cell_does_not_make_it(
    project: Path, status: str, asked: int
) -> None:
    replies = [planner_reply("CodeInterpreter", "work"), code_reply("open('ran', 'w')")]
    script = Script([*replies[:asked], planner_reply("User", "fine")])

    with TaskWeaverApp(project, model=script) as app:
        session = app.get_session()
        gives_up = OnStatus(status, session.interrupt)
        assert session.send_message("x", gives_up).state == "failed"
        assert len(script.prompts) == asked
        assert not (session.execution_cwd / "ran").exists()
        assert session.send_message("go on").state == "finished"


@pytest.mark.parametrize("message", ["", " \n", None, 5, b"x"])
def test_what_is_no_message_is_refused_before_anything_is_asked(
    project: Path, message: Any
) -> None:
    with TaskWeaverApp(project, model=Script([])) as app:
        session = app.get_session()
        with pytest.raises(SessionError, match="A message is a text"):
            session.send_message(message)
        assert session.memory.conversation.rounds == []


def test_a_stopped_application_or_session_is_not_handed_out(project: Path) -> None:
    with TaskWeaverApp(project, model=answer) as app:
        session = app.get_session()
        session.stop()
        with pytest.raises(SessionError, match="stopped"):
            app.get_session(session.session_id)
        other = app.get_session()
    assert other.is_closed
    with pytest.raises(SessionClosed, match="application was stopped"):
        app.get_session()


def test_a_session_answers_one_message_at_a_time_and_none_after_its_end(project: Path) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def model(_messages: Sequence[ChatMessage]) -> str:
        asked.set()
        let_go.wait(PATIENCE_S)
        return planner_reply("User", "done")

    with TaskWeaverApp(project, model=model) as app:
        session = app.get_session()
        thread = threading.Thread(target=lambda: session.send_message("first"))
        thread.start()
        assert asked.wait(PATIENCE_S)
        with pytest.raises(SessionBusy):
            session.send_message("second")
        let_go.set()
        thread.join(PATIENCE_S)
        session.stop()
        session.stop()
        with pytest.raises(SessionClosed):
            session.send_message("third")


def test_a_prompt_file_of_the_project_replaces_ours_and_a_broken_one_is_named(
    project: Path,
) -> None:
    (project / "mine.yaml").write_text("version: 1\ninstruction_template: only this\n")
    config = {"planner.prompt_file_path": str(project / "mine.yaml")}
    with (
        TaskWeaverApp(project, model=answer, config=config) as app,
        pytest.raises(ConfigError, match="lacks worker"),
    ):
        app.get_session()
