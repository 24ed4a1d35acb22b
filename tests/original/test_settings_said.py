"""Settings that are not in force, and files that are left out, are named wherever one looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support import Script, make_project, planner_reply

from taskweaver import TaskWeaver
from taskweaver.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.config import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.role.in_force import without_effect
from taskweaver.utils.files import write_yaml

pytestmark = pytest.mark.usefixtures("no_states")

ROLES = "session.roles"
IDLE: list[tuple[str, Any, dict[str, Any], str]] = [
    ("planner.prompt_file_path", "p.yaml", {ROLES: ["code_interpreter"]}, "does not name planner"),
    ("code_generator.role_name", "Me", {ROLES: ["planner", "echo"]}, "no code interpreter"),
    ("echo.decorator", "!", {}, "does not name echo"),
    ("code_interpreter.use_experience", True, {}, "set code_generator.use_experience"),
    ("web_search.use_example", True, {ROLES: ["planner", "web_search"]}, "shows its model none"),
    ("planner.experience_dir", "learnt", {}, "needs planner.use_experience"),
    ("code_interpreter.allowed_modules", ["json"], {}, "needs code_interpreter.code_verif"),
    ("code_generator.compaction_prompt_path", "p.yaml", {}, "under planner"),
    (
        "code_generator.prompt_file_path",
        "p.yaml",
        {ROLES: ["planner", "code_interpreter_cli_only"]},
        "set code_interpreter_cli_only.prompt_file_path",
    ),
    ("session.leader_writes_code", True, {"code_generator.role_name": "Me"}, "role_name is for"),
    ("llm.response_format", "text", {"llm.form": "tools"}, "llm.form is tools"),
]
"""A key, its value, other keys with which it is not in force, and the reason that is given."""


@pytest.mark.parametrize(
    ("key", "value", "others", "reason"), IDLE, ids=lambda item: str(item)[:40]
)
def test_a_setting_that_is_not_in_force_is_named(
    tmp_path: Path, key: str, value: Any, others: dict[str, Any], reason: str
) -> None:
    (said,) = without_effect(AppConfigSource(None, {key: value, **others}, tmp_path))
    assert said.startswith(f"{key} has no effect: ")
    assert reason in said


IN_FORCE: list[dict[str, Any]] = [
    {},
    {"session.leader_writes_code": True},
    {"session.leader_writes_code": False, "code_generator.role_name": "Me"},
    {"planner.use_experience": True, "planner.experience_dir": "learnt"},
    {"planner.use_experience": False, "planner.experience_dir": "learnt"},
    {"image_reader.llm_alias": "x", ROLES: ["planner", "image_reader"]},
    {
        "code_interpreter.enable_auto_plugin_selection": True,
        ROLES: ["planner", "code_interpreter_plugin_only"],
    },
    {"code_interpreter.max_retry_count": 5, ROLES: ["planner", "code_interpreter_cli_only"]},
    {ROLES: ["code_interpreter"], "code_generator.compaction_threshold": 3},
    {"llm.response_format": "text", "llm.form": "json"},
    {"guide.tone": "kind", ROLES: ["planner", "guide"]},
]


@pytest.mark.parametrize("config", IN_FORCE, ids=str)
def test_a_setting_in_force_is_not_named(tmp_path: Path, config: dict[str, Any]) -> None:
    assert list(without_effect(AppConfigSource(None, config, tmp_path))) == []


def test_all_ways_name_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_TYPE", "offline")
    config = {"echo.decorator": "!", "llm.modell": "m", "workspace.mode": "local"}
    config["planner.prompt_file_path"] = "p.yaml"
    project = make_project(tmp_path / "project", config)
    texts = {"instruction_template": "Plan.", "conversation_head": "Now:"}
    write_yaml(project / "p.yaml", {"response_json_schema": "{}", **texts})
    post = {"message": "x", "send_from": "User", "send_to": "Planner"}
    old = {**post, "attachment_list": [{"type": "python", "content": "1"}]}
    for name, posts in {"good": [post], "old": [old], "odd": 3}.items():
        rounds = [{"user_query": "q", "state": "finished", "post_list": posts}]
        path = project / "examples" / "planner_examples" / f"{name}.yaml"
        write_yaml(path, {"enabled": True, "rounds": rounds})
    path.with_name("gone.yaml").symlink_to("nowhere.yaml")
    named = (
        "echo.decorator has no effect", "did you mean 'llm.model'?", "workspace.mode has no effect",
        "conversation_head", "old.yaml", "odd.yaml", "gone.yaml",
    )  # fmt: skip
    script = Script([planner_reply("User", "done")])
    with TaskWeaverApp(project, model=script) as app:
        assert app.get_session().send_message("go").state == "finished"
        log = app.log.path
    assert log is not None
    with TaskWeaver(project) as library:
        kept = "\n".join(library.warnings)
    ran = CliRunner().invoke(commands, ["-p", str(project), "-m", "hello"])
    looked = CliRunner().invoke(commands, ["-p", str(project), "doctor"])
    for shown in ("\n".join(app.warnings), log.read_text("utf-8"), kept, ran.stderr, looked.stdout):
        assert [name for name in named if name not in shown] == []
    assert looked.stdout.count("old.yaml") == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"planner.max_retry_count": null}', "planner.max_retry_count"),
        ('{"session.roles": null}', "session.roles"),
        ('{"planner.use_experience": "perhaps"}', "planner.use_experience"),
        ('{"llm.model": "a", "llm.model": "b"}', "twice"),
    ],
)
def test_a_value_that_cannot_be_used_stops_the_start(
    tmp_path: Path, text: str, problem: str
) -> None:
    project = make_project(tmp_path / "project")
    (project / "taskweaver_config.json").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        TaskWeaverApp(project)


def test_null_leaves_a_text_unset(tmp_path: Path) -> None:
    config = {"planner.prompt_file_path": None, "code_generator.llm_alias": None}
    project = make_project(tmp_path / "project", config)
    with TaskWeaverApp(project, model=Script([planner_reply("User", "done")])) as app:
        assert app.get_session().send_message("go").state == "finished"
