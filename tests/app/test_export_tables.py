"""Exported notebooks and scripts read tables without TaskWeaver, and give the same numbers."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from patience import PATIENCE_S
from support import Script, code_reply, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.session.export import export
from taskweaver.session.session import Session

CELLS = (
    "profile_tables('umsatz.csv', find='umsatz')",
    "umsatz = read_table('umsatz.csv')\nprint(umsatz.Umsatz.sum(), umsatz.Datum.max())",
    "ä = read_table('budget.xlsx', 'Actual').Amount.sum(); print(ä, read_table('shop.db').n.sum())",
    "def total(name):\n    return read_table(name)['n'].sum()\n\ntotals = 0",
    "for name in ['shop.db', 'visits.csv']:\n    totals += total(name)\nprint(totals)",
    "print(read_table(\n    path='zips.csv',\n).zip[0])",
)
PRINTED = "1236.56 2024-12-31 00:00:00\n7.5 3\n8\n00501\n"
WITHOUT = """
import runpy, sys
sys.modules["taskweaver"] = None
for file in sys.argv[1:]:
    runpy.run_path(file)
"""

pytestmark = pytest.mark.usefixtures("no_states")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    folder = make_project(tmp_path / "project", has_table=False)
    script = Script(code_reply(cell) for cell in CELLS)
    config = {"session.roles": ["code_interpreter"]}
    with TaskWeaverApp(folder, model=script, config=config) as app:
        session = app.get_session()
        write_files(session.execution_cwd)
        for number, _ in enumerate(CELLS):
            assert session.send_message(f"step {number}").state == "finished"
        session.stop()
        yield app.resume_session(session.session_id)


def write_files(folder: Path) -> None:
    text = "Datum;Umsatz\n31.12.2024;1.234,56\n01.02.2024;2,00\n"
    (folder / "umsatz.csv").write_bytes(text.encode("latin-1"))
    (folder / "visits.csv").write_text("day,n\n13/01/2024,2\n02/03/2024,3\n")
    (folder / "zips.csv").write_text("zip,v\n00501,1\n")
    with pd.ExcelWriter(folder / "budget.xlsx", engine="openpyxl") as book:
        pd.DataFrame({"Cover": ["x"]}).to_excel(book, sheet_name="Cover", index=False)
        actual = pd.DataFrame({"Month": ["2025-01", "2025-02"], "Amount": [5, 2.5]})
        actual.to_excel(book, sheet_name="Actual", index=False, startrow=2)
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("CREATE TABLE t (n INTEGER, day TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, '2024-01-31')", [(1,), (2,)])
        connection.commit()


def test_a_script_and_a_notebook_give_the_same_numbers_without_taskweaver(
    session: Session, tmp_path: Path
) -> None:
    script, notebook, cells = (tmp_path / name for name in ("a.py", "a.ipynb", "cells.py"))
    for file in (script, notebook):
        export(session.memory.conversation.rounds, file, title="t")
    text = script.read_text()
    assert "profile_tables" not in text
    assert "('umsatz.csv',None):lambda:(pd.read_csv('umsatz.csv'," in "".join(text.split())
    assert text.count("def read_table") == text.count("import pandas") == 1
    code = [
        cell["source"]
        for cell in json.loads(notebook.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    cells.write_text("\n\n".join(code))

    command = [sys.executable, "-c", WITHOUT, str(script), str(cells)]
    done = subprocess.run(
        command, cwd=session.execution_cwd, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout) == (0, 2 * PRINTED), done.stderr
