"""Every block of README.md and docs/*.md works, or is listed with the reason why it is not run.

Those of the first two pages run in `make test`, and code of two more. Those of the others run in
`make long`; their commands, options, imports and arguments fit the program in `make test`, too.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from blocks import PAGES, ROOT, Block, all_blocks
from click.testing import CliRunner, Result
from search_figures import bare_figures
from support import has_bwrap, trust_project

from taskweaver import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.config.check import check
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.keys.known_keys import find

FIRST = ("README.md", "console.md")
CODE_FIRST = (*FIRST, "library.md", "memory.md")
"""Pages whose blocks, and whose code, run in `make test`."""
DONE: set[str] = set()
"""Commands that have run; one that stands in two documents runs once."""

LANGUAGES = {"chat", "json", "python", "sh", "text", "yaml"}
COMMAND = re.compile(r"(python -m|taskweaver|make|pip|git|docker|export) ?(?![\w/]*:)\S")

NOT_RUN = (
    *("git clone", "make chat", "python -m pip install", "pip install", "uvx ", "docker run"),
    "taskweaver # chat",  # a terminal
    "python -m taskweaver -p project/ sessions repair",  # a damaged session
    *("taskweaver -p sales serve --", "taskweaver -p sales web"),  # serve until Ctrl-C
    *("dask ", "taskweaver -p lab search idea.md --executor dask"),  # other hosts
    "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 ",  # a collector
    "sqlite3 ",
)
"""Begins of commands that no test here runs, with the reason."""

ELSEWHERE = {
    "mcp.md": "mcp_/test_mcp_guide.py",
    "plugins.md": "plugin/test_plugin_guide.py",
    "roles.md": "ext_role/test_role_guide.py",
    "tutorial.md": "docs_/test_tutorial.py",
}
"""Pages whose code has a test of its own."""

FRAGMENTS = {
    "models.md": "the prompts of a session, and a function that plays the model",
    "tables.md": "a function that kernels alone have",
    "security.md": "a handler of confirmations, for a program with two threads",
}
SEARCH = {
    **dict.fromkeys(("WORKERS", "NUM_DRAFTS", "STAGE1_NODES"), "1"),
    **dict.fromkeys(("NUM_SEEDS", "STAGE2_NODES", "STAGE3_NODES", "STAGE4_NODES"), "0"),
}
COLD = {"execution.zygote": False, "execution.sandbox": "none"}


def cases(*languages: str, first: tuple[str, ...] = FIRST) -> list[Any]:
    """Return the blocks in some languages; those of later pages are long."""
    later = pytest.mark.long
    return [
        pytest.param(block, id=str(block), marks=() if block.page in first else later)
        for block in all_blocks(*languages)
        if block.page != "tutorial.md"  # one conversation, with a test of its own
    ]


def run(arguments: list[str], text: str | None = None) -> Result:
    return CliRunner().invoke(commands, arguments, input=text)


def make_cold(project: Path) -> None:
    """Let the kernels of a project start cold, and in no sandbox; its user trusts it."""
    file = project / "taskweaver_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | COLD))
    trust_project(project)


def new_project(folder: Path) -> Path:
    """Make the project of `init`, in place of one that is there."""
    shutil.rmtree(folder, ignore_errors=True)
    result = run(["init", str(folder)])
    assert result.exit_code == 0, result.output
    make_cold(folder)
    return folder


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the commands use, after the steps that the documents take as done."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("project", "plugins"):
        shutil.copytree(ROOT / name, folder / name)
    make_cold(folder / "project")
    for policy in ("best_first", "uct"):
        (folder / f"{policy}.json").write_text(json.dumps({"search.policy": policy}))
    sales = folder / "project" / "data" / "sales.csv"
    shutil.copy(sales, folder / "next_month.csv")
    shutil.copytree(ROOT / "tests" / "fixtures" / "original_project", folder / "my_project")
    shutil.copy(sales, folder / "a.csv")
    (folder / "my_project" / "taskweaver_config.json").write_text("{}")
    trust_project(folder / "my_project")
    new_project(folder / "sales")
    (folder / "lab").mkdir()
    return folder


@pytest.fixture(autouse=True)
def place(clone: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The clone as the current folder, with the offline analyst."""
    monkeypatch.chdir(clone)
    monkeypatch.setenv("LLM_API_TYPE", "offline")
    monkeypatch.setattr(click, "launch", lambda *_: 0)
    for name, value in SEARCH.items():
        monkeypatch.setenv(f"SEARCH_{name}", value)
    with bare_figures():
        yield clone


def newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


def saved(clone: Path) -> tuple[Path, str]:
    """Return a saved conversation and the id of its session, made once."""
    project = clone / "project"
    if not list((project / "experience").glob("raw_exp_*.yaml")):
        (lines,) = [
            item.text
            for item in all_blocks("chat")
            if "/save" in item.text and item.page != "tutorial.md"
        ]
        script = "\n".join(line[2:] for line in lines.splitlines())
        script += "\nhow many rows are in sales.csv?\n/export receipt a\n"
        result = run(["-p", "project", "chat"], script)
        assert result.exit_code == 0, result.output
        receipt = newest(project / "workspace" / "sessions", "**/a.receipt.json")
        for name in ("a.receipt.json", "monthly.receipt.json"):
            shutil.copy(receipt, clone / name)
    file = newest(project / "experience", "raw_exp_*.yaml")
    return file, file.stem.removeprefix("raw_exp_")


def filled(line: str, clone: Path) -> str:
    """Return a command with names in place of the words in capitals."""
    words: dict[str, Any] = {"DIR": "sales"}
    if re.search(r"(\b|_)(ID|FILE)\b|\.receipt\.json|--resume", line):
        file, session = saved(clone)
        words |= {"ID": session, "FILE": "a.receipt.json" if " check " in line else file}
        words["raw_exp_ID"] = file.stem
    if " rm " in line:
        assert run(["-p", "project", "-m", "1 + 1"]).exit_code == 0
        words["ID"] = newest(clone / "project" / "workspace" / "sessions", "*").name
    if "RUN" in line:
        words["RUN"] = newest(clone / "project" / "experiments", "*").name
    line = re.sub(r"\b(raw_exp_ID|ID|FILE|DIR|RUN)\b", lambda found: str(words[found[0]]), line)
    return without_brackets(line)


def without_brackets(line: str) -> str:
    """Return a command with what may be left out, and with something in place of dots."""
    return line.replace("[", "").replace("]", "").replace('"..."', '"1 + 1"').replace("...", "")


