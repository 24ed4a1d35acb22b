"""A role of a project goes before a packaged one, whatever its role file calls the class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support import Script, make_project, planner_reply

from taskweaver.app import TaskWeaverApp
from taskweaver.role.errors import RoleError
from taskweaver.role.role import Role

SOURCE = """
from injector import inject

from taskweaver.logging import TelemetryLogger
from taskweaver.memory import Memory, Post
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.module.tracing import Tracing
from taskweaver.role import Role
from taskweaver.role.role import RoleConfig, RoleEntry


class {name}Config(RoleConfig):
    def _configure(self):
        self.decorator = self._get_str("decorator", "")


class {name}(Role):
    @inject
    def __init__(
        self,
        config: {name}Config,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        role_entry: RoleEntry,
    ):
        super().__init__(config, logger, tracing, event_emitter, role_entry)

    def reply(self, memory: Memory, **kwargs: ...) -> Post:
        rounds = memory.get_role_rounds(role=self.alias, include_failure_rounds=False)
        last_post = rounds[-1].post_list[-1]
        post_proxy = self.event_emitter.create_post_proxy(self.alias)
        post_proxy.update_send_to(last_post.send_from)
        post_proxy.update_message("{answer}: " + last_post.message + self.config.decorator)
        return post_proxy.end()
"""


def add_role(project: Path, name: str, class_name: str, answer: str = "my own") -> Path:
    """Write a role as the original has it, the class inside the package; return its file."""
    folder = project / "roles" / name
    folder.mkdir(parents=True)
    (folder / f"{name}.role.yaml").write_text(
        f"alias: {class_name}\nmodule: taskweaver.ext_role.{name}.{name}.{class_name}\n"
        "intro: |-\n  - Answers.\n"
    )
    file = folder / f"{name}.py"
    file.write_text(SOURCE.format(name=class_name, answer=answer))
    return file


def answers(project: Path, alias: str, roles: Sequence[str]) -> list[str]:
    script = Script([planner_reply(alias, "hello"), planner_reply("User", "done")])
    config = {"session.roles": ["planner", *roles], "echo.decorator": "!"}
    with TaskWeaverApp(project, model=script, config=config) as app:
        round_ = app.get_session().send_message("go")
    assert round_.state == "finished"
    return [post.message for post in round_.post_list if post.send_from == alias]


@pytest.mark.parametrize(
    ("name", "class_name", "has_init"), [("echo", "Echo", False), ("recepta", "Recepta", True)]
)
def test_a_copy_of_a_packaged_role_runs_the_copy(
    tmp_path: Path, name: str, class_name: str, *, has_init: bool
) -> None:
    project = make_project(tmp_path / "project")
    file = add_role(project, name, class_name)
    if has_init:
        file.with_name("__init__.py").touch()
    (said,) = answers(project, class_name, [name])
    assert said.startswith("my own: hello")


def test_projects_in_one_process_run_their_own_classes(tmp_path: Path) -> None:
    first, second = make_project(tmp_path / "first"), make_project(tmp_path / "second")
    plain = make_project(tmp_path / "plain")
    add_role(first, "echo", "Echo", "first")
    alone = add_role(second, "echo", "Echo", "second")
    said = [answers(folder, "Echo", ["echo"]) for folder in (plain, first, second, plain, first)]
    assert said == [["!hello!"], ["first: hello!"], ["second: hello!"], ["!hello!"], said[1]]
    alone.unlink()
    assert answers(second, "Echo", ["echo"]) == ["!hello!"], "the role file names the packaged one"


def test_a_role_imports_its_own_modules_late_while_other_projects_open(tmp_path: Path) -> None:
    first, second = make_project(tmp_path / "first"), make_project(tmp_path / "second")
    late = add_role(first, "late", "Late")
    add_role(second, "echo", "Echo")
    late.with_name("words.py").write_text("ENDING = ' (late)'\n")
    source = late.read_text()
    update = "        post_proxy.update_"
    late.write_text(
        source.replace(
            f"{update}send_to",
            "        from taskweaver.ext_role.late.words import ENDING\n\n"
            f"{update}message(ENDING)\n{update}send_to",
        )
    )
    replies = [planner_reply("Late", "hello"), planner_reply("User", "done")]
    config = {"session.roles": ["planner", "late"]}
    with TaskWeaverApp(first, model=Script(replies), config=config) as app:
        session = app.get_session()
        assert answers(second, "Echo", ["echo"]) == ["my own: hello!"]
        round_ = session.send_message("go")
    assert [post.message for post in round_.post_list if post.send_from == "Late"] == [
        " (late)my own: hello"
    ]


def test_a_role_imports_the_copy_of_another(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    add_role(project, "echo", "Echo", "copied")
    add_role(project, "louder", "Louder").write_text(
        "from taskweaver.ext_role.echo.echo import Echo\n"
        "from taskweaver.ext_role.task import task_for\n\n"
        "class Louder(Echo):\n    pass\n"
    )
    (said,) = answers(project, "Louder", ["louder"])
    assert said == "copied: hello!"


NEEDY = """
class Thing:
    def __init__(self, a, b):
        pass


class Needy(Echo):
    @inject
    def __init__(self, thing: Thing):
        pass
"""


def test_a_role_that_asks_for_what_cannot_be_made_is_named_in_one_line(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    file = add_role(project, "needy", "Needy")
    file.write_text(SOURCE.format(name="Echo", answer="") + NEEDY)
    config = {"session.roles": ["needy"]}
    with (
        TaskWeaverApp(project, model=Script([]), config=config) as app,
        pytest.raises(RoleError, match=r"cannot be made: CallError: .*'a' and 'b'") as failed,
    ):
        app.get_session()
    assert "\n" not in str(failed.value)


def test_a_constructor_below_a_role_with_a_config_type_gets_the_configuration_it_names(
    tmp_path: Path,
) -> None:
    project = make_project(tmp_path / "project")
    module = add_role(project, "loud", "Loud")
    source = module.read_text().replace("decorator", "loudness").replace("Loud(Role)", "Loud(Echo)")
    module.write_text("from taskweaver.ext_role.echo.echo import Echo\n" + source)
    assert answers(project, "Loud", ["planner", "loud"])[0].startswith("my own")


def test_a_role_that_defines_meet_is_refused_with_the_new_name() -> None:
    with pytest.raises(RoleError, match="rename it to `bind_peers`"):
        type("Dice", (Role,), {"meet": lambda *_: None})
