"""Keys of a project that change what a session does, each set as a user sets it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from rounds import ALONE, add_example, add_plugin, ask, keys_of
from support import Script, code_reply, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.keys.known_keys import COMPACTING_ROLES
from taskweaver.module.confirmation import Confirmation
from taskweaver.session.errors import SessionError

pytestmark = pytest.mark.usefixtures("no_states")

ECHO = """from taskweaver.ext_role.echo.echo import Echo


class Parrot(Echo):
    pass
"""
DOUBLE = 'def double(x: int) -> int:\n    """Double a number."""\n    return 2 * x\n'


@contextmanager
def opened(project: Path, replies: Sequence[str] = (), **keys: Any) -> Iterator[tuple[Any, Script]]:
    script = Script(replies)
    values = {name.replace("__", "."): value for name, value in keys.items()}
    with TaskWeaverApp(project, model=script, config=values) as app:
        assert app.warnings == []
        yield app, script


def shown(script: Script, call: int = 0) -> str:
    return "\n".join(str(message["content"]) for message in script.prompts[call])


def test_experiences_are_saved_and_shown_where_configured(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lessons"
    folder.mkdir()
    text = "exp_id: units\nexperience_text: Sales are in thousands.\n"
    (folder / "handcrafted_exp_units.yaml").write_text(text)
    keys: dict[str, Any] = {
        "session__experience_dir": str(folder),
        "planner__use_experience": True,
        "planner__experience_dir": str(folder),
    }
    for least, is_shown in ((0.0, True), (1.0, False)):
        keys["experience__retrieve_threshold"] = least
        with opened(project, [planner_reply("User", "x")], **keys) as (app, script):
            app.get_session().send_message("total sales please, of all regions and years")
            assert app.get_session().config.experience_dir == folder
            assert ("Sales are in thousands." in shown(script)) is is_shown


def test_a_fork_copies_files_up_to_its_limit(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskweaver.utils.file_system.copy_tree.share_storage", lambda *_: False)
    with opened(project, session__fork_limit_mb=1) as (app, _):
        session = app.get_session()
        (session.execution_cwd / "small.bin").write_bytes(b"0" * 1000)
        session.fork("one")
        (session.execution_cwd / "large.bin").write_bytes(b"0" * (2 << 20))
        with pytest.raises(SessionError, match="fork_limit_mb"):
            session.fork("two")


@pytest.mark.parametrize(("after", "calls"), [(1, 2), (3, 4)])
def test_repetitions_end_a_round_after_as_many_as_configured(
    project: Path, after: int, calls: int
) -> None:
    replies = [planner_reply("Echo", "again")] * 9
    keys = {"session__roles": ["planner", "echo"], "session__stuck_after": after}
    with opened(project, replies, **keys) as (app, script):
        app.get_session().send_message("go")
        assert len(script.prompts) == calls


@pytest.mark.parametrize(("level", "is_logged"), [("WARNING", True), ("ERROR", False)])
def test_the_log_has_lines_of_its_level(project: Path, level: str, is_logged: bool) -> None:
    replies = [planner_reply("Nobody", "hello")] * 4
    keys = {"logging__level": level, "planner__max_retry_count": 0}
    with opened(project, replies, **keys) as (app, _):
        app.get_session().send_message("go")
    lines = (project / "logs" / "task_weaver.log").read_text()
    assert (" - WARNING - " in lines) is is_logged


def test_the_logs_of_kernels_are_where_configured(project: Path, tmp_path: Path) -> None:
    keys = ALONE | {"execution.zygote": True, "execution_service.env_dir": str(tmp_path / "env")}
    script = Script([code_reply("1")])
    with TaskWeaverApp(project, model=script, config=keys) as app:
        assert app.get_session().send_message("go").state == "finished"
        assert (tmp_path / "env" / "warm.log").exists()


def test_the_code_model_plays_the_configured_name_with_its_own_examples(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "examples").mkdir()
    add_example(tmp_path / "examples", "Planner", "CodeInterpreter", "of mine")
    add_plugin(project, "double", DOUBLE)
    keys: dict[str, Any] = {
        "session__roles": ["code_interpreter"],
        "code_generator__role_name": "Ada",
        "code_generator__example_base_path": str(tmp_path / "examples"),
    }
    reply = [code_reply("well", "text")]
    for is_on in (True, False):
        keys |= {"code_generator__use_example": is_on, "code_generator__load_plugin": is_on}
        with opened(project, reply, **keys) as (app, script):
            app.get_session().send_message("go")
            prompt = shown(script)
            assert "Ada" in prompt
            assert "ProgramApe" not in prompt
            assert ("example of mine" in prompt) is is_on
            assert ("- double(" in prompt) is is_on


def test_folders_are_where_they_are_configured(project: Path, tmp_path: Path) -> None:
    for name in ("parts/parrot", "examples", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    add_plugin(tmp_path, "double", DOUBLE)
    (tmp_path / "parts" / "parrot" / "parrot.py").write_text(ECHO)
    (tmp_path / "parts" / "parrot" / "parrot.role.yaml").write_text(
        "alias: Parrot\nmodule: parrot.parrot.Parrot\nintro: repeats\n"
    )
    (tmp_path / "elsewhere" / "other.csv").write_text("a\n1\n")
    add_example(tmp_path / "examples", "User", "Planner", "of mine")
    keys: dict[str, Any] = {
        "workspace__workspace_path": str(tmp_path / "work"),
        "plugin__base_path": str(tmp_path / "plugins"),
        "role__base_path": str(tmp_path / "parts"),
        "session__data_dir": str(tmp_path / "elsewhere"),
        "planner__example_base_path": str(tmp_path / "examples"),
        "logging__log_folder": str(tmp_path / "notes"),
        "logging__log_file": "mine.log",
    }
    for has_examples in (True, False):
        keys["planner__use_example"] = has_examples
        with opened(project, [planner_reply("User", "x")], **keys) as (app, script):
            session = app.get_session()
            session.send_message("what is in other.csv?")
            assert (session.execution_cwd / "other.csv").exists()
            assert session.workspace.parent == tmp_path / "work" / "sessions"
            assert list(app.plugins.plugins) == ["double"]
            assert "parrot" in app.roles.get_role_name_list()
            assert ("example of mine" in shown(script)) is has_examples
    assert (tmp_path / "notes" / "mine.log").exists()


def test_a_person_has_the_configured_time(project: Path) -> None:
    limits: list[float] = []

    class Patient:
        def request_confirmation(self, _request: object, timeout_s: float) -> Confirmation:
            limits.append(timeout_s)
            return Confirmation.no

    roles = {"code_interpreter_cli_only": "bash", "code_interpreter": "python"}
    for role, language in roles.items():
        keys = {
            "session__roles": [role],
            f"{role}__require_confirmation": True,
            f"{role}__confirmation_timeout_s": 7.5,
        }
        with opened(project, [code_reply("1", language)], **keys) as (app, _):
            session = app.get_session()
            session.event_emitter.confirmation_handler = Patient()
            session.send_message("go")
    assert limits == [7.5, 7.5]


SUMS_UP = "SUM THIS UP"
"""The beginning of the prompts of summaries."""


@contextmanager
def asked(
    project: Path, replies: Sequence[str], **keys: Any
) -> Iterator[tuple[TaskWeaverApp, list[tuple[str, str]]]]:
    """Open a project; yield it, with model and newest message of each call to its endpoint."""
    found: list[tuple[str, str]] = []
    left = iter(replies)

    def play(call: Call) -> None:
        text = str(call.body["messages"][-1]["content"])
        found.append((call.body["model"], text))
        call.stream(good("Be brief." if call.body["model"] == "sums" else next(left)))

    with serving(play) as endpoint:
        models = {name: {"llm.model": name} for name in ("plans", "codes", "sums")}
        config = keys_of(endpoint.url, **{"ext_llms.llm_configs": models, **keys})
        with TaskWeaverApp(project, config=config) as app:
            yield app, found


def test_each_role_asks_the_model_of_its_alias(project: Path) -> None:
    order, done = planner_reply("CodeInterpreter", "x"), planner_reply("User", "y")
    keys = {"planner.llm_alias": "plans", "code_generator.llm_alias": "codes"}
    with asked(project, [order, code_reply("well", "text"), done], **keys) as (app, calls):
        assert app.get_session().send_message("go").state == "finished"
    assert [model for model, _ in calls] == ["plans", "codes", "plans"]


def test_experiences_are_summed_up_by_the_model_of_their_alias(project: Path) -> None:
    keys = {"experience.llm_alias": "sums", "planner.use_experience": True}
    with asked(project, [planner_reply("User", "y")] * 2, **keys) as (app, calls):
        session = app.get_session()
        session.send_message("go")
        session.memory.save_experience(session.config.experience_dir)
        app.get_session().send_message("again")
    assert [model for model, _ in calls] == ["m", "sums", "m"]


SUMMARIES: list[tuple[dict[str, Any], int]] = [
    ({}, 2),
    ({"prompt_compression": False}, 0),
    ({"compaction_threshold": 50}, 0),
    ({"compaction_threshold": 50, "compaction_token_threshold": 1}, 2),
    ({"compaction_retain_recent": 9}, 0),
]
"""Keys of a role that compacts, and the number of the first two summaries that are made."""


@pytest.mark.parametrize(
    ("role", "keys", "count"),
    [(COMPACTING_ROLES[at % len(COMPACTING_ROLES)], *case) for at, case in enumerate(SUMMARIES)],
)
def test_a_summary_is_made_when_it_is_configured_by_the_model_of_its_alias(
    project: Path, role: str, keys: dict[str, Any], count: int
) -> None:
    content = f"{SUMS_UP} {{PREVIOUS_SUMMARY}} {{content}}"
    (project / "sum.yaml").write_text(f"version: 1\ncontent: '{content}'\n")
    usual = {
        "compaction_prompt_path": str(project / "sum.yaml"), "compaction_threshold": 2,
        "compaction_retain_recent": 1, "compaction_llm_alias": "sums",
    }  # fmt: skip
    values = {f"{role}.{name}": value for name, value in (usual | keys).items()}
    leads = role == "planner"
    values["session.roles"] = ["planner", "echo"] if leads else ["code_interpreter"]
    reply = planner_reply("User", "x") if leads else code_reply("x", "text")
    with asked(project, [reply] * 4, **values) as (app, calls):
        session = app.get_session()
        for number in range(4):
            assert ask(session, f"q {number}.").state == "finished"
    made = [text for model, text in calls if model == "sums"]
    assert len(made[:2]) == count
    if made:
        assert made[0].startswith(SUMS_UP)
        assert "q 0." in made[0]
        assert "q 3." not in made[0]
