"""Receipts: an answer is written with its proof, and confirmed, or not, without a model."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rounds import write
from support import Script, code_reply, has_bwrap, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.console.chat import Chat
from taskweaver.console.commands.table import CommandLine
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.memory.round import Round
from taskweaver.session import receipt_content
from taskweaver.session.receipt import ReceiptError, read_receipt
from taskweaver.session.receipt_content import ConversationOrigin, build_receipt
from taskweaver.utils.redact import MASK

pytestmark = pytest.mark.usefixtures("no_states")

LOAD = "import pandas as pd\ntable = pd.read_csv('tiny.csv')\nprint('rows', len(table))\ntable"
TOTAL = "total = int(table.Count.sum()) * 1000\nmarker = object()\ntotal + 234"
QUESTION = "what is the total of Count in tiny.csv?"
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("receipts") / "project")
    (folder / "data" / "unused.csv").write_text("a\n1\n")
    return folder


@pytest.fixture(scope="module")
def app(project: Path) -> Iterator[TaskWeaverApp]:
    replies = [
        planner_reply("CodeInterpreter", "load it", plan="1. load\n2. add up"), code_reply(LOAD),
        planner_reply("CodeInterpreter", "fail once"), code_reply("1/0"), code_reply(TOTAL),
        planner_reply("User", "The total is 8,234, of 2 rows; 4711 is my guess."),
        planner_reply("User", "The total is 8,234, of 2 rows; 4711 is my guess."),
        planner_reply("User", "You are welcome."),
    ]  # fmt: skip
    with TaskWeaverApp(project, model=Script(replies), config={"execution.zygote": True}) as app:
        yield app


@pytest.fixture(scope="module")
def original(app: TaskWeaverApp) -> Path:
    """The receipt of a conversation, held once and written by the console's command."""
    surface = PlainSurface()
    chat = Chat(app, surface)
    chat.ask(QUESTION)
    CommandLine(chat).handle("/export receipt total")
    return chat.session.execution_cwd / "total.receipt.json"


@pytest.fixture
def facts(original: Path) -> Facts:
    return json.loads(original.read_text("utf-8"))  # type: ignore[no-any-return]


def check(app: TaskWeaverApp, file: Path, **options: object) -> str:
    """Return the first difference of a receipt in words, or "same"."""
    verdict = app.check_receipt(file, is_trusted=True, **options)  # type: ignore[arg-type]
    return "same" if verdict.is_same else str(verdict.difference)


def changed(facts: Facts, tmp_path: Path, change: Callable[[Facts], object]) -> Path:
    change(facts)
    file = tmp_path / "changed.receipt.json"
    file.write_text(json.dumps(facts))
    return file


def test_a_receipt_holds_the_proof_of_an_answer(facts: Facts) -> None:
    assert facts["format"] == "taskweaver-receipt"
    assert QUESTION in facts["question"]
    assert facts["reading"] == {"plan": "1. do it", "orders": ["load it", "fail once"]}
    assert [cell["code"] for cell in facts["cells"]] == [LOAD, "1/0", TOTAL]
    assert [cell["is_success"] for cell in facts["cells"]] == [True, False, True]
    (item,) = facts["inputs"]
    content = b"Region,Count\nNorth,3\nSouth,5\n"
    assert base64.b64decode(item["content"]) == content
    assert (item["name"], item["bytes"], item["change"]) == ("tiny.csv", len(content), "")
    assert item["sha256"] == hashlib.sha256(content).hexdigest()
    assert facts["answer"]["unsupported_numbers"] == ["4711"]
    total = facts["answer"]["evidence"][0]
    assert (total["text"], total["cell"], total["where"]) == ("8,234", 3, "Result")
    assert {"python", "taskweaver", "pandas", "numpy"} <= facts["versions"].keys()


def test_the_same_code_and_data_are_confirmed(app: TaskWeaverApp, original: Path) -> None:
    before = sorted((app.app_dir / "workspace" / "replays").glob("*"))
    assert check(app, original) == "same"
    assert sorted((app.app_dir / "workspace" / "replays").glob("*")) == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda f: f["cells"][2].update(code=TOTAL.replace("234", "235")),
         "cell 3, Result, line 1: '8234' was recorded, now '8235'"),
        (lambda f: f["inputs"][0].update(content=base64.b64encode(b"Count\n1\n").decode()),
         "input tiny.csv, sha256"),
        (lambda f: f["cells"][0].update(code=LOAD.replace("rows", "lines")),
         "cell 1, Output, line 1: 'rows 2' was recorded, now 'lines 2'"),
        (lambda f: f["cells"][2].update(variables=[["total", "9000"]]),
         "cell 3, Variables, total: '9000' was recorded, now '8000'"),
    ],
)  # fmt: skip
def test_the_first_difference_is_named(
    app: TaskWeaverApp, facts: Facts, tmp_path: Path, change: Callable[[Facts], object],
    expected: str,
) -> None:  # fmt: skip
    assert check(app, changed(facts, tmp_path, change)).startswith(expected)


