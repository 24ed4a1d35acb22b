"""The three roles that run code: what each may run, alone, under a Planner, and together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rounds import Person, add_plugin, marks, write
from support import Script, code_reply, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.confirmation import Confirmation
from taskweaver.session.errors import SessionError
from taskweaver.utils.files import write_yaml

pytestmark = pytest.mark.usefixtures("no_states")

PLUGINS: dict[str, Any] = {"session.roles": ["code_interpreter_plugin_only"]}
SHELL: dict[str, Any] = {"session.roles": ["code_interpreter_cli_only"]}
PLUGIN_CODE = {
    "double": "def double(x):\n    return [y * 2 for y in x] if isinstance(x, list) else x * 2",
    "free": "def free():\n    open('mark', 'w').write('ran')\n    return {'a': 5}, 'note'",
    "kept": "def kept():\n    return 'kept'",
}


@pytest.fixture
def project(project: Path) -> Path:
    for name in ("double", "free"):
        describe_plugin(project, name)
    return project


def describe_plugin(project: Path, name: str, *, marked: bool = False) -> None:
    """Add a plugin with a description, which may mark it as one for calls of plugins alone."""
    fields = {"name": name, "description": f"does {name}", "parameters": [], "returns": []}
    description = add_plugin(project, name, PLUGIN_CODE[name]).with_suffix(".yaml")
    write_yaml(description, fields | {"plugin_only": marked})


def last(round_: Round) -> Post:
    return round_.post_list[-1]


def bash(code: str) -> str:
    return code_reply(code, "bash")


def test_calls_of_plugins_run_and_their_results_stay(project: Path) -> None:
    cells = [
        "a = double([1, -2])\nparts, note = free()",
        'b = double(x=parts["a"])\nc = double([a[0], {"k": note}.copy])\n[a, b]',
        'b = double(x=parts["a"])\nc = double([a[0], note])\n[a, b, c]',
    ]
    (one, two), script, _ = write(project, *cells, rounds=2, **PLUGINS)
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


def test_whatever_else_is_written_does_not_run(project: Path) -> None:
    config = PLUGINS | {"code_interpreter_plugin_only.max_retry_count": 0}
    config["code_generator.prompt_compression"] = False  # a summary would take a reply
    rounds = write(project, *map(code_reply, NOT_CALLS), **config).rounds
    for cell, round_ in zip(NOT_CALLS, rounds, strict=True):
        assert not last(round_).get_attachment(AttachmentType.execution_status), cell
        assert "came back" in last(round_).message, cell
    assert marks(project) == []


def test_only_marked_plugins_are_called_where_some_are_marked(project: Path) -> None:
    describe_plugin(project, "kept", marked=True)
    (round_,), script, _ = write(project, "free()", "kept()", rounds=1, **PLUGINS)
    assert "the plugins are: kept" in round_.post_list[1].message
    assert "more than calls of plugins" in script.last()
    assert "kept" in last(round_).message
    assert "def free(" not in str(script.prompts[0][0]["content"])
    (round_,), script, _ = write(project, "free()[1] + kept()")
    assert "notekept" in last(round_).message
    assert "- free(" in str(script.prompts[0][0]["content"])


def test_a_command_gives_its_output_and_exit_status_and_python_is_sent_back(project: Path) -> None:
    """A mark that the model wrote is no part of the script."""
    replies = [
        bash("echo out; echo err >&2; exit 3"),
        bash("```bash\nprintf '%s\\n' a b > made.txt\nwc -l < made.txt\n```"),
        bash("%%bash\necho {1+1} $HOME"), "open('mark', 'w')", code_reply("no file", "text"),
    ]  # fmt: skip
    (both, echoed, python), script, _ = write(project, *replies, rounds=3, **SHELL)
    failed, good = both.post_list[1:]
    for part in ("out", "err", "exit status 3"):
        assert part in failed.message
        assert part in script.last(1)
    assert "Traceback" not in failed.message
    assert "2" in good.message
    assert good.get_attachment(AttachmentType.artifact_paths)[0].content == ["made.txt"]
    assert "You answer tasks with shell commands" in str(script.prompts[0][0]["content"])
    assert "def double(" not in str(script.prompts[0][0]["content"])
    assert "{1+1} /" in last(echoed).message
    assert 'must be "bash" or "text"' in script.last()
    assert last(python).message == "no file"


def test_a_person_is_asked_for_what_it_is(project: Path) -> None:
    person = Person(Confirmation.always, Confirmation.no)
    config = PLUGINS | {"code_interpreter_plugin_only.require_confirmation": True}
    cells = ["double(1)", "double(2)", "double(3)\nfree()"]
    said = write(project, *cells, handler=person, **config).said
    assert [set(request.kinds) for request in person.requests] == [
        {"plugin double"}, {"plugin double", "plugin free"},
    ]  # fmt: skip
    assert "did not allow" in said[2]
    person = Person(Confirmation.no)
    config = SHELL | {
        "code_interpreter_cli_only.require_confirmation": True,
        "code_interpreter_cli_only.max_retry_count": 0,
    }
    write(project, bash("touch mark"), handler=person, **config)
    assert [set(request.kinds) for request in person.requests] == [{"shell"}]
    assert person.requests[0].content == "%%bash\ntouch mark"
    assert marks(project) == []


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
    roles = ["planner", *SHELL["session.roles"], *PLUGINS["session.roles"], "code_interpreter"]
    config = {
        "session.roles": roles, "code_interpreter.code_prefix": "prefix = 7",
        "session.state_limit_mb": 0,
    }  # fmt: skip
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.get_session()
        assert session.send_message("go").state == "finished"
        session_id = session.session_id
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.resume_session(session_id)
        assert not (session.workspace / "state").exists()  # its limit is 0
        rebuilt = session.rebuild()
        assert [step.verdict for step in rebuilt.steps] == ["same"] * 3
        with pytest.raises(SessionError, match="taken"):
            session.fork(rebuilt.name)
        assert rebuilt.files == {}
        rebuilt.accept()
        round_ = session.send_message("go on")
    assert "(24, 'once\\n')" in round_.post_list[-2].message


@pytest.mark.parametrize("role", ["code_interpreter_cli_only", "code_interpreter_plugin_only"])
def test_each_has_a_prompt_file_of_its_own(project: Path, role: str) -> None:
    (project / "mine.yaml").write_text("version: 1\ninstruction: only this\n")
    path = str(project / "mine.yaml")
    config: dict[str, Any] = {"session.roles": [role], f"{role}.prompt_file_path": path}
    script = write(project, code_reply("nothing", "text"), **config).script
    assert script.prompts[0][0]["content"] == "only this"
    (project / "mine.yaml").write_text("version: 1\nplugins: x\n")
    with (
        TaskWeaverApp(project, model=script, config=config) as app,
        pytest.raises(ConfigError, match="lacks instruction"),
    ):
        app.get_session()
