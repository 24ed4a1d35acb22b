"""A masked text is a copy for readers: exports name the cells that hold a mask, and none runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
from support import Script, code_reply, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.branched import InvalidUpdate, MemoryManager
from taskweaver.server.agents.finding import find_in_sessions
from taskweaver.session.exports.export import export
from taskweaver.session.session import Session
from taskweaver.utils.redact import MASK, register_secret

pytestmark = pytest.mark.usefixtures("no_states")

SECRET = "masked-copies-canary-1"
CELLS = ("import math\nradius = 2", f"token = {SECRET!r}\nprint(len(token))", "radius * 2")
ALONE = {"session.roles": ["code_interpreter"], "execution.zygote": True}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskWeaverApp]:
    register_secret(SECRET)
    folder = make_project(tmp_path_factory.mktemp("copies") / "project", has_table=False)
    replies = [code_reply(cell) for cell in CELLS]
    with TaskWeaverApp(folder, model=Script(replies), config=ALONE) as app:
        yield app


@pytest.fixture(scope="module")
def session(app: TaskWeaverApp) -> Session:
    session = app.get_session()
    for number, _ in enumerate(CELLS):
        session.send_message(f"step {number}")
    session.wait_until_stored()  # its processes are there before the first test begins
    return session


@pytest.fixture(scope="module")
def saved(session: Session, app: TaskWeaverApp) -> Path:
    return session.memory.save_experience(app.app_dir / "experience", thin_mode=False)


def test_an_experience_is_exact_private_and_runs(app: TaskWeaverApp, saved: Path) -> None:
    assert SECRET in saved.read_text()
    assert saved.stat().st_mode & 0o777 == 0o600
    assert [step.verdict for step in app.replay(saved)] == ["same"] * 3


def test_a_masked_experience_is_refused_by_the_number_of_its_cell(
    app: TaskWeaverApp, saved: Path
) -> None:
    masked = saved.with_name("raw_exp_masked.yaml")
    masked.write_text(saved.read_text().replace(SECRET, MASK))
    steps = list(app.replay(masked, repair=True))  # the script of the model has no reply left
    assert [step.verdict for step in steps] == ["same", "failed", "same"]
    (detail,) = steps[1].details
    assert "cell 2 is a masked copy" in detail
    assert "read the value from its source" in detail


@pytest.mark.parametrize("suffix", [".ipynb", ".py", ".md"])
def test_an_export_names_the_cells_that_hold_a_mask(
    session: Session, tmp_path: Path, suffix: str
) -> None:
    target = tmp_path / f"story{suffix}"
    export(session.memory.conversation.rounds, target, title="A session")
    text = target.read_text()
    assert SECRET not in text
    assert text.index(f"Cell 2 holds {MASK} in place of a secret") < text.index("import math")
    assert text.count(f"# This cell holds {MASK}") == 1
    if suffix == ".ipynb":
        nbformat.validate(nbformat.read(target, as_version=4))
    if suffix == ".py":
        compile(text, "story.py", "exec")


def test_an_export_without_a_secret_is_exact(app: TaskWeaverApp, tmp_path: Path) -> None:
    code = "token = 'abcdefghijklmnop1234'; path = '/home/me/data.csv'; len(token)"
    with app.get_session() as session:
        session.run_code(code)
        export(session.memory.conversation.rounds, tmp_path / "s.ipynb", title="A session")
    cells = json.loads((tmp_path / "s.ipynb").read_text())["cells"]
    assert [cell["source"] for cell in cells if cell["cell_type"] == "code"] == [code]
    assert MASK not in (tmp_path / "s.ipynb").read_text()


def test_a_resumed_session_passes_a_masked_cell_over_and_names_it(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", {"session.state_limit_mb": 0}, has_table=False)
    replies = [code_reply("a = 5"), code_reply(f"b = {SECRET!r}")]
    with TaskWeaverApp(project, model=Script(replies), config=ALONE) as app:
        session = app.get_session()
        session.send_message("one")
        session.send_message("two")
        file = session.workspace / "memory.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE posts SET body = replace(body, ?, ?)", (SECRET, MASK))
    with TaskWeaverApp(project, model=Script([]), config=ALONE) as app:
        session = app.resume_session()
        rebuilt = session.rebuild()
        assert [(step.number, step.verdict) for step in rebuilt.steps] == [
            (1, "same"), (2, "failed"),
        ]  # fmt: skip
        assert MASK in rebuilt.steps[1].details[0]
        rebuilt.accept()
        assert "5" in session.run_code("print(a, 'b' in globals())").post_list[-1].message


def test_an_import_with_a_masked_cell_is_refused(session: Session, tmp_path: Path) -> None:
    masked, private = tmp_path / "masked.jsonl", tmp_path / "private.jsonl"
    with MemoryManager(session.workspace / "memory.sqlite") as memory:
        memory.export(masked)
        memory.export(private, is_private=True)
    assert SECRET not in masked.read_text()
    with MemoryManager(tmp_path / "other.sqlite") as other:
        with pytest.raises(InvalidUpdate, match="cell 2 holds"):
            other.import_(masked)
        assert other.branches() == []
        assert other.import_(private) == ["main"]


def test_another_program_finds_masked_texts(app: TaskWeaverApp) -> None:
    with app.get_session() as session:
        session.run_code(f"note = {SECRET!r}\nnote")
    found = find_in_sessions(app.session_manager.sessions_folder, "note", session.session_id)
    assert found
    assert SECRET not in str(found)


def test_code_of_the_users_own_that_holds_a_mask_does_not_run(app: TaskWeaverApp) -> None:
    with app.get_session() as session:
        message = session.run_code(f"key = '{MASK}'").post_list[-1].message
        assert f"Cell 1 holds {MASK}" in message
        assert "False" in session.run_code("'key' in globals()").post_list[-1].message
