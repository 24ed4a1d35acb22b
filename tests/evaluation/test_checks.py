"""Checks on answers, code and files: met, or with a problem in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskweaver.evaluation.checks import Check, Observed
from taskweaver.memory.cells import ExecutedCell

CELLS = (
    ExecutedCell(1, "p1", "CodeInterpreter", "data['count']", is_success=False, report=""),
    ExecutedCell(2, "p2", "CodeInterpreter", "mean_of(data)", is_success=True, report="2.5"),
)


@pytest.fixture
def seen(tmp_path: Path) -> Observed:
    (tmp_path / "out.csv").write_text("name,units\nlamp,25\ndesk,4\n")
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    return Observed(
        answer="The mean is 1,234.57 in West, and -3 in East.",
        unsupported=("-3",),
        is_answered=True,
        cells=CELLS,
        refusals=1,
        roles=("CodeInterpreter", "Planner", "User"),
        artifacts=("a.png", "out.csv", "a.png"),
        cwd=tmp_path,
        prompts=("revenue is net", "second"),
        holds=lambda text: "" if text == "True" else "it is false",
        judge=lambda text: "" if text == "right" else "the judge: no",
    )


def problem(seen: Observed, **check: Any) -> str:
    return " | ".join(filter(None, Check.model_validate(check).problems(seen)))


MET: dict[str, Any] = {
    "number": [1234.57, 1234.5678, {"value": 1234, "within": 1}, -3], "contains": ["west", "East"],
    "lacks": "PWNED", "matches": r"\bmean\b.*west", "matches_not": r"^\d+$", "answered": True,
    "judge": "right", "no_file": "gone.txt", "code": r"mean_of\(", "code_not": r"os\.remove",
    "file": ["out.csv", {"name": "out.csv", "columns": ["units"], "rows": 2, "matches": "lamp,25"}],
    "code_ran": True, "refused": True, "role": "CodeInterpreter", "prompt": "revenue is net",
    "prompt_not": "gross", "holds": "True", "calls": {"most": 2}, "cells": 2,
    "failed_cells": {"least": 1}, "figures": 1,
}  # fmt: skip


def test_checks_are_met(seen: Observed) -> None:
    assert problem(seen, **MET) == ""


ANSWER = "is not met; answer: The mean is 1,234.57 in West, and -3 in East."
NOT_MET: list[tuple[dict[str, Any], str]] = [
    ({"number": 1235.57}, f"'number: 1235.57' {ANSWER}"),
    ({"number": 3}, f"'number: 3' {ANSWER}"),
    ({"number": {"value": 1230, "within": 1}}, f"'number: 1230' {ANSWER}"),
    ({"contains": ["west", "north"]}, f"'contains: north' {ANSWER}"),
    ({"lacks": "EAST"}, f"'lacks: EAST' {ANSWER}"),
    ({"matches": "^West"}, f"'matches: ^West' {ANSWER}"),
    ({"matches_not": "mean"}, f"'matches_not: mean' {ANSWER}"),
    ({"supported": True}, "'supported: True' is not met; unsupported: ('-3',)"),
    ({"answered": False}, f"'answered: False' {ANSWER}"),
    ({"json": {"a": 1}}, f"'json: {{'a': 1}}' {ANSWER}"),
    ({"judge": "wrong"}, "'judge: wrong' is not met; the judge: no"),
    ({"file": "gone.csv"}, "'file: gone.csv' is not met; there is no such file"),
    ({"file": "link.csv"}, "there is no such file"), ({"file": "../x"}, "there is no such file"),
    ({"file": {"name": "out.csv", "rows": 3}}, "has 2 rows, not 3"),
    ({"file": {"name": "out.csv", "columns": ["price"]}}, "lacks the columns price"),
    ({"file": {"name": "out.csv", "matches": "chair"}}, "does not match 'chair'"),
    ({"no_file": "out.csv"}, "'no_file: out.csv' is not met; artifacts: "),
    ({"code": "sum"}, "'code: sum' is not met; code: data['count'] mean_of(data)"),
    ({"code_not": "data"}, "'code_not: data' is not met"),
    ({"code_ran": False}, "'code_ran: False' is not met; code: data['count']"),
    ({"refused": False}, "'refused: False' is not met; refusals: 1"),
    ({"role": "Echo"}, "'role: Echo' is not met; roles: ('CodeInterpreter', 'Planner', 'User')"),
    ({"prompt": "gross"}, "'prompt: gross' is not met; prompts: ('revenue is net', 'second')"),
    ({"prompt_not": "second"}, "'prompt_not: second' is not met"),
    ({"holds": "x == 1"}, "'holds: x == 1' is not met; it is false"),
    ({"calls": {"most": 1}}, "'calls: least=0 most=1' is not met; counts: {'calls': 2,"),
    ({"failed_cells": 0}, "'failed_cells: least=0 most=0' is not met; counts: "),
    ({"figures": {"least": 2}}, "'figures: least=2 most=None' is not met"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "words"), NOT_MET)
def test_a_check_that_is_not_met_says_why(
    seen: Observed, check: dict[str, Any], words: str
) -> None:
    assert words in problem(seen, **check)


@pytest.mark.parametrize(
    ("answer", "is_met"),
    [
        ('```json\n{"mean": 2.50, "n": 4, "more": 1}\n```', True),
        ('Here: {"mean": 2.5, "n": 4}', True),
        ('{"mean": 2.4, "n": 4}', False),
        ('{"mean": 2.5}', False),
        ("[1]", False),
        ("{" * 5000, False),
    ],
)
def test_an_answer_in_json(seen: Observed, answer: str, is_met: bool) -> None:
    found = problem(replace(seen, answer=answer), json={"mean": 2.5, "n": 4})
    assert (found == "") == is_met


@pytest.mark.parametrize("answer", ["about 1.2 million", "1,200,000", "1.2M", "1 200 000", "1.2e6"])
def test_a_number_counts_however_it_is_spelled(seen: Observed, answer: str) -> None:
    assert problem(replace(seen, answer=answer), number=1_200_000) == ""
