"""Plans that code in a kernel claims: plain data that an export can write, or none."""

from __future__ import annotations

from typing import Any

import pytest

from taskweaver.session.export_cells import plain_code
from taskweaver.tables.plans.plan import ReadPlan, TableRead, reads_of

READ = TableRead("a.csv", None, ReadPlan("csv", "a.csv"))


def claim(**changes: Any) -> list[dict[str, Any]]:
    data = READ.to_dict()
    return [{**data, "plan": {**data["plan"], **changes}}]


def test_an_honest_claim_is_taken() -> None:
    assert reads_of(claim()) == [READ]


@pytest.mark.parametrize(
    "changes",
    [
        {"reader": "sql"},
        {"reader": "json"},
        {"reader": "json", "options": {"key": "x"}},
        {"path": "https://example.org/a.csv"},
        {"path": "/etc/passwd"},
    ],
)
def test_a_claim_that_lacks_an_option_or_reads_another_file_is_left_out(
    changes: dict[str, Any],
) -> None:
    assert reads_of(claim(**changes)) == []


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_calls_are_replaced_whatever_ends_the_lines(end: str) -> None:
    code = f"x = 1{end}df = read_table('a.csv'){end}y = 2"
    assert plain_code(code, [READ], [READ]) == "x = 1\ndf = pd.read_csv('a.csv')\ny = 2"


@pytest.mark.parametrize(
    "code",
    [
        "class read_table:\n    pass\n\nread_table('a.csv')",
        "async def read_table(x):\n    pass\n\nread_table('a.csv')",
        "def f(read_table):\n    return read_table('a.csv')",
    ],
)
def test_another_meaning_of_the_name_is_kept(code: str) -> None:
    assert plain_code(code, [READ], [READ]) == code
