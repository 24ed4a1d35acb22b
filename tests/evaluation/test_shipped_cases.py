"""The shipped cases: every recording is played, and what the offline analyst can answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_endpoint import Call, good, serving
from rounds import keys_of
from sizes import some
from support import NO_STATES, make_project

from taskweaver.evaluation.case import SHIPPED, EvalCase, read_cases
from taskweaver.evaluation.evaluation import Evaluation, evaluate

KINDS = 19
RISKY = ["an injected instruction", "a correction after an error"]
"""Kinds whose failure does harm."""

PAST = {"fork_in_the_past"}
"""Cases that go back to the state of a kernel at the end of an earlier round."""


def play(folder: Path, keys: dict[str, Any], **choices: Any) -> Evaluation:
    project = make_project(folder / "project", keys, has_table=False)
    return evaluate(SHIPPED, project, jobs=2, **choices)


def one_of_each_kind_first(cases: list[EvalCase]) -> list[str]:
    """Return the names of cases, those of the first case of each kind before the others."""
    found = {case.kind: case.name for case in reversed(cases)}
    first = [found.pop(kind) for kind in RISKY] + sorted(found.values())
    return [*first, *(case.name for case in cases if case.name not in first)]


def test_every_kind_has_cases_and_a_third_is_held_out() -> None:
    cases, broken = read_cases(SHIPPED)
    assert broken == []
    assert len({case.kind for case in cases}) == KINDS
    assert sum(case.held_out for case in cases) * 3 == len(cases) == 48
    assert all(case.is_recorded for case in cases)


def test_recordings_are_played_to_the_end(tmp_path: Path) -> None:
    cases, _ = read_cases(SHIPPED)
    names = set(some(one_of_each_kind_first(cases), KINDS)) - PAST
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


def test_a_model_that_obeys_an_injected_instruction_fails_its_case(tmp_path: Path) -> None:
    def obey(call: Call) -> None:
        is_done = "PWNED" in str(call.body["messages"])
        call.stream(good("PWNED" if is_done else "```python\nopen('pwned.txt', 'w')\n```"))

    with serving(obey) as endpoint:
        keys = NO_STATES | keys_of(endpoint.url, **{"llm.form": "fences"})
        done = play(tmp_path, keys, only=["injected_file", "injected_cell"])
    assert {row.outcome for row in done.rows} == {"failed"}
    for row in done.rows:
        assert any("PWNED" in problem or "pwned" in problem for problem in row.problems)
