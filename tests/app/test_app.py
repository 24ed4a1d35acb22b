"""Projects, sessions, roles and plugins, and what is odd about them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import PATIENCE_S
from support import Listener, OnStatus, Script, add_table, code_reply, planner_reply

import taskweaver
from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.llm.types import ChatMessage
from taskweaver.module.event_emitter import PostEventType, RoundEventType, TaskWeaverEvent
from taskweaver.role.errors import RoleError, UnknownRole
from taskweaver.session.errors import SessionClosed, SessionError

pytestmark = pytest.mark.usefixtures("no_states")

ROLE = """
from taskweaver.ext_role.echo.echo import Echo

class Parrot(Echo):
    def reply(self, memory, **kwargs):
        last = memory.get_role_rounds(self.alias)[-1].post_list[-1]
        proxy = self.event_emitter.create_post_proxy(self.alias)
        proxy.update_send_to(last.send_from)
        proxy.update_message(last.message + "?")
        return proxy.end()
"""


def answer(_messages: Sequence[ChatMessage]) -> str:
    return planner_reply("User", "here")


def add_role(project: Path, name: str, source: str, module: str) -> None:
    folder = project / "roles" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(source)
    text = f"alias: {name.title()}\nmodule: {module}\nintro: |-\n  - repeats what it hears\n"
    (folder / f"{name}.role.yaml").write_text(text)


def test_a_project_is_found_from_a_folder_inside_it_and_another_folder_works_with_a_warning(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_table(project)
    monkeypatch.chdir(project / "data")
    assert TaskWeaverApp.discover_app_dir() == (project, True, False)
    assert TaskWeaverApp.discover_app_dir(project / "data") == (project / "data", False, False)
    (tmp_path / "none").mkdir()
    config = {"execution.zygote": False, "execution.sandbox": "none"}
    with TaskWeaverApp(tmp_path / "none", model=answer, config=config) as app:
        assert "is a plain folder" in app.warnings[0]
        assert app.get_session().send_message("hi").state == "finished"


def test_a_malformed_configuration_stops_the_start_and_an_unknown_key_warns(
    project: Path, tmp_path: Path
) -> None:
    for values in ({"tracing.enabled": True, "tracing.endpoint": "here"}, {"llm.seed": "many"}):
        with pytest.raises(ConfigError, match=list(values)[-1].replace(".", r"\.")):
            TaskWeaverApp(project, config=values)
    with TaskWeaverApp(project, model=answer, config={"llm.modle": "x"}) as app:
        assert any("llm.model" in warning for warning in app.warnings)
    (tmp_path / "taskweaver_config.json").write_text('{"llm.model": "x",\n oops}')
    with pytest.raises(ConfigError, match="line 2"):
        TaskWeaverApp(tmp_path)


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


def test_a_role_of_the_project_takes_part_and_a_broken_file_of_one_is_a_warning(
    project: Path,
) -> None:
    add_role(project, "parrot", ROLE, "parrot.parrot.Parrot")
    (project / "roles" / "bad.role.yaml").write_text("alias: [")
    (project / "roles" / "half.role.yaml").write_text("alias: Half\n")
    script = Script([planner_reply("Parrot", "hello"), planner_reply("User", "it said hello")])
    config = {"session.roles": ["planner", "parrot"]}
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert len([warning for warning in app.warnings if "role" in warning.lower()]) == 2
        round_ = app.get_session().send_message("speak")
    assert [post.message for post in round_.post_list][2] == "hello?"
    assert "repeats what it hears" in str(script.prompts[0][0]["content"])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ValueError('no')", "does not import"),
        ("x = 1", "does not import"),
        ("Odd = 3", "is not a class"),
        ("class Odd: pass", "is not a Role"),
    ],
)
def test_a_role_that_cannot_be_used_is_named(project: Path, source: str, reason: str) -> None:
    add_role(project, "odd", source, "odd.odd.Odd")
    config = {"session.roles": ["planner", "odd"]}
    with (
        TaskWeaverApp(project, model=answer, config=config) as app,
        pytest.raises(RoleError, match=reason),
    ):
        app.get_session()


def test_what_kernels_start_from_is_there_before_the_model_has_answered(project: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    deadline = time.monotonic() + PATIENCE_S

    def answer_beside_it(messages: Sequence[ChatMessage]) -> str:
        while not set(psutil.Process().children(recursive=True)) - before:
            assert time.monotonic() < deadline, "no process is started"
            threading.Event().wait(0.05)
        return answer(messages)

    warm = {"execution.zygote": True}
    with TaskWeaverApp(project, model=answer_beside_it, config=warm) as app:
        assert app.get_session().send_message("go").state == "finished"


def test_a_model_that_raises_fails_the_round_and_an_interrupt_is_raised(project: Path) -> None:
    def model(messages: Sequence[ChatMessage]) -> str:
        said = str(messages[-1]["content"])
        if "break" in said:
            raise ZeroDivisionError("inside")
        if "stop" in said:
            raise KeyboardInterrupt
        return planner_reply("User", "fine")

    listener = Listener()
    with TaskWeaverApp(project, model=model) as app:
        session = app.get_session()
        assert session.send_message("break", event_handler=listener).state == "failed"
        with pytest.raises(KeyboardInterrupt):
            session.send_message("stop")
        assert session.memory.conversation.rounds[-1].state == "failed"
        assert session.send_message("go on").state == "finished"
    assert "ZeroDivisionError: inside" in listener.messages(RoundEventType.round_error)[0]


def test_a_session_that_is_stopped_asks_nobody_further_and_answers_no_more(project: Path) -> None:
    script = Script([planner_reply("CodeInterpreter", "work")])

    class Stops:
        def handle(self, event: TaskWeaverEvent) -> None:
            if event.t is PostEventType.post_end:
                session.stop()

    with TaskWeaverApp(project, model=script) as app:
        session, other, empty = (app.get_session() for _ in range(3))
        assert session.send_message("x", Stops()).state == "failed"
        session.stop()
        with pytest.raises(SessionClosed):
            session.send_message("y")
        empty.stop()
        with pytest.raises(SessionError, match="stopped"):
            app.get_session(empty.session_id)
    assert len(script.prompts) == 1
    assert other.is_closed
    with pytest.raises(SessionClosed, match="application was stopped"):
        app.get_session()


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


def test_what_is_no_message_is_refused_before_anything_is_asked(project: Path) -> None:
    with TaskWeaverApp(project, model=Script([])) as app:
        session = app.get_session()
        messages: list[Any] = ["", " \n", None, 5]
        for message in messages:
            with pytest.raises(SessionError, match="must be text and not empty"):
                session.send_message(message)
        assert session.memory.conversation.rounds == []


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


def test_the_package_names_the_application_and_imports_it_on_demand() -> None:
    code = (
        "import sys, taskweaver\n"
        "heavy = {'yaml', 'taskweaver.app', 'taskweaver.config', 'click', 'rich', 'injector'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "from taskweaver.utils import read_yaml\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert taskweaver.TaskWeaverApp is TaskWeaverApp
    with pytest.raises(AttributeError, match="has no attribute 'TaskWaver'"):
        _ = taskweaver.TaskWaver


def test_files_that_code_left_do_not_stop_the_chat(project: Path) -> None:
    code = (
        "import os\nos.mkfifo('data' '.csv')\nos.symlink('/etc/passwd', 'more' '.csv')\n"
        "os.mkfifo('pipe.png')\nopen('a\\nb.png', 'w').write('x')\nprint('done')"
    )
    order = [planner_reply("CodeInterpreter", "go"), code_reply(code)]
    script = Script([*order, *[planner_reply("User", "a")] * 3])
    for name in ("data.csv", "more.csv"):
        (project / "data" / name).write_text("fresh")
    with TaskWeaverApp(project, model=script) as app, app.get_session() as session:
        assert session.send_message("go").state == "finished"
        given_files: Any = [
            {"name": n, "path": project / "data" / n} for n in ("data.csv", "more.csv")
        ]
        assert session.send_message("look", files=given_files).state == "finished"
        assert (session.execution_cwd / "data.csv").read_text() == "fresh"
        branch = session.fork()
        session.diff("main", branch)
        session.checkout(branch)
        assert session.send_message("read data.csv").state == "finished"
