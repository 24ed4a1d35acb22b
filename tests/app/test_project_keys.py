"""Keys of a project that change what a session does, each set as a user sets it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from patience import PATIENCE_S
from sizes import some
from support import Script, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.keys.known_keys import COMPACTING_ROLES
from taskweaver.llm.types import ChatMessage
from taskweaver.module.confirmation import Confirmation, ConfirmationRequest
from taskweaver.session.errors import SessionError
from taskweaver.utils.files import write_yaml

pytestmark = pytest.mark.usefixtures("no_states")

ALONE = {"session.roles": ["code_interpreter"]}
ECHO = """from taskweaver.ext_role.echo.echo import Echo


class Parrot(Echo):
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


@contextmanager
def opened(project: Path, replies: Sequence[str] = (), **keys: Any) -> Iterator[tuple[Any, Script]]:
    script = Script(replies)
    values = {name.replace("__", "."): value for name, value in keys.items()}
    with TaskWeaverApp(project, model=script, config=values) as app:
        assert app.warnings == []
        yield app, script


def shown(script: Script, call: int = 0) -> str:
    return "\n".join(str(message["content"]) for message in script.prompts[call])


def test_files_are_found_in_the_data_folder(project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "other.csv").write_text("a\n1\n")
    where = str(tmp_path / "elsewhere")
    with opened(project, [planner_reply("User", "x")], session__data_dir=where) as (app, _):
        session = app.get_session()
        session.send_message("what is in other.csv?")
        assert (session.execution_cwd / "other.csv").exists()


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


def test_folders_are_where_they_are_configured(project: Path, tmp_path: Path) -> None:
    for name in ("plugs", "parts/parrot", "examples"):
        (tmp_path / name).mkdir(parents=True)
    source = "from taskweaver.plugin import register_plugin\n\n\n@register_plugin\n"
    (tmp_path / "plugs" / "double.py").write_text(
        f'{source}def double(x: int) -> int:\n    """Double a number."""\n    return 2 * x\n'
    )
    (tmp_path / "parts" / "parrot" / "parrot.py").write_text(ECHO)
    (tmp_path / "parts" / "parrot" / "parrot.role.yaml").write_text(
        "alias: Parrot\nmodule: parrot.parrot.Parrot\nintro: repeats\n"
    )
    post = {"message": "example of mine", "send_from": "User", "send_to": "Planner"}
    rounds = [{"user_query": "q", "state": "finished", "post_list": [post]}]
    write_yaml(tmp_path / "examples" / "one.yaml", {"enabled": True, "rounds": rounds})
    keys: dict[str, Any] = {
        "workspace__workspace_path": str(tmp_path / "work"),
        "plugin__base_path": str(tmp_path / "plugs"),
        "role__base_path": str(tmp_path / "parts"),
        "planner__example_base_path": str(tmp_path / "examples"),
        "logging__log_folder": str(tmp_path / "notes"),
        "logging__log_file": "mine.log",
    }
    for has_examples in (True, False):
        keys["planner__use_example"] = has_examples
        with opened(project, [planner_reply("User", "x")], **keys) as (app, script):
            session = app.get_session()
            session.send_message("go")
            assert session.workspace.parent == tmp_path / "work" / "sessions"
            assert list(app.plugins.plugins) == ["double"]
            assert "parrot" in app.roles.get_role_name_list()
            assert ("example of mine" in shown(script)) is has_examples
    assert (tmp_path / "notes" / "mine.log").exists()


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
    keys |= {"execution.open_file_limit": 900}  # so that no warm process of other tests serves it
    script = Script([code_reply("1")])
    with TaskWeaverApp(project, model=script, config=keys) as app:
        assert app.get_session().send_message("go").state == "finished"
        assert (tmp_path / "env" / "warm.log").exists()


def test_the_code_model_plays_the_configured_name_with_its_own_examples(
    project: Path, tmp_path: Path
) -> None:
    post = {"message": "example of code", "send_from": "Planner", "send_to": "CodeInterpreter"}
    rounds = [{"user_query": "q", "state": "finished", "post_list": [post]}]
    (tmp_path / "examples").mkdir()
    write_yaml(tmp_path / "examples" / "one.yaml", {"enabled": True, "rounds": rounds})
    (project / "plugins").mkdir()
    (project / "plugins" / "double.py").write_text(
        "from taskweaver.plugin import register_plugin\n\n\n@register_plugin\n"
        'def double(x: int) -> int:\n    """Double a number."""\n    return 2 * x\n'
    )
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
            assert ("example of code" in prompt) is is_on
            assert ("- double(" in prompt) is is_on


