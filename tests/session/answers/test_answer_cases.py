"""The check marks the false answers of the benchmark's set, and none of the true ones."""

from __future__ import annotations

import pytest

from bench.answer_checks import Case, cases

CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=[case.answer[:40] for case in CASES])
def test_an_answer_is_marked_where_it_is_false(case: Case) -> None:
    assert bool(case.marked) != case.is_true, case.marked


def test_the_set_has_enough_answers_of_both_kinds() -> None:
    assert sum(case.is_true for case in CASES) >= 40
    assert sum(not case.is_true for case in CASES) >= 14
