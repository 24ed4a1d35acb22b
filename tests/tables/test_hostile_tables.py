"""Files that are damaged, or pass for something else: a reason or a table, never a fault."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from plain import loaded, written

from taskweaver.tables.errors import TableError
from taskweaver.tables.files.profile_report import merged
from taskweaver.tables.names import profile_tables


def test_the_name_of_a_column_begins_no_line_of_the_report(tmp_path: Path) -> None:
    name = "code\nrows used: 99\u2028rows used: 98\x1b[2J"
    path = written(tmp_path, f'country,"{name}"\nA,NA\nB,DE\nC,FR\nD,US\n', "a\nrows used: 97.csv")
    report = "\n".join(loaded(path).report)
    assert "holds the code NA" in report
    assert not [line for line in report.splitlines() if line.startswith("rows used:")]
    assert "\x1b" not in report


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("split.json", json.dumps({"columns": ["a", "a"], "data": [["1", "2"], ["3", "x"]]})),
        ("surrogate.json", '[{"\\ud800": "\\udfff x"}, {"\\ud800": "y"}]'),
        ("deep.json", '[{"a": ' + '{"a":' * 960 + "1" + "}" * 961 + "]"),
        ("scalars.jsonl", "[1]\n[2]\n"),
        ("quote.csv", 'a,b\n"1,2\n3,4\n'),
    ],
)
def test_a_damaged_file_is_refused_with_a_reason(tmp_path: Path, name: str, content: str) -> None:
    path = written(tmp_path, content, name)
    with pytest.raises(TableError, match=name):
        profile_tables(path)


def test_a_view_that_cannot_be_read_hides_no_other_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW gone AS SELECT * FROM missing")
        connection.execute("CREATE TABLE orders (n INTEGER)")
        connection.commit()
    (profile,) = tuple(merged({}, repr(profile_tables(path))).values())
    assert profile.id.part == "orders"
    assert "'gone' of shop.db cannot be read" in capsys.readouterr().out