@pytest.mark.long
@pytest.mark.parametrize(("is_on", "most"), [(False, 1), (True, 1), (True, 2)])
def test_plugins_that_suit_are_shown_where_they_are_chosen(
    project: Path, is_on: bool, most: int
) -> None:
    (project / "plugins").mkdir()
    for name, about in {"rain": "rain fall", "wind": "wind speed", "tax": "tax rates"}.items():
        (project / "plugins" / f"{name}.py").write_text(
            "from taskweaver.plugin import register_plugin\n\n\n@register_plugin\n"
            f'def {name}() -> int:\n    """Return {about}."""\n    return 1\n'
        )
    keys = {
        "session__roles": ["code_interpreter"],
        "code_interpreter__enable_auto_plugin_selection": is_on,
        "code_interpreter__auto_plugin_selection_topk": most,
    }
    with opened(project, [code_reply("well", "text")], **keys) as (app, script):
        app.get_session().send_message("how much rain?")
        names = [name for name in ("rain", "wind", "tax") if f"- {name}(" in shown(script)]
    assert len(names) == (most if is_on else 3)
    assert "rain" in names


class Patient:
    """An answer of no, which keeps how long it was given."""

    def __init__(self) -> None:
        self.limits: list[float] = []

    def request_confirmation(self, _request: ConfirmationRequest, timeout_s: float) -> Confirmation:
        self.limits.append(timeout_s)
        return Confirmation.no


@pytest.mark.parametrize(
    ("role", "code", "language"),
    some(
        [
            ("code_interpreter_plugin_only", "double(1)", "python"),
            ("code_interpreter_cli_only", "true", "bash"),
            ("code_interpreter", "1", "python"),
        ],
        1,
    ),
)
def test_a_person_has_the_configured_time(
    project: Path, role: str, code: str, language: str
) -> None:
    (project / "plugins").mkdir()
    (project / "plugins" / "double.py").write_text(
        "from taskweaver.plugin import register_plugin\n\n\n@register_plugin\n"
        'def double(x: int) -> int:\n    """Double a number."""\n    return 2 * x\n'
    )
    person = Patient()
    keys = {
        "session.roles": [role],
        f"{role}.require_confirmation": True,
        f"{role}.confirmation_timeout_s": 7.5,
    }
    script = Script([code_reply(code, language)])
    with TaskWeaverApp(project, model=script, config=keys) as app:
        session = app.get_session()
        session.event_emitter.confirmation_handler = person
        session.send_message("go")
    assert person.limits == [7.5]


def test_a_command_that_fails_is_sent_back_as_often_as_configured(project: Path) -> None:
    keys = {
        "session__roles": ["code_interpreter_cli_only"],
        "code_interpreter_cli_only__max_retry_count": 1,
    }
    with opened(project, [code_reply("exit 3", "bash")] * 5, **keys) as (app, script):
        app.get_session().send_message("go")
        assert len(script.prompts) == 2


def test_the_orchestrator_has_a_prompt_file_of_its_own(project: Path) -> None:
    (project / "mine.yaml").write_text("version: 1\ninstruction: only this\n")
    keys = {
        "session__roles": ["code_interpreter_plugin_only"],
        "code_interpreter_plugin_only__prompt_file_path": str(project / "mine.yaml"),
    }
    with opened(project, [code_reply("well", "text")], **keys) as (app, script):
        app.get_session().send_message("go")
        assert script.prompts[0][0]["content"] == "only this"


def test_each_role_asks_the_model_of_its_alias(project: Path) -> None:
    replies = [
        planner_reply("CodeInterpreter", "x"),
        code_reply("well", "text"),
        planner_reply("User", "y"),
    ]

    def play(call: Call) -> None:
        call.stream(good(replies[call.number]))

    with serving(play) as endpoint:
        keys = {
            "llm.api_base": endpoint.url,
            "llm.model": "main",
            "ext_llms.llm_configs": {"p": {"llm.model": "plans"}, "c": {"llm.model": "codes"}},
            "planner.llm_alias": "p",
            "code_generator.llm_alias": "c",
        }
        with TaskWeaverApp(project, config=keys) as app:
            assert app.get_session().send_message("go").state == "finished"
        assert [call.body["model"] for call in endpoint.calls] == ["plans", "codes", "plans"]


