"""The three roles that run code: what each may run, alone, under a Planner, and together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kept_sessions import KeptSessions
from live_folders import paths_below
from support import Script, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.confirmation import Confirmation, ConfirmationRequest

pytestmark = pytest.mark.usefixtures("no_states")

PLUGINS: dict[str, Any] = {"session.roles": ["code_interpreter_plugin_only"]}
SHELL: dict[str, Any] = {"session.roles": ["code_interpreter_cli_only"]}
ALL: dict[str, Any] = {
    "session.roles": [
        "planner", "code_interpreter", "code_interpreter_plugin_only", "code_interpreter_cli_only",
    ],
}  # fmt: skip
DOUBLE = "def double(x):\n    return [part * 2 for part in x] if isinstance(x, list) else x * 2\n"
COUNT = (
    "class Count(Plugin):\n    calls = 0\n    def __call__(self):\n"
    "        self.calls += 1\n        return self.calls\n"
)
FREE = "def free():\n    open('mark', 'w').write('ran')\n    return {'a': 5}, 'note'\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project", has_table=False)
    add_plugin(folder, "double", DOUBLE)
    add_plugin(folder, "free", FREE)
    return folder


def add_plugin(project: Path, name: str, source: str, *, marked: bool = False) -> None:
    folder = project / "plugins"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\ndescription: does {name}\nparameters: []\nreturns: []\n"
        f"plugin_only: {str(marked).lower()}\n"
    )
    start = "from taskweaver.plugin import Plugin, register_plugin\n@register_plugin\n"
    (folder / f"{name}.py").write_text(start + source)


def ask(
    project: Path,
    config: dict[str, Any],
    replies: list[str],
    *,
    rounds: int = 1,
    handler: Any = None,
) -> tuple[list[Round], Script]:
    script = Script(replies)
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert app.warnings == []
        session = app.get_session()
        session.event_emitter.confirmation_handler = handler
        return [session.send_message("go") for _ in range(rounds)], script


class GoingOn:
    """Sessions that go on through the tests, with the plugins of a project."""

    def __init__(self, folder: Path, kept: KeptSessions) -> None:
        self._kept = kept
        self._plugins = folder / "plugins"
        add_plugin(folder, "double", DOUBLE)
        add_plugin(folder, "free", FREE)

    def ask(
        self, config: dict[str, Any], replies: list[str], *, rounds: int = 1
    ) -> tuple[list[Round], Script, list[Path]]:
        """Play rounds; return the marks that code has left, too."""
        script, path = Script(replies), {"plugin.base_path": str(self._plugins)}
        session = self._kept.scripted(script, **config, **path)
        return [session.send_message("go") for _ in range(rounds)], script, marks(session.workspace)


@pytest.fixture(scope="module")
def going_on(kept_sessions: KeptSessions, tmp_path_factory: pytest.TempPathFactory) -> GoingOn:
    return GoingOn(tmp_path_factory.mktemp("plugins"), kept_sessions)


def last(round_: Round) -> Post:
    return round_.post_list[-1]


def marks(project: Path) -> list[Path]:
    return paths_below(project, "mark")


class Person:
    """Answers what it is asked, and keeps it."""

    def __init__(self, *answers: Confirmation) -> None:
        self.answers = list(answers)
        self.requests: list[ConfirmationRequest] = []

    def request_confirmation(self, request: ConfirmationRequest, timeout_s: float) -> Confirmation:
        assert timeout_s > 0
        self.requests.append(request)
        return self.answers.pop(0)


def test_calls_of_plugins_run_and_their_results_stay(project: Path) -> None:
    cells = [
        "a = double([1, -2])\nparts, note = free()",
        'b = double(x=parts["a"])\nc = double([a[0], {"k": note}.copy])\n[a, b]',
        'b = double(x=parts["a"])\nc = double([a[0], note])\n[a, b, c]',
    ]
    (one, two), script = ask(project, PLUGINS, [code_reply(cell) for cell in cells], rounds=2)
    assert last(one).get_attachment(AttachmentType.verification)[0].content == "CORRECT"
    assert "only results have parts" in two.post_list[1].message
    assert "[[2, -4], 10, [4, 'notenote']]" in last(two).message
    assert "def double(" in str(script.prompts[0][0]["content"])
    assert "You answer tasks by calling plugins" in str(script.prompts[0][0]["content"])


NOT_CALLS = [
    "import os", "from os import system", "open()", "x = open('mark', 'w')", "!touch mark",
    "%cd ..", "%%bash\ntouch mark", "for i in [1]:\n    double(i)", "if True:\n    free()",
    "while free(): pass", "with free() as f: pass", "x = 1", "x = double", "double(double)",
    "double(free())", "double(1 + 1)", "double(f'{free()}')", "double([free() for _ in 'ab'])",
    "double(lambda: free())", "double(*[1])", "double(**{'x': 1})", "double({**{}})", "double(pd)",
    "double(__builtins__)", "double(double.__class__)", "double((1).real)", "double('a'.upper())",
    "double = free()", "print = free()", "_x = free()", "get_ipython = free()", "a = b = free()",
    "a[0] = free()", "a.b = free()", "a: int = free()", "(a := free())", "double(a := 1)",
    "def free(): pass", "class A: pass", "del double", "free", "x", "double(x)", "double(1).real()",
    "get_ipython().system('touch mark')", "free(", "", "# nothing", "'text'", "double?", "ls",
    "rm -rf x", "a = free(); a.__class__", "a = free(); double(a._x)", "a = free(); a['k']",
    "a = free(); a.copy()", "a = free(); double(a[0:1])", "double(x=1 if free() else 2)",
    "await free()", "assert free()", "global a", "double" + "(" * 300 + ")" * 300, "\0",
]  # fmt: skip


@pytest.mark.parametrize("part", [NOT_CALLS[at::2] for at in range(2)])
def test_whatever_else_is_written_does_not_run(going_on: GoingOn, part: list[str]) -> None:
    config = PLUGINS | {"code_interpreter_plugin_only.max_retry_count": 0}
    replies = [code_reply(cell) for cell in part]
    rounds, _, left = going_on.ask(config, replies, rounds=len(part))
    for cell, round_ in zip(part, rounds, strict=True):
        assert not last(round_).get_attachment(AttachmentType.execution_status), cell
        assert "came back" in last(round_).message, cell
    assert left == []


def test_only_marked_plugins_are_called_where_some_are_marked(project: Path) -> None:
    add_plugin(project, "kept", "def kept():\n    return 'kept'\n", marked=True)
    replies = [code_reply("free()"), code_reply("kept()")]
    (round_,), script = ask(project, PLUGINS, replies)
    assert "the plugins are: kept" in round_.post_list[1].message
    assert "more than calls of plugins" in script.last()
    assert "kept" in last(round_).message
    assert "def free(" not in str(script.prompts[0][0]["content"])
    (round_,), script = ask(
        project, {"session.roles": ["code_interpreter"]}, [code_reply("free()[1] + kept()")]
    )
    assert "notekept" in last(round_).message
    assert "- free(" in str(script.prompts[0][0]["content"])


def test_a_command_gives_its_output_and_exit_status(going_on: GoingOn) -> None:
    replies = [
        code_reply("echo out; echo err >&2; exit 3", "bash"),
        code_reply("```bash\nprintf '%s\\n' a b > made.txt\nwc -l < made.txt\n```", "bash"),
    ]
    (round_,), script, _ = going_on.ask(SHELL, replies)
    failed, good = round_.post_list[1:]
    for part in ("out", "err", "exit status 3"):
        assert part in failed.message
        assert part in script.last()
    assert "Traceback" not in failed.message
    assert "2" in good.message
    assert good.get_attachment(AttachmentType.artifact_paths)[0].content == ["made.txt"]
    assert "You answer tasks with shell commands" in str(script.prompts[0][0]["content"])
    assert "def double(" not in str(script.prompts[0][0]["content"])


def test_a_mark_the_model_wrote_is_no_part_of_the_script(going_on: GoingOn) -> None:
    written = ["!echo {1+1} $HOME", "%%bash\necho {1+1} $HOME"]
    rounds, _, _ = going_on.ask(SHELL, [code_reply(text, "bash") for text in written], rounds=2)
    for round_ in rounds:
        assert "{1+1} /" in last(round_).message


def test_python_from_a_shell_model_is_sent_back(going_on: GoingOn) -> None:
    replies = [code_reply("open('mark', 'w')"), code_reply("no file", "text")]
    (round_,), script, left = going_on.ask(SHELL, replies)
    assert 'must be "bash" or "text"' in script.last()
    assert last(round_).message == "no file"
    assert left == []


def test_a_person_is_asked_for_what_it_is(project: Path) -> None:
    person = Person(Confirmation.always, Confirmation.no)
    config = PLUGINS | {"code_interpreter_plugin_only.require_confirmation": True}
    cells = ["double(1)", "double(2)", "double(3)\nfree()"]
    rounds, _ = ask(project, config, [code_reply(c) for c in cells], rounds=3, handler=person)
    assert [set(request.kinds) for request in person.requests] == [
        {"plugin double"}, {"plugin double", "plugin free"},
    ]  # fmt: skip
    assert "did not allow" in last(rounds[2]).message
    assert marks(project) == []
    person = Person(Confirmation.no)
    config = SHELL | {"code_interpreter_cli_only.require_confirmation": True}
    ask(project, config, [code_reply("touch mark", "bash")], handler=person)
    assert [set(request.kinds) for request in person.requests] == [{"shell"}]
    assert person.requests[0].content == "%%bash\ntouch mark"
    assert marks(project) == []


def test_all_three_work_on_one_kernel(project: Path) -> None:
    add_plugin(project, "count", COUNT)
    replies = [
        planner_reply("CodeInterpreter", "make x"), code_reply("x = count() + 40"),
        planner_reply("CodeInterpreter", "look"), code_reply("pwd"),
        planner_reply("CodeInterpreter", "list"), code_reply("ls -1"),
        planner_reply("PluginOrchestrator", "double it"), code_reply("y = double(x)\nz = count()"),
        planner_reply("CLIAgent", "list"), code_reply("ls > names.txt; echo listed", "bash"),
        planner_reply("CodeInterpreter", "sum up"), code_reply("(y, z, open('names.txt').read())"),
        planner_reply("User", "done"),
    ]  # fmt: skip
    (round_,), script = ask(project, ALL, replies)
    assert round_.state == "finished"
    senders = [post.send_from for post in round_.post_list[2::2]]
    assert senders == [
        *["CodeInterpreter"] * 3, "PluginOrchestrator", "CLIAgent", "CodeInterpreter",
    ]  # fmt: skip
    assert "(82, 2, 'names.txt\\n')" in round_.post_list[-2].message.replace('"', "'")
    for alias in ("PluginOrchestrator", "CLIAgent"):
        assert f"### {alias}\n" in str(script.prompts[0][0]["content"])


def test_cells_of_all_roles_are_rebuilt_once_in_their_order_and_commands_are_not(
    project: Path,
) -> None:
    replies = [
        planner_reply("CodeInterpreter", "a"), code_reply("x = globals().get('x', 0) + prefix"),
        planner_reply("PluginOrchestrator", "b"), code_reply("x = double(x)"),
        planner_reply("CLIAgent", "c"), code_reply("echo once >> log.txt", "bash"),
        planner_reply("CodeInterpreter", "d"), code_reply("x = x + 10"),
        planner_reply("User", "ok"),
        planner_reply("CodeInterpreter", "e"), code_reply("(x, open('log.txt').read())"),
        planner_reply("User", "ok"),
    ]  # fmt: skip
    script = Script(replies)
    roles = ["planner", *reversed(ALL["session.roles"][1:])]
    config = {"session.roles": roles, "code_interpreter.code_prefix": "prefix = 7"}
    config |= {"session.state_limit_mb": 0}
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.get_session()
        assert session.send_message("go").state == "finished"
        session_id = session.session_id
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.resume_session(session_id)
        assert not (session.workspace / "state").exists()  # its limit is 0
        rebuilt = session.rebuild()
        assert [step.verdict for step in rebuilt.steps] == ["same"] * 3
        assert rebuilt.files == {}
        rebuilt.accept()
        round_ = session.send_message("go on")
    assert "(24, 'once\\n')" in round_.post_list[-2].message


def test_each_has_a_prompt_file_of_its_own(project: Path) -> None:
    (project / "mine.yaml").write_text("version: 1\ninstruction: only this\n")
    config = SHELL | {"code_interpreter_cli_only.prompt_file_path": str(project / "mine.yaml")}
    _, script = ask(project, config, [code_reply("nothing", "text")])
    assert script.prompts[0][0]["content"] == "only this"
    (project / "mine.yaml").write_text("version: 1\nplugins: x\n")
    with (
        TaskWeaverApp(project, model=script, config=config) as app,
        pytest.raises(ConfigError, match="lacks instruction"),
    ):
        app.get_session()
