"""Projects, sessions, roles and plugins, and what is odd about them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import PATIENCE_S
from support import Listener, OnStatus, Script, add_table, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.llm.types import ChatMessage
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.events import (
    PostEventType,
    RoundEventType,
    SessionEventType,
    TaskWeaverEvent,
)
from taskweaver.role.errors import RoleError, UnknownRole
from taskweaver.session.errors import FileNotAdded, SessionBusy, SessionClosed, SessionError

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
MODULE = "parrot.parrot.Parrot"
IMPORTS = """
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.role import RoleEntry
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


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


def test_an_unknown_role_is_told_the_nearest_one() -> None:
    assert "did you mean 'planner'" in str(UnknownRole("plannr", ["planner", "echo"]))
    assert "known: planner" in str(UnknownRole("x", ["planner"]))


def test_a_role_of_the_project_takes_part(project: Path) -> None:
    add_role(project, "parrot", IMPORTS + ROLE, "parrot.parrot.Parrot")
    script = Script([planner_reply("Parrot", "hello"), planner_reply("User", "it said hello")])
    config = {"session.roles": ["planner", "parrot"], "parrot.mark": "?"}
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert not app.warnings
        round_ = app.get_session().send_message("speak")
    assert [post.message for post in round_.post_list][2] == "hello?"
    assert "repeats what it hears" in str(script.prompts[0][0]["content"])


def test_roles_of_one_name_in_two_projects_are_two(tmp_path: Path) -> None:
    for mark in ("one", "two"):
        folder = make_project(tmp_path / mark, has_table=False)
        (folder / "roles" / "parrot").mkdir(parents=True)
        (folder / "roles" / "parrot" / "words.py").write_text(f"WORD = {mark!r}\n")
        source = ROLE.replace("last.message + self.config.mark", "WORD")
        add_role(folder, "parrot", f"from parrot.words import WORD\n{IMPORTS}{source}", MODULE)
        with TaskWeaverApp(folder, config={"session.roles": ["parrot"]}) as app:
            assert app.get_session().send_message("x").post_list[-1].message == mark


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


@pytest.mark.long
def test_a_plugin_that_breaks_in_the_kernel_is_left_out_and_the_chat_goes_on(project: Path) -> None:
    plugins = project / "plugins"
    plugins.mkdir()
    text = "name: {0}\ndescription: d\nparameters: []\nreturns: []\n"
    for name, body in {"good": "return 7", "bad": "return 8"}.items():
        (plugins / f"{name}.yaml").write_text(text.format(name))
        start = "raise RuntimeError('no')\n" if name == "bad" else ""
        source = f"{start}from taskweaver.plugin import register_plugin\n@register_plugin\n"
        (plugins / f"{name}.py").write_text(f"{source}def {name}():\n    {body}\n")
    script = Script([code_reply("good()")])
    config = {"session.roles": ["code_interpreter"]}
    listener = Listener()
    with TaskWeaverApp(project, model=script, config=config) as app:
        round_ = app.get_session().send_message("go", listener)
    (warning,) = listener.messages(RoundEventType.round_warning)
    assert "'bad'" in warning
    assert "RuntimeError: no" in warning
    assert "7" in round_.post_list[-1].message
    asked = str(script.prompts[-1])
    assert "- good(" in asked
    assert "- bad(" not in asked


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


@pytest.mark.long
def test_plugins_hear_of_session_variables(project: Path) -> None:
    plugins = project / "plugins"
    plugins.mkdir()
    (plugins / "ask.yaml").write_text("name: ask\ndescription: d\nparameters: []\nreturns: []\n")
    (plugins / "ask.py").write_text(
        "from taskweaver.plugin import Plugin, register_plugin\n@register_plugin\n"
        "class Ask(Plugin):\n    def __call__(self):\n"
        "        return self.ctx.get_session_var('who')\n"
    )
    config = {"session.roles": ["code_interpreter"]}
    with TaskWeaverApp(project, model=Script([code_reply("ask()")]), config=config) as app:
        session = app.get_session()
        session.update_session_var({"who": "Ann"})
        assert "Ann" in session.send_message("go").post_list[-1].message


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


def test_a_reply_of_five_megabytes_does_not_end_the_session(project: Path) -> None:
    replies = Script([planner_reply("User", "x" * 5_000_000), planner_reply("User", "short")])
    with TaskWeaverApp(project, model=replies) as app:
        session = app.get_session()
        session.send_message("long")
        assert session.send_message("again").state == "finished"


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


