"""Typing errors: corrected with a note, and never a name taken for another one."""

from __future__ import annotations

import pytest
from reading_worlds import column, number, outcome_of, source, table

from taskweaver.analyst.readings.condition import Column, Comparison, Condition
from taskweaver.analyst.readings.reading import Measure, Summary, Understood

CARS = table(
    "cars.csv",
    column("cut", "text", "Premium", "Ideal", "Standard"),
    column("maker", "text", "General Electric", "Hansen", "Boston Motors"),
    number("balance"),
)
READINGS: dict[str, tuple[str, Condition | None, str]] = {
    "avrage balance": ("mean", None, "I took “avrage” as “average”."),
    "maximun balance of Premiun": (
        "max",
        Comparison(Column("cut"), "==", "Premium"),
        "I took “Premiun” as “premium”.",
    ),
    "median balance of Genral Electric": (
        "median",
        Comparison(Column("maker"), "==", "General Electric"),
        "I took “Genral” as “general”.",
    ),
    "median balance of stnadard": (
        "median",
        Comparison(Column("cut"), "==", "Standard"),
        "I took “stnadard” as “standard”.",
    ),
}


@pytest.mark.parametrize("text", READINGS)
def test_typing_errors_are_corrected_with_a_note(text: str) -> None:
    function, where, note = READINGS[text]
    outcome = outcome_of(text, CARS)
    assert isinstance(outcome, Understood), outcome
    measure = Measure(function, Column("balance"))  # type: ignore[arg-type]
    assert outcome.reading == Summary(source(CARS), (measure,), where=where)
    assert note in outcome.notes


@pytest.mark.parametrize(
    "text",
    [
        "average balance of Hanson",
        "average balance of Bolton Motors",
        "average balance of Generals Electric",
        "average balanced of Premiere",
    ],
)
def test_other_words_are_not_taken_for_a_typing_error(text: str) -> None:
    assert not isinstance(outcome_of(text, CARS), Understood)


def test_words_that_mean_something_are_kept() -> None:
    outcome = outcome_of("average balance per cut", CARS)
    assert isinstance(outcome, Understood)
    assert not outcome.notes
