"""A chat started as a login shell starts it: printed paths exist, and stored cells are exact.

A shell exports PWD, OLDPWD, HOME and the like; none of them is a secret, wherever one starts.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from command_line import CommandLine
from support import NO_STATES, make_project

from taskweaver.utils.redact import MASK

KEYS = {"llm.api_type": "offline"}
TOKEN = "token = 'abcdefghijklmnop1234'; len(token)"
BETWEEN = re.compile(r"""[\s'"`(),;\[\]{}]+""")
PATH = re.compile(r"[\w.@+~-]*(?:/[\w.@+-]+)+")
NO_PATHS = re.compile(r"/[a-z]+|builtin/\w+|docs/\w+\.md")
"""Commands of the chat, the name of the offline model, and pages of the documentation."""


@dataclass(frozen=True, slots=True)
class Shell:
    home: Path
    cwd: Path
    commands: CommandLine

    def run(self, *arguments: str, text: str = "") -> str:
        """Run the program as the shell does; return its output, in which every path exists."""
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "USER": "analyst",
            "LOGNAME": "analyst", "SHELL": "/bin/bash", "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "PWD": str(self.cwd), "OLDPWD": str(self.home),
        }  # fmt: skip
        done = self.commands.run("--trust", *arguments, env=environment, cwd=self.cwd, text=text)
        assert done.returncode == 0, done.stdout + done.stderr
        for printed in (done.stdout, done.stderr):
            assert MASK not in printed, printed
            assert "***" not in printed, printed
            for path in self.paths(printed):
                assert path.exists(), f"{path} in:\n{printed}"
        return done.stdout

    def paths(self, text: str) -> list[Path]:
        """Return the paths in a text, as this shell would find them."""
        words = [word.rstrip(".:") for word in BETWEEN.split(text)]
        names = [word for word in words if PATH.fullmatch(word) and not NO_PATHS.fullmatch(word)]
        return [self.cwd / name.replace("~", str(self.home), 1) for name in names]


def stored_cells(project: Path) -> list[str]:
    """Return the code in a project's only session, as its file has it."""
    (file,) = (project / "workspace" / "sessions").glob("*/memory.sqlite")
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        bodies = connection.execute("SELECT body FROM posts ORDER BY seq").fetchall()
    parts = [part for (body,) in bodies for part in json.loads(body)["attachment_list"]]
    return [str(part["content"]) for part in parts if part["type"] == "reply_content"]


def test_what_is_printed_exists_and_what_is_stored_is_exact(
    tmp_path: Path, command_line: CommandLine
) -> None:
    project = make_project(tmp_path / "clone-of-the-program" / "project", KEYS | NO_STATES)
    shell = Shell(tmp_path, project.parent, command_line)
    reading = f"path = {str(project / 'data' / 'tiny.csv')!r}; text = open(path).read(); len(text)"
    typed = [TOKEN, reading, "open('saved.txt', 'w').write(path)"]
    files = ["/save", "/export story.ipynb", "/export story.py", "/export story.md", "/info"]
    lines = [f"run this code: {cell}\n/branches" for cell in typed]
    plot = "plot the sum of Count per Region in tiny.csv"
    shown = shell.run("-p", "project/", text="\n".join([*lines, plot, *files]) + "\n")
    names = {path.name for path in shell.paths(shown)}
    assert {"saved.txt", "story.ipynb", "story.py", "story.md"} <= names
    assert any(name.startswith("raw_exp_") for name in names)
    assert any(name.endswith(".png") for name in names)

    cells = stored_cells(project)
    assert cells[:3] == typed
    (notebook,) = project.rglob("story.ipynb")
    exported = json.loads(notebook.read_text())["cells"]
    codes = [cell["source"] for cell in exported if cell["cell_type"] == "code"]
    assert [code for code in codes if code in cells][:3] == typed
    assert "taskweaver" not in "".join(codes)
    assert any("def read_table(" in code for code in codes)
    assert MASK not in "".join(codes)


def test_artifacts_are_named_wherever_one_starts(tmp_path: Path, command_line: CommandLine) -> None:
    project = make_project(tmp_path / "project", KEYS | NO_STATES, has_table=False)
    shell = Shell(tmp_path, tmp_path, command_line)
    code = "run this code: open('saved.txt', 'w').write('done')"
    (path,) = json.loads(shell.run("-p", "project", "--json", "-m", code))["artifacts"]
    assert Path(path).is_relative_to(project)
    assert Path(path).is_file()


def test_a_configured_key_that_is_the_name_of_the_folder_masks_no_path(
    tmp_path: Path, command_line: CommandLine
) -> None:
    """A local server takes any key, and the name of the project comes to mind."""
    keys = {**KEYS, "llm.api_key": "sales-report", "embedding.api_key": "analyst-home"}
    project = make_project(tmp_path / "analyst-home" / "sales-report", keys)
    shell = Shell(tmp_path / "analyst-home", project.parent, command_line)
    shown = shell.run("-p", "sales-report", "doctor", "--json")
    assert str(project) in shown