@pytest.mark.long
def test_an_edited_data_file_is_brought_again_and_that_is_said(project: Path) -> None:
    add_table(project)
    script = Script([planner_reply("User", "ok")] * 2)
    with TaskWeaverApp(project, model=script) as app:
        session = app.get_session()
        session.send_message("look at tiny.csv")
        (project / "data" / "tiny.csv").write_text("Region,Count\nNorth,30\n")
        session.send_message("look at tiny.csv once more")
        assert (session.execution_cwd / "tiny.csv").read_text().endswith("30\n")
    assert "files changed, read them again: tiny.csv." in script.last()


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


def test_sessions_are_kept_by_id_and_forgotten_when_stopped(project: Path) -> None:
    with TaskWeaverApp(project, model=answer) as app:
        session = app.get_session()
        assert app.get_session(session.session_id) is session
        assert app.session_manager.session_store.has_session(session.session_id)
        app.session_manager.stop_session(session.session_id)
        app.session_manager.stop_session("nobody")
        with pytest.raises(SessionError, match="no session"):
            app.get_session(session.session_id)


def test_the_end_of_a_session_is_told(project: Path) -> None:
    listener = Listener()
    with TaskWeaverApp(project, model=answer) as app, app.get_session() as session:
        session.event_emitter.register(listener)
    assert [event.t for event in listener.events] == [SessionEventType.session_end]


def test_files_are_added_and_a_missing_one_is_refused_before_anything_is_asked(
    project: Path,
) -> None:
    script = Script([planner_reply("User", "seen")])
    with TaskWeaverApp(project, model=script) as app:
        session = app.get_session()
        with pytest.raises(FileNotAdded, match=r"gone\.csv"):
            session.send_message("x", files=[{"name": "gone.csv", "path": "/no/gone.csv"}])
        assert not session.memory.conversation.rounds
        session.send_message("look", files=[{"name": "a.txt", "content": b"1"}])
        assert (session.execution_cwd / "a.txt").read_bytes() == b"1"
    assert "files added: a.txt." in script.last()


def test_usage_is_counted_per_round_and_session(project: Path) -> None:
    with TaskWeaverApp(project, model=answer) as app:
        session = app.get_session()
        session.send_message("one")
        first = session.round_usage
        session.send_message("two")
        assert first.calls == session.round_usage.calls == 1
        assert session.usage.calls == 2
        assert session.usage.total_tokens == first.total_tokens + session.round_usage.total_tokens


def test_examples_of_the_project_are_in_the_prompt(project: Path) -> None:
    folder = project / "examples" / "planner_examples"
    folder.mkdir(parents=True)
    post = {"message": "an example question", "send_from": "User", "send_to": "Planner"}
    stranger = {**post, "send_from": "Stranger"}
    for name, item in {"a": post, "b": stranger}.items():
        rounds = [{"user_query": "q", "state": "finished", "post_list": [item]}]
        (folder / f"{name}.yaml").write_text(json.dumps({"enabled": True, "rounds": rounds}))
    script = Script([planner_reply("User", "ok")])
    with TaskWeaverApp(project, model=script) as app:
        app.get_session().send_message("hi")
    texts = [str(message["content"]) for message in script.prompts[0]]
    assert sum("an example question" in text for text in texts) == 1
    assert not any("Stranger" in text for text in texts)


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


def test_images_reach_the_model_and_temporal_marks_do_not(project: Path) -> None:
    add_role(
        project,
        "viewer",
        IMPORTS
        + ROLE.replace("Parrot", "Viewer").replace(
            "        return proxy.end()",
            "        from taskweaver.memory.attachment import AttachmentType\n"
            "        from taskweaver.utils.text import wrap_temporal\n"
            "        url = {'image_url': 'data:image/png;base64,AA'}\n"
            "        proxy.update_attachment('p.png', AttachmentType.image_url, extra=url)\n"
            "        proxy.update_message(wrap_temporal('for now'))\n"
            "        return proxy.end()",
        ),
        "viewer.viewer.Viewer",
    )
    script = Script([planner_reply("Viewer", "look"), planner_reply("User", "seen")])
    config = {"session.roles": ["planner", "viewer"]}
    with TaskWeaverApp(project, model=script, config=config) as app:
        round_ = app.get_session().send_message("what is on it?")
    assert round_.post_list[2].get_attachment(AttachmentType.image_url)
    content = script.prompts[-1][-1]["content"]
    assert isinstance(content, list)
    assert content[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    assert "for now" in content[0]["text"]
    assert "DELIMITER" not in content[0]["text"]