def test_experiences_are_summed_up_by_the_model_of_their_alias(project: Path) -> None:
    asked: list[str] = []

    def play(call: Call) -> None:
        asked.append(call.body["model"])
        is_summary = call.body["model"] == "sums"
        call.stream(good("Be brief." if is_summary else planner_reply("User", "y")))

    with serving(play) as endpoint:
        keys = {
            "llm.api_base": endpoint.url,
            "llm.model": "main",
            "ext_llms.llm_configs": {"s": {"llm.model": "sums"}},
            "experience.llm_alias": "s",
            "planner.use_experience": True,
        }
        with TaskWeaverApp(project, config=keys) as app:
            session = app.get_session()
            session.send_message("go")
            session.memory.save_experience(session.config.experience_dir)
            app.get_session().send_message("again")
    assert asked == ["main", "sums", "main"]


MARK = "SUM THIS UP"


class Summaries:
    """A model that answers at once, and keeps the prompts of summaries."""

    def __init__(self, reply: str) -> None:
        self._reply = reply
        self.asked: list[str] = []

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        text = str(messages[-1]["content"])
        if MARK not in text:
            return self._reply
        self.asked.append(text)
        return "in short"


def summaries(project: Path, role: str, rounds: int, query: str = "q", **keys: Any) -> list[str]:
    """Return the prompts of the summaries of some rounds, each made before the next round."""
    content = f"{MARK} {{PREVIOUS_SUMMARY}} {{content}}"
    (project / "sum.yaml").write_text(f"version: 1\ncontent: '{content}'\n")
    alone = "planner" if role == "planner" else "code_interpreter"
    values: dict[str, Any] = {
        "session.roles": [alone, *(["echo"] if role == "planner" else [])],
        f"{role}.compaction_prompt_path": str(project / "sum.yaml"),
        f"{role}.compaction_threshold": 2,
        f"{role}.compaction_retain_recent": 1,
    }
    values |= {f"{role}.{name}": value for name, value in keys.items()}
    reply = planner_reply("User", "x") if role == "planner" else code_reply("x", "text")
    model = Summaries(reply)
    with TaskWeaverApp(project, model=model, config=values) as app:
        session = app.get_session()
        for number in range(rounds):
            assert session.send_message(f"{query} {number}.").state == "finished"
            settle()
    return model.asked


def settle() -> None:
    for thread in [item for item in threading.enumerate() if item.name == "compaction"]:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("role", COMPACTING_ROLES)
def test_old_rounds_are_summed_up_as_configured(project: Path, role: str) -> None:
    first, *_ = summaries(project, role, 4)  # compaction_threshold and _prompt_path are set
    assert "q 0." in first
    assert "q 2." not in first


SUMMARIES: list[tuple[dict[str, Any], int]] = [
    ({"prompt_compression": False}, 0),
    ({"compaction_threshold": 50}, 0),
    ({"compaction_threshold": 50, "compaction_token_threshold": 1}, 2),
    ({"compaction_retain_recent": 9}, 0),
]
"""Keys of a role that compacts, and the number of the first two summaries that are made."""
BY_ROLE = [
    (COMPACTING_ROLES[(number + shift) % len(COMPACTING_ROLES)], *case)
    for shift in range(len(COMPACTING_ROLES))
    for number, case in enumerate(SUMMARIES)
]
"""Each with each role; the first ones have each case once, and all roles."""


@pytest.mark.parametrize(("role", "keys", "count"), some(BY_ROLE, len(SUMMARIES)))
def test_a_summary_is_made_when_it_is_configured(
    project: Path, role: str, keys: dict[str, Any], count: int
) -> None:
    assert len(summaries(project, role, 4, **keys)[:2]) == count


@pytest.mark.parametrize("role", some(COMPACTING_ROLES, 1))
def test_summaries_are_made_by_the_model_of_their_alias(project: Path, role: str) -> None:
    asked: list[str] = []
    reply = planner_reply("User", "x") if role == "planner" else code_reply("x", "text")

    def play(call: Call) -> None:
        asked.append(call.body["model"])
        call.stream(good("in short" if call.body["model"] == "sums" else reply))

    with serving(play) as endpoint:
        keys = {
            "llm.api_base": endpoint.url,
            "llm.model": "main",
            "ext_llms.llm_configs": {"s": {"llm.model": "sums"}},
            "session.roles": ["planner", "echo"] if role == "planner" else ["code_interpreter"],
            f"{role}.compaction_threshold": 2,
            f"{role}.compaction_retain_recent": 1,
            f"{role}.compaction_llm_alias": "s",
        }
        with TaskWeaverApp(project, config=keys) as app:
            session = app.get_session()
            for number in range(4):
                session.send_message(f"q {number}")
                settle()
    assert "sums" in asked