def lines_of(block: Block) -> list[str]:
    return [part.strip() for line in block.text.splitlines() for part in line.split(" && ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_names_its_language_and_no_command_hides(page: Path) -> None:
    text = page.read_text("utf-8")
    blocks = [block for block in all_blocks() if block.page == page.name]
    assert text.count("\n```") >= 2 * len(blocks)
    for block in blocks:
        assert block.language in LANGUAGES, block
        if block.language == "text":
            hidden = [line for line in block.text.splitlines() if COMMAND.match(line)]
            assert hidden == [], block


def test_pages_with_a_test_of_their_own_are_named_there() -> None:
    for page, test in ELSEWHERE.items():
        assert page in (ROOT / "tests" / test).read_text("utf-8")


@pytest.mark.parametrize("block", all_blocks("json"), ids=str)
def test_configuration_in_a_document_is_known(block: Block) -> None:
    data = json.loads(block.text)
    if not isinstance(data, dict) or "mcpServers" in data:
        return
    assert check(AppConfigSource(None, data)) == []
    assert all(find(name) or name.startswith("llm.") for name in data)


@pytest.mark.parametrize("block", all_blocks("yaml"), ids=str)
def test_yaml_in_a_document_is_read(block: Block) -> None:
    assert isinstance(yaml.safe_load(block.text), dict)


def arguments_of(line: str) -> list[str]:
    """Return the arguments of a command of the program."""
    words = shlex.split(line, comments=True)
    arguments = words[3:] if words[0] == "python" else words[1:]
    return arguments[: arguments.index("2>")] if "2>" in arguments else arguments


def commands_of(block: Block) -> list[str]:
    """Return the lines that are commands of the program."""
    return [line for line in lines_of(block) if re.match("(python -m )?taskweaver ", line)]


@pytest.mark.parametrize(
    "block", [block for block in all_blocks("sh") if commands_of(block)], ids=str
)
def test_commands_and_the_values_of_their_options_are_read_by_the_program(
    block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click.Context, "invoke", lambda *_, **__: None)  # they are read, not run
    for line in commands_of(block):
        told = run(arguments_of(without_brackets(line)))
        is_made_before = "does not exist" in told.output  # a file that an earlier command writes
        assert told.exit_code == 0 or is_made_before, f"{line}\n{told.output}"


@pytest.mark.parametrize("block", cases("sh"))
def test_commands_work(block: Block, clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for whole in lines_of(block):
        command = whole.partition("  #")[0].strip()
        is_left_out = re.sub(r" {2,}", " ", whole).startswith((*NOT_RUN, "cd "))
        if is_left_out or command in DONE:
            continue
        DONE.add(command)
        if whole.startswith("export "):
            monkeypatch.setenv(*whole.removeprefix("export ").split("="))
            continue
        run_command(arguments_of(filled(whole, clone)), clone, whole)


def run_command(arguments: list[str], clone: Path, whole: str) -> None:
    """Run a command of the program; it ends well."""
    if arguments[0] == "init":
        new_project(clone / arguments[1])
        return
    if arguments[0] == "trust":  # a question at a terminal
        arguments = ["--trust", *arguments]
    is_receipt = "check" in arguments and "sessions" not in arguments
    has_sandbox = not is_receipt or has_bwrap()
    environment = {"EXECUTION_SANDBOX": "bwrap"} if is_receipt and has_sandbox else {}
    if arguments[0] == "setup":  # the environment would decide
        environment = {"LLM_API_TYPE": "", "XDG_CONFIG_HOME": str(clone / "config")}
    result = CliRunner().invoke(commands, arguments, input="/exit\n", env=environment)
    assert result.exit_code == (0 if has_sandbox else 2), f"{whole}\n{result.output}"


def lose_a_variable() -> None:
    """End a session of the project, the newest one, whose connection cannot be stored."""
    code = "run this code: import sqlite3; con = sqlite3.connect('facts.db')"
    assert run(["-p", "project", "-m", code]).exit_code == 0


@pytest.mark.parametrize("block", cases("chat"))
def test_conversations_work(block: Block, clone: Path) -> None:
    saved(clone)
    typed = [line[2:] for line in block.text.splitlines() if line.startswith("> ")]
    project = "project"
    if "orders.csv" in block.text:
        project = new_project(clone / "sales").name
    before, options = ["load sales.csv"] if typed[0].startswith("/") else [], ["-p", project]
    if "/rebuild" in typed:
        before, options = [], [*options, "--resume"]
        lose_a_variable()
    result = run(options, "\n".join([*before, *typed]) + "\n")
    assert result.exit_code == 0, result.output
    assert [line in result.stdout for line in typed] == [True] * len(typed)
    assert "There is no command" not in result.stdout


@pytest.mark.parametrize("block", all_blocks("python"), ids=str)
def test_code_compiles_imports_what_is_there_and_calls_it_with_arguments_it_takes(
    block: Block,
) -> None:
    tree = compile(block.text, str(block), "exec", ast.PyCF_ONLY_AST)
    imported: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("taskweaver"):
            module = import_module(str(node.module))
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []
            imported |= {
                name.asname or name.name: getattr(module, name.name) for name in node.names
            }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = imported.get(node.func.id)
            if called is not None:
                keywords = {word.arg: word for word in node.keywords if word.arg}
                inspect.signature(called).bind(*node.args, **keywords)


def code_cases() -> list[Any]:
    """Return the blocks of code that run here; the first of library.md is that of README.md."""
    found = [case for case in cases("python", first=CODE_FIRST) if is_run(case.values[0])]
    first = next(case for case in found if case.values[0].page == "library.md")
    found[found.index(first)] = pytest.param(*first.values, id=first.id, marks=pytest.mark.long)
    return found


def is_run(block: Block) -> bool:
    """Return whether the code of a block is a program, with no test of its own."""
    return block.page not in (*FRAGMENTS, *ELSEWHERE)


@pytest.mark.parametrize("block", code_cases())
def test_code_of_pages_without_a_test_of_their_own_works(
    block: Block, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile(block.text, str(block), "exec")
    monkeypatch.setenv("EXECUTION_ZYGOTE", "false")  # for code that opens the current folder
    saved(clone)
    if "rebuild()" in block.text:
        lose_a_variable()
    if re.search(r"^with app|^round_ = session", block.text, re.MULTILINE):
        with TaskWeaverApp("project/") as app, app.get_session() as session:
            exec(compiled, {"app": app, "session": session})
    else:
        exec(compiled, {"TaskWeaverApp": TaskWeaverApp})