def test_a_number_that_no_cell_computes_is_no_proof(
    app: TaskWeaverApp, facts: Facts, tmp_path: Path
) -> None:
    """A forged receipt may name a message as the origin of a number, or hide it in code."""

    def forge(facts: Facts) -> None:
        facts["cells"][2]["code"] = f"91.7  # 57.1\n{TOTAL}"
        facts["answer"]["text"] = "The total is 8,234; the share is 57.1 or 91.7."
        origin = {"text": "57.1", "value": 57.1, "post_id": "x", "cell": 0, "where": "message"}
        facts["answer"]["evidence"].append({**origin, "line": 1, "original": "57.1"})

    verdict = app.check_receipt(changed(facts, tmp_path, forge), is_trusted=True)
    assert verdict.notes == ("in no outcome of a cell: 57.1, 91.7",)


def test_a_failed_cell_runs_again_for_its_effects(
    app: TaskWeaverApp, facts: Facts, tmp_path: Path
) -> None:
    def fail(facts: Facts) -> None:
        facts["cells"][1]["code"] = "base = 234\n1/0"
        facts["cells"][2]["code"] = TOTAL.replace("234", "base")

    assert check(app, changed(facts, tmp_path, fail)) == "same"
    facts["cells"][1]["report"] = "### Execution\nThe code failed."
    assert "name 'base' is not defined" in check(app, changed(facts, tmp_path, fail))


def test_other_data_is_no_proof(app: TaskWeaverApp, original: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("Region,Count\nNorth,3\nSouth,6\n")
    assert "input tiny.csv, sha256" in check(app, original, data={"tiny.csv": other})
    other.write_text("Region,Count\nNorth,3\nSouth,5\n")
    assert check(app, original, data={"tiny.csv": other}) == "same"
    with pytest.raises(ReceiptError, match=r"no input x\.csv"):
        check(app, original, data={"x.csv": other})


def test_a_large_input_is_found_by_name_or_asked_for(
    app: TaskWeaverApp, facts: Facts, tmp_path: Path
) -> None:
    file = changed(facts, tmp_path, lambda f: f["inputs"][0].update(content=None))
    assert check(app, file) == "same"  # it lies in the project's data folder
    file = changed(facts, tmp_path, lambda f: f["inputs"][0].update(name="elsewhere.csv"))
    with pytest.raises(ReceiptError, match=r"--data elsewhere\.csv=PATH"):
        check(app, file)
    (tmp_path / "elsewhere.csv").write_text("Region,Count\nNorth,3\nSouth,5\n")
    assert "tiny.csv" in check(app, file)  # found beside the receipt; the code wants another name


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.update(format="other"), "no receipt of TaskWeaver"),
        (lambda f: f.update(version=2), "format version 2; this program reads up to 1"),
        (lambda f: f.update(version="1"), "format version '1'"),
        (lambda f: f.pop("cells"), "'cells' is missing"),
        (lambda f: f.update(cells={}), "'cells' is dict, not list"),
        (lambda f: f["cells"][0].update(code=5), "'code' is int, not str"),
        (lambda f: f["cells"].append(7), "int stands where an object belongs"),
        (lambda f: f["cells"][0].update(variables=[5]), "malformed"),
        (lambda f: f.update(cells=f["cells"] * 5_000), "too many cells"),
        (lambda f: f["inputs"][0].update(name="../../etc/passwd"), "'../../etc/passwd' is not the"),
        (lambda f: f["inputs"][0].update(name="/etc/passwd"), "is not the name of an input"),
        (lambda f: f["inputs"][0].update(name=".."), "is not the name of an input"),
        (lambda f: f["inputs"].append(f["inputs"][0]), "an input twice"),
        (lambda f: f["inputs"][0].update(content="%%%"), "not valid base64"),
        (lambda f: f["cells"][0].update(code="'\ud800'"), "malformed: 'utf-8' codec"),
        (lambda f: f["versions"].update(pandas="1\nsame"), r"'1\\nsame' is not a text of one line"),
        (lambda f: f["inputs"][0].update(change="\nsame"), "is not a text of one line"),
        (lambda f: f.update(cells=f["cells"][1:2]), "no cell that ran to its end"),
        (lambda f: f["cells"][2].update(code=f"key = '{MASK}'"), "Cell 3 holds the mask"),
    ],
)  # fmt: skip
def test_a_hostile_receipt_is_refused(
    app: TaskWeaverApp, facts: Facts, tmp_path: Path, change: Callable[[Facts], object], reason: str
) -> None:
    with pytest.raises(ReceiptError, match=reason):
        check(app, changed(facts, tmp_path, change))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"format": ' + b"9" * 5_000 + b"}"]
)
def test_a_file_that_is_no_receipt_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.receipt.json"
    file.write_bytes(content)
    with pytest.raises(ReceiptError, match=r"x\.receipt\.json"):
        read_receipt(file)


