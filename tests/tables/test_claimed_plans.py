"""Plans that code in a kernel claims: plain data that an export can write, or none."""

from __future__ import annotations

from typing import Any

import pytest

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
        {"reader": "sql"}, {"reader": "json"}, {"reader": "json", "options": {"key": "x"}},
        {"path": "https://example.org/a.csv"}, {"path": "/etc/passwd"},
    ],
)  # fmt: skip
def test_a_claim_that_lacks_an_option_or_reads_another_file_is_left_out(
    changes: dict[str, Any],
) -> None:
    assert reads_of(claim(**changes)) == []
