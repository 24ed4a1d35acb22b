"""A project folder in the format of the original runs as it is."""

# ruff: noqa: ARG002 - handlers take what they are given

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from originals import make_original
from support import Script, code_reply, planner_reply

from taskweaver.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.memory import Attachment, Post, Round, SharedMemoryEntry
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.event_emitter import (
    PostEventType,
    RoundEventType,
    SessionEventHandlerBase,
    SessionEventType,
)
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

Command = Callable[..., Result]
WORK = [planner_reply("CodeInterpreter", "work"), code_reply("1"), planner_reply("User", "done")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_original(tmp_path / "project")


@pytest.fixture
def taskweaver(project: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, with the offline analyst."""
    monkeypatch.setenv("LLM_API_TYPE", "offline")
    return lambda *arguments: CliRunner().invoke(commands, ["-p", str(project), *arguments])


def test_a_question_is_answered_from_the_command_line(taskweaver: Command) -> None:
    ran = taskweaver("-m", "what is the sum of Count in tiny.csv?", "--json")
    assert ran.exit_code == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["state"] == "finished"
    assert "8" in ran.stdout
    for name in (
        "session_manager.store_type",
        "workspace.mode",
        "execution_service.server.auto_start",
    ):
        assert ran.stderr.count(f"{name} has no effect: ") == 1
    assert "sentence_transformers is read as none" in ran.stderr
    assert "llm.api_base" not in ran.stderr
    assert "Traceback" not in ran.stderr


class Counting(SessionEventHandlerBase):
    """A handler as embedding programs write them."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def handle_session(self, type, msg, extra, **kwargs):
        assert isinstance(type, SessionEventType)
        self.seen.append(type.value)

    def handle_round(self, type, msg, extra, round_id, **kwargs):
        assert isinstance(type, RoundEventType)
        self.seen.append(type.value)

    def handle_post(self, type, msg, extra, post_id, round_id, **kwargs):
        assert isinstance(type, PostEventType)
        self.seen.append(type.value)


def test_a_program_that_embeds_it_runs(project: Path) -> None:
    handler = Counting()
    script = Script(
        [
            planner_reply("CodeInterpreter", "use the plugins"),
            code_reply("(add_tax(100.0), count_letters('ab1'), to_metre(10), weather('Rome'))"),
            planner_reply("Glossary", "net"),
            planner_reply("Shouter", "hello"),
            "hi",
            "there",
            planner_reply("User", "all done"),
        ]
    )
    app = TaskWeaverApp(app_dir=str(project), model=script)
    session = app.get_session()
    assert isinstance(session, Session)
    session.update_session_var({"customer": "Ann"})
    upload = [{"name": "more.csv", "content": b"a\n1\n"}]
    round_ = session.send_message("go", event_handler=handler, files=upload)
    assert isinstance(round_, Round)
    assert round_.state == "finished"
    messages = {post.send_from: post.message for post in round_.post_list}
    assert "119.0" in messages["CodeInterpreter"]
    assert "3.048" in messages["CodeInterpreter"]
    assert "Rome: fair" in messages["CodeInterpreter"]
    assert "tax added for Ann" in messages["CodeInterpreter"]
    assert messages["Glossary"].startswith("In short: without tax")
    assert messages["Shouter"] == "HI!there"
    assert {"round_start", "post_start", "post_end", "round_end"} <= set(handler.seen)
    facts = round_.to_dict()
    assert json.loads(json.dumps(facts)) == facts
    assert set(facts) == {"id", "user_query", "state", "post_list"}
    assert app.get_session(session.session_id) is session
    assert session.execution_cwd is not None
    assert (Path(session.execution_cwd) / "more.csv").read_bytes() == b"a\n1\n"
    session.memory.save_experience(str(session.config.experience_dir), thin_mode=True)
    assert (project / "experience" / f"raw_exp_{session.session_id}.yaml").exists()
    session.stop()
    app.stop()


def test_examples_and_experiences_are_in_the_prompts(project: Path) -> None:
    script = Script(WORK)
    with TaskWeaverApp(project, model=script) as app:
        app.get_session().send_message("which region sold most, and what amount of money")
    planner, code = (
        "\n".join(str(message["content"]) for message in prompt) for prompt in script.prompts[:2]
    )
    assert "the sum of column Count in counts.csv" in planner
    assert "WebExplorer" not in planner
    assert "Name the region first" in planner
    assert "in euros" in planner
    assert "the mean of column Count" in code
    assert all(f"- {name}(" in code for name in ("add_tax", "count_letters", "to_foot"))
    assert "old_service" not in code
    assert "datetime" in code  # the policy's modules are told


def test_posts_are_read_as_their_files_hold_them() -> None:
    data = {"message": None, "send_from": "User", "send_to": "Planner", "attachment_list": None}
    post = Post.from_dict(data)
    assert (post.message, post.attachment_list) == ("", [])
    assert Attachment.from_dict({"type": "init_plan", "content": "x"}) is None
    made = Attachment.create("plan", "1. do it")
    assert made.type is AttachmentType.plan
    assert made.id.startswith("atta-")


def test_examples_follow_the_memory_where_that_is_on(project: Path) -> None:
    folder = project / "examples" / "planner_examples"
    (folder / "sales").mkdir()
    (folder / "sum_up.yaml").rename(folder / "sales" / "sum_up.yaml")
    roles = ["planner", "code_interpreter"]
    config = {"planner.dynamic_example_sub_path": True, "session.roles": roles}
    script = Script([planner_reply("User", "one"), planner_reply("User", "two")])
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.get_session()
        session.send_message("before")
        entry = SharedMemoryEntry.create("example_sub_path", "sales", "conversation")
        share = Attachment.create("shared_memory_entry", "sales", extra=entry)
        session.memory.conversation.rounds[-1].post_list[-1].add_attachment(share)
        session.send_message("after")
    before, after = (str(prompt) for prompt in script.prompts)
    assert "counts.csv" not in before
    assert "counts.csv" in after


def test_a_role_that_answers_a_planner_who_is_not_there_answers_the_user(project: Path) -> None:
    file = project / "my_roles" / "glossary" / "glossary.py"
    source = file.read_text("utf-8")
    file.write_text(source.replace("last_post.send_from", '"Planner"'), "utf-8")
    with TaskWeaverApp(project, config={"session.roles": ["glossary"]}) as app:
        round_ = app.get_session().send_message("gross")
    assert round_.state == "finished"
    assert round_.post_list[-1].send_to == "User"
    assert "with tax" in round_.post_list[-1].message


def test_prompt_files_of_the_original_are_read(project: Path) -> None:
    config = {
        "planner.prompt_file_path": "prompts/planner.yaml",
        "code_generator.prompt_file_path": "${AppBaseDir}/prompts/code.yaml",
    }
    script = Script(WORK)
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert app.get_session().send_message("go").state == "finished"
    planner, code = (str(prompt[0]["content"]) for prompt in script.prompts[:2])
    assert planner.startswith("You plan for a shop. The time: - Today is 20")
    assert "### Glossary" in planner
    assert 'Reply like {"response": {...}} by this schema: {"type": "object"' in planner
    assert 'ProgramApe writes code for a shop, e.g. {"a": 1}.' in code
    assert "ProgramApe keeps to the shop's rules." in script.last(1)


def test_sessions_of_the_original_are_left_where_they_are(
    project: Path, taskweaver: Command
) -> None:
    (old,) = (project / "workspace" / "sessions").iterdir()
    before = sorted(path.name for path in old.rglob("*"))
    listed = taskweaver("sessions")
    assert listed.exit_code == 0, listed.stderr
    assert "No sessions yet." in listed.stdout
    for arguments in (["--resume"], ["--resume", old.name], ["sessions", "rm", old.name]):
        refused = taskweaver(*arguments, *(["-m", "x"] if "rm" not in arguments else []))
        assert refused.exit_code == 2
        assert "error: There is no session" in refused.stderr
    assert sorted(path.name for path in old.rglob("*")) == before