def test_the_command_prints_and_exits(
    project: Path, original: Path, facts: Facts, tmp_path: Path
) -> None:
    def run(file: Path, *options: str) -> tuple[int, str]:
        result = CliRunner().invoke(commands, ["-p", str(project), "check", str(file), *options])
        return result.exit_code, result.output

    said = "same (2 cells run again)\nnote: in no outcome of a cell: 4711\n"
    assert run(original, "--trust") == (0, said)
    assert run(tmp_path / "missing.json")[0] == 2
    assert run(tmp_path)[0] == 2
    status, text = run(original)  # there is no sandbox for the code of others
    assert status == 2
    assert "--trust" in text
    assert text.count("\n") == 1
    bad = tmp_path / "bad.receipt.json"
    bad.write_text("{}")
    assert run(bad)[0] == 2
    facts["versions"]["pandas"] = "0.1"
    facts["inputs"][0]["change"] = "in the data folder"
    file = changed(facts, tmp_path, lambda f: f["answer"].update(text="It is 815."))
    status, text = run(file, "--trust")
    assert (status, text.splitlines()[0]) == (1, "answer: '815' stands in no outcome now")
    assert "note: pandas 0.1 then" in text
    assert "note: tiny.csv had changed in the data folder" in text
    status, text = run(file, "--trust", "--json")
    verdict = json.loads(text)
    assert (status, verdict["verdict"]) == (1, "different")
    assert verdict["difference"]["recorded"] == "815"


@pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not run here")
def test_checking_beside_no_project_leaves_nothing_behind(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = tmp_path / "mail"
    mail.mkdir()
    shutil.copy(original, mail)
    monkeypatch.chdir(mail)
    result = CliRunner().invoke(commands, ["check", original.name, "--trust"])
    assert result.exit_code == 0, result.output
    assert [path.name for path in mail.iterdir()] == [original.name]


def test_a_receipt_runs_in_the_sandbox(project: Path, facts: Facts, tmp_path: Path) -> None:
    (project / "secret.txt").write_text("keep")
    code = f"open({str(project / 'secret.txt')!r}).read()"
    file = changed(facts, tmp_path, lambda f: f["cells"][0].update(code=code))
    with TaskWeaverApp(project, config={"execution.sandbox": "bwrap"}) as app:
        verdict = app.check_receipt(file)
    assert "No such file" in str(verdict.difference)


@pytest.fixture
def held(app: TaskWeaverApp, original: Path) -> tuple[list[Round], ConversationOrigin]:
    session = app.session_manager.get_session(original.parents[1].name)
    origin = ConversationOrigin("s", "main", session.execution_cwd, app.app_dir / "data")
    return session.memory.conversation.rounds, origin


def test_a_change_of_an_input_is_said_and_a_large_one_is_not_embedded(
    held: tuple[list[Round], ConversationOrigin], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, origin = held
    source, copy = origin.data_dir / "tiny.csv", origin.cwd / "tiny.csv"
    before = source.read_bytes()
    try:
        source.write_text("Region,Count\nNorth,4\n")
        assert build_receipt(rounds, origin).inputs[0].change == "in the data folder"
        copy.write_text("Region,Count\n")
        later = copy.stat().st_mtime + 60
        receipt_content.os.utime(copy, (later, later))
        assert build_receipt(rounds, origin).inputs[0].change == "in the working directory"
        copy.unlink()
        copy.symlink_to("/etc/passwd")
        with pytest.raises(ReceiptError, match=r"tiny\.csv cannot be read"):
            build_receipt(rounds, origin)
    finally:
        source.write_bytes(before)
        copy.unlink()
        copy.write_bytes(before)
    monkeypatch.setattr(receipt_content, "EMBEDDED_BYTES", 10)
    (item,) = build_receipt(rounds, origin).inputs
    assert (item.content, item.bytes) == (None, 29)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("key = 'sk-proj-abcdEFGHijkl12345678'\n1", "Cell 1 holds a secret"),
        (f"key = '{MASK}'\n1", "no answer yet that rests on code"),  # it does not run
        ("", "no answer yet that rests on code"),
    ],
)
def test_what_cannot_be_proven_is_not_written(tmp_path: Path, code: str, reason: str) -> None:
    project = make_project(tmp_path / "p", has_table=False)
    rounds = write(project, code or code_reply("It is so.", "text")).rounds
    origin = ConversationOrigin("s", "main", project, project / "data")
    with pytest.raises(ReceiptError, match=reason):
        build_receipt(rounds, origin)


def test_a_masked_copy_of_a_cell_is_not_written(
    held: tuple[list[Round], ConversationOrigin],
) -> None:
    rounds, origin = held
    text = json.dumps([round_.to_dict() for round_ in rounds])
    masked = json.loads(text.replace("total + 234", f"'{MASK}'"))
    with pytest.raises(ReceiptError, match="Cell 3 holds the mask"):
        build_receipt([Round.from_dict(round_) for round_ in masked], origin)
