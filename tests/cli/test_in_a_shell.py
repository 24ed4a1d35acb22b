"""A chat started as a login shell starts it: printed paths exist, and stored cells are exact.

A shell exports PWD, OLDPWD, HOME and the like; none of them is a secret, wherever one starts.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from sizes import some
from support import NO_STATES, make_project
from warm_commands import WarmCommands

from taskweaver.utils.redact import MASK

IDEA = "# Classify\n\nMetric: accuracy, higher is better\n\nBuilt-in proposer: `tabular`\n"
KEYS = {
    "llm.api_type": "offline",
    "search.workers": 1,
    "search.num_seeds": 0,
    "search.num_drafts": 1,
    "search.stage1_nodes": 1,
    "search.stage2_nodes": 0,
    "search.stage3_nodes": 0,
    "search.stage4_nodes": 0,
}
TOKEN = "token = 'abcdefghijklmnop1234'; len(token)"
BETWEEN = re.compile(r"""[\s'"`(),;\[\]{}]+""")
PATH = re.compile(r"[\w.@+~-]*(?:/[\w.@+-]+)+")
NO_PATHS = re.compile(r"/[a-z]+|builtin/\w+|docs/\w+\.md")
"""Commands of the chat, the name of the offline model, and pages of the documentation."""


@dataclass(frozen=True, slots=True)
class Shell:
    """A login shell in a folder.

    Attributes:
        home: The user's home folder.
        cwd: The folder it is in.
        commands: What starts the program.
    """

    home: Path
    cwd: Path
    commands: WarmCommands

    def run(self, *arguments: str, text: str | None = None) -> str:
        """Run the program as the shell does; return its output, in which every path exists."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "USER": "analyst",
            "LOGNAME": "analyst",
            "SHELL": "/bin/bash",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PWD": str(self.cwd),
            "OLDPWD": str(self.home),
        }
        done = self.commands.run(
            "--trust", *arguments, env=environment, cwd=self.cwd, text=text or ""
        )
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


@dataclass(frozen=True, slots=True)
class Start:
    """A way to start the program.

    Attributes:
        shell: Where.
        options: The options that name the project.
        project: The project.
    """

    shell: Shell
    options: Sequence[str]
    project: Path

    def run(self, *arguments: str, text: str | None = None) -> str:
        """Run the program for the project."""
        return self.shell.run(*self.options, *arguments, text=text)


PLACES = ("another folder", "above", "the project", "the clone")


def started(
    tmp_path: Path, place: str, commands: WarmCommands, *, has_table: bool = True, **keys: int
) -> Start:
    """Make a project, and go to a place to start from."""
    folder = tmp_path / "clone-of-the-program" / "project"
    project = make_project(folder, KEYS | keys, has_table=has_table)
    other = tmp_path / "quite-another-folder"
    other.mkdir()
    cwd, options = {
        "the clone": (project.parent, ["-p", "project/"]),
        "the project": (project, []),
        "above": (tmp_path, ["-p", str(project.relative_to(tmp_path))]),
        "another folder": (other, ["-p", str(project)]),
    }[place]
    return Start(Shell(tmp_path, cwd, commands), options, project)


def stored_cells(project: Path) -> list[str]:
    """Return the code in a project's only session, as its file has it."""
    (file,) = (project / "workspace" / "sessions").glob("*/memory.sqlite")
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        bodies = connection.execute("SELECT body FROM posts ORDER BY seq").fetchall()
    parts = [part for (body,) in bodies for part in json.loads(body)["attachment_list"]]
    return [str(part["content"]) for part in parts if part["type"] == "reply_content"]


def told(start: Start) -> tuple[str, list[str]]:
    """Have a conversation; return what it showed, and the cells that were typed."""
    data = start.project / "data" / "tiny.csv"
    reading = f"path = {str(data)!r}; text = open(path).read(); len(text)"
    saving = "open('saved.txt', 'w').write(path)"
    typed = [TOKEN, reading, saving]
    files = ["/save", "/export story.ipynb", "/export story.py", "/export story.md", "/info"]
    lines = [f"run this code: {cell}\n/branches" for cell in typed]
    plot = "plot the sum of Count per Region in tiny.csv"
    return start.run(text="\n".join([*lines, plot, *files]) + "\n"), typed


def test_what_is_printed_exists_and_what_is_stored_is_exact(
    tmp_path: Path, warm_commands: WarmCommands
) -> None:
    start = started(tmp_path, "the clone", warm_commands, **NO_STATES)
    shown, typed = told(start)
    names = {path.name for path in start.shell.paths(shown)}
    assert {"saved.txt", "story.ipynb", "story.py", "story.md"} <= names
    assert any(name.startswith("raw_exp_") for name in names)
    assert any(name.endswith(".png") for name in names)

    cells = stored_cells(start.project)
    assert cells[:3] == typed
    (notebook,) = start.project.rglob("story.ipynb")
    exported = json.loads(notebook.read_text())["cells"]
    codes = [cell["source"] for cell in exported if cell["cell_type"] == "code"]
    assert [code for code in codes if code in cells] == typed
    assert "read_table" not in "".join(codes)
    assert any("pd.read_csv('tiny.csv')" in code for code in codes)
    assert MASK not in "".join(codes)


@pytest.mark.long
def test_what_is_stored_ran(tmp_path: Path, warm_commands: WarmCommands) -> None:
    start = started(tmp_path, "the clone", warm_commands)
    told(start)
    cells = stored_cells(start.project)
    data = start.project / "data" / "tiny.csv"
    facts = start.run("--json", "--resume", "-m", "run this code: (len(token), len(path), text)")
    answer = json.loads(facts)["answer"]
    assert str((20, len(str(data)), data.read_text())) in answer
    assert stored_cells(start.project)[:-1] == cells
    (experience,) = (start.project / "experience").glob("raw_exp_*.yaml")
    replayed = start.run("replay", str(experience))
    assert "5 cells: 5 same" in replayed


@pytest.mark.parametrize("place", some(PLACES, 1))
def test_artifacts_and_findings_are_named_wherever_one_starts(
    tmp_path: Path, warm_commands: WarmCommands, place: str
) -> None:
    start = started(tmp_path, place, warm_commands, has_table=False, **NO_STATES)
    facts = start.run("--json", "-m", "run this code: open('saved.txt', 'w').write('done')")
    artifacts = json.loads(facts)["artifacts"]
    assert artifacts
    assert all(Path(path).is_absolute() and Path(path).is_file() for path in artifacts)
    found = start.run("doctor", *(["--json"] if place == "above" else []))
    assert str(start.project) in found
    assert str(start.project / "workspace") in found


@pytest.mark.long
def test_a_search_names_its_report_and_its_page(
    tmp_path: Path, warm_commands: WarmCommands
) -> None:
    start = started(tmp_path, "the clone", warm_commands)
    (start.project / "idea.md").write_text(IDEA)
    said = start.run("search", "project/idea.md", "--plain", "--name", "first")
    run = start.project / "experiments" / "first"
    assert f"report: {run / 'report.md'}" in said
    assert f"page:   {run / 'tree.html'}" in said
    assert run.stat().st_mode & 0o077 == 0


def test_a_configured_key_that_is_the_name_of_the_folder_masks_no_path(
    tmp_path: Path, warm_commands: WarmCommands
) -> None:
    """A local server takes any key, and the name of the project comes to mind."""
    keys = {**KEYS, "llm.api_key": "sales-report", "embedding.api_key": "analyst-home"}
    project = make_project(tmp_path / "analyst-home" / "sales-report", keys)
    shell = Shell(tmp_path / "analyst-home", project.parent, warm_commands)
    shown = shell.run("-p", "sales-report", "doctor", "--json")
    assert str(project) in shown
