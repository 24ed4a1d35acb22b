"""Plugins from the command line: written and tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support import make_project

from taskweaver.cli.main import commands

HEAD = "from taskweaver.plugin import register_plugin, test_plugin\n\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", {"execution.cell_timeout_s": 3})


def said_by(project: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(commands, ["--trust", "-p", str(project), "plugin", *arguments])
    return result.exit_code, result.output


def put(project: Path, name: str, body: str) -> Path:
    (project / "plugins").mkdir(exist_ok=True)
    path = project / "plugins" / f"{name}.py"
    path.write_text(HEAD + body)
    return path


def test_a_new_plugin_works_at_once(project: Path) -> None:
    status, said = said_by(project, "new", "shout")
    assert status == 0
    assert str(project / "plugins" / "shout.py") in said
    assert f"taskweaver -p {project} plugin test shout" in said
    assert said_by(project, "test", "shout") == (
        0,
        "ok   shout: says_it_twice\n1 passed, 0 failures.\n",
    )


@pytest.mark.parametrize("name", ["print", "two words", "../out"])
def test_a_name_that_cannot_be_had_is_refused(project: Path, name: str) -> None:
    status, said = said_by(project, "new", name)
    assert status == 2
    assert "name" in said
    assert not (project / "plugins").exists()


def test_nothing_is_overwritten(project: Path) -> None:
    said_by(project, "new", "shout")
    assert said_by(project, "new", "shout")[0] == 2
    path = put(project, "plain", "x = 1")
    assert "already" in said_by(project, "new", "plain")[1]
    assert path.read_text() == HEAD + "x = 1"
    (project / "plugins" / "other.yaml").write_text("name: [")
    assert "other.yaml describes it already" in said_by(project, "new", "other")[1]


def test_each_test_has_a_line_and_a_failure_is_the_status(project: Path) -> None:
    said_by(project, "new", "shout")
    bodies = {
        "adds": "assert plugin(1, 2) == 3", "fails": "assert plugin(1, 2) == 4",
        "hangs": "__import__('threading').Event().wait()", "leaves": "raise SystemExit(2)",
    }  # fmt: skip
    tests = [f"@test_plugin()\ndef {name}(plugin):\n    {body}\n" for name, body in bodies.items()]
    add = '@register_plugin\ndef add(a, b):\n    """Add."""\n    return a + b\n\n'
    put(project, "add", add + "\n".join(tests))
    ends = "@test_plugin()\ndef ends(plugin):\n    import os\n    os._exit(3)\n"
    put(project, "a", f'@register_plugin\ndef a():\n    """A."""\n\n{ends}')
    put(project, "untested", '@register_plugin\ndef untested():\n    """A."""\n')
    path = put(project, "ends", '@register_plugin\ndef ends():\n    """A."""\n1 / 0\n')
    status, said = said_by(project, "test")
    lines = [line for line in said.splitlines() if not line.startswith("  ")]
    assert status == 1
    assert "The kernel did not do `test` (died)" in lines.pop(0)
    assert lines == [
        "ok   add: adds",
        "FAIL add: fails: AssertionError",
        "FAIL add: hangs: it did not end within 3 s",
        "FAIL add: leaves: SystemExit: 2",
        "ok   shout: says_it_twice",
        "ok   untested: loads; it has no test",
        f"FAIL ends: Plugin 'ends' ({path}): {path} does not load: "
        "ZeroDivisionError: division by zero",
        "3 passed, 5 failures.",
    ]
    assert said_by(project, "test", "untested")[0] == 0
    assert said_by(project, "test", "nobody")[0] == 2
    assert said_by(project, "test", "ends")[0] == 1
