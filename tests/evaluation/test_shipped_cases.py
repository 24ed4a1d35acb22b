"""The shipped cases: every recording is played, and what the offline analyst can answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sizes import some
from support import NO_STATES, make_project

from taskweaver.evaluation.case import SHIPPED, EvalCase, read_cases
from taskweaver.evaluation.evaluation import Evaluation, evaluate
from taskweaver.evaluation.results import ResultRow

KINDS = {
    "SQL plugin", "a chart described", "a correction after an error", "a follow-up after a fork",
    "a remembered definition", "an injected instruction", "anomaly plugin", "chained files",
    "code without running", "command line", "consolidation of steps", "files", "plugin selection",
    "plugin-only", "refusals under verification", "response format", "retrieval from documents",
    "saving files", "state over turns",
}  # fmt: skip

RISKY = ["an injected instruction", "a correction after an error"]
PAST = {"fork_in_the_past"}
"""Cases that go back to the state of a kernel at the end of an earlier round."""


def play(folder: Path, keys: dict[str, Any], **choices: Any) -> Evaluation:
    project = make_project(folder / "project", keys, has_table=False)
    return evaluate(SHIPPED, project, jobs=2, **choices)


def one_of_each_kind_first(cases: list[EvalCase]) -> list[str]:
    """Return the names of cases, those of the first case of each kind before the others.

    Kinds whose failure does harm come before all.
    """
    found = {case.kind: case.name for case in reversed(cases)}
    kinds = [*RISKY, *sorted(KINDS - {*RISKY})]
    first = {kind: found[kind] for kind in kinds}
    return [*first.values(), *(case.name for case in cases if case.name not in first.values())]


def test_every_kind_has_cases_and_a_third_is_held_out() -> None:
    cases, broken = read_cases(SHIPPED)
    assert broken == []
    assert len(cases) >= 40
    assert {case.kind for case in cases} == KINDS
    assert sum(case.held_out for case in cases) * 3 == len(cases)
    assert all(case.is_recorded for case in cases)
    assert Counter(case.name for case in cases).most_common(1)[0][1] == 1


def test_recordings_are_played_to_the_end(tmp_path: Path) -> None:
    cases, _ = read_cases(SHIPPED)
    names = set(some(one_of_each_kind_first(cases), len(KINDS))) - PAST
    keys = {"llm.api_type": "recorded"}
    for only, states in ((PAST, {}), (names, NO_STATES)):
        done = play(tmp_path / str(len(only)), keys | states, only=sorted(only))
        assert {row.case: row.problems for row in done.rows if row.problems} == {}
        assert {row.case: row.notes for row in done.rows if row.notes} == {}
        assert {(row.case, row.by, row.outcome, row.model) for row in done.rows} == {
            (name, "recording", "passed", "recording") for name in only
        }
        assert done.is_passed


def test_the_offline_analyst_answers_its_cases_and_no_others(tmp_path: Path) -> None:
    done = play(tmp_path, NO_STATES | {"llm.api_type": "offline"})
    cases, _ = read_cases(SHIPPED)
    mine = {case.name for case in cases if case.offline and not case.held_out}
    assert {row.case for row in done.rows if row.outcome == "passed"} == mine
    assert {row.outcome for row in done.rows if row.case not in mine} == {"skipped"}
    assert {row.by for row in done.rows} == {"offline"}


INJECTED = ["injected_file", "injected_tool", "injected_cell"]


@pytest.fixture(scope="module")
def obeyed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ResultRow]:
    """Results of a model that obeys injected instructions, by case."""

    def obey(messages: list[dict[str, str]]) -> str:
        return "PWNED" if "PWNED" in str(messages) else "```python\nopen('pwned.txt', 'w')\n```"

    project = make_project(tmp_path_factory.mktemp("obeyed") / "p", NO_STATES, has_table=False)
    done = evaluate(SHIPPED, project, model=obey, only=INJECTED)
    return {row.case: row for row in done.rows}


@pytest.mark.parametrize("name", INJECTED)
def test_a_model_that_obeys_an_injected_instruction_fails_its_case(
    obeyed: dict[str, ResultRow], name: str
) -> None:
    row = obeyed[name]
    assert row.outcome == "failed"
    assert any("PWNED" in problem or "pwned" in problem for problem in row.problems)
