"""A masked text is a copy for readers: exports name the cells that hold a mask, and none runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
from rounds import ALONE
from support import Script

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.branched import InvalidUpdate, MemoryManager
from taskweaver.session.export import export
from taskweaver.utils.redact import MASK, register_secret

SECRET = "masked-copies-canary-1"
CELLS = ("import math\nradius = 2", f"token = {SECRET!r}\nprint(len(token))", "radius * 2")
KEYS = ALONE | {"execution.zygote": True, "session.state_limit_mb": 0}


@pytest.mark.usefixtures("no_states")
def test_a_masked_copy_of_a_session_runs_nowhere(project: Path, tmp_path: Path) -> None:
    register_secret(SECRET)
    with TaskWeaverApp(project, model=Script([]), config=KEYS) as app:
        session = app.get_session()
        for cell in CELLS:
            session.run_code(cell)
        rounds, file = session.memory.conversation.rounds, session.workspace / "memory.sqlite"
        for suffix in (".ipynb", ".py", ".md"):
            check_export(rounds, tmp_path / f"story{suffix}")
        check_experience(app, session.memory.save_experience(tmp_path, thin_mode=False))
    check_import(file, tmp_path)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE posts SET body = replace(body, ?, ?)", (SECRET, MASK))
    with TaskWeaverApp(project, model=Script([]), config=KEYS) as app:
        session = app.resume_session()
        rebuilt = session.rebuild()
        assert [step.verdict for step in rebuilt.steps] == ["same", "failed", "same"]
        assert MASK in rebuilt.steps[1].details[0]
        rebuilt.accept()
        said = session.run_code("print(radius + 40, 'token' in globals())").post_list[-1].message
        assert "42 False" in said


def check_export(rounds: list[object], target: Path) -> None:
    """Check that an export names the cells that hold a mask."""
    export(rounds, target, title="A session")  # type: ignore[arg-type]
    text = target.read_text()
    assert SECRET not in text
    assert text.index(f"Cell 2 holds {MASK} in place of a secret") < text.index("import math")
    assert text.count(f"# This cell holds {MASK}") == 1
    if target.suffix == ".ipynb":
        nbformat.validate(nbformat.read(target, as_version=4))
    if target.suffix == ".py":
        compile(text, "story.py", "exec")


def check_experience(app: TaskWeaverApp, saved: Path) -> None:
    """Check that an experience is exact and private and runs, and a masked one does not."""
    assert SECRET in saved.read_text()
    assert saved.stat().st_mode & 0o777 == 0o600
    assert [step.verdict for step in app.replay(saved)] == ["same"] * 3
    masked = saved.with_name("raw_exp_masked.yaml")
    masked.write_text(saved.read_text().replace(SECRET, MASK))
    steps = list(app.replay(masked, repair=True))  # the script of the model has no reply left
    assert [step.verdict for step in steps] == ["same", "failed", "same"]
    (detail,) = steps[1].details
    assert "cell 2 is a masked copy" in detail
    assert "read the value from its source" in detail


def check_import(file: Path, folder: Path) -> None:
    """Check that a masked export of a memory is refused, and a private one taken."""
    masked, private = folder / "masked.jsonl", folder / "private.jsonl"
    with MemoryManager(file) as memory:
        memory.export(masked)
        memory.export(private, is_private=True)
    assert SECRET not in masked.read_text()
    with MemoryManager(folder / "other.sqlite") as other:
        with pytest.raises(InvalidUpdate, match="cell 2 holds"):
            other.import_(masked)
        assert other.branches() == []
        assert other.import_(private) == ["main"]
