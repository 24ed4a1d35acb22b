"""The questions of `bench/questions`: each is well formed, and pandas knows what is right."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.questions.files import frames, place
from bench.questions.judging import Answer, judge
from bench.questions.model import KINDS, Question, Turn, is_chosen, load
from bench.questions.reading import spellings

OPEN, HELD_OUT = load("open"), load("held_out")
ALL = [*OPEN, *HELD_OUT]
AVAILABLE = [question for question in ALL if question.can_be_asked]
GROUPS = sorted({question.group for question in AVAILABLE})


def members(group: str) -> list[Question]:
    return [question for question in AVAILABLE if question.group == group]


@contextmanager
def named(question: Question) -> Iterator[None]:
    """Tell the question at a failure in the block."""
    try:
        yield
    except Exception as error:
        error.add_note(f"The question is {question.id}.")
        raise


def test_there_are_enough_questions_in_each_class() -> None:
    sizes = Counter(question.group for question in ALL)

    assert len(ALL) >= 300
    assert min(sizes.values()) >= 8
    assert len({question.id for question in ALL}) == len(ALL)


def test_a_third_is_held_out_by_the_hash_of_its_id() -> None:
    assert 0.28 <= len(HELD_OUT) / len(ALL) <= 0.39
    for question in OPEN:
        assert not question.is_held_out
        assert not is_chosen(question.id), f"{question.id} belongs into held_out"
    for question in HELD_OUT:
        assert question.is_held_out
        assert is_chosen(question.id), f"{question.id} belongs into open"


@pytest.mark.parametrize("group", GROUPS)
def test_an_expectation_has_a_value_which_is_right_alone(group: str) -> None:
    for question in members(group):
        with named(question):
            assert question.files
            assert any(turn.kind for turn in question.turns)
            for turn in question.turns:
                assert turn.ask.strip()
                assert turn.kind in ("", *KINDS)
                _check_value(turn, question.value(turn), question.choices(turn))
                _check_judging(question, turn, question.value(turn))


def _check_value(turn: Turn, value: Any, choices: list[str]) -> None:
    if turn.kind in ("number", "share"):
        assert isinstance(value, Real)
        assert not math.isnan(value)
    elif turn.kind == "table":
        assert isinstance(value, pd.Series | pd.DataFrame)
        assert len(value)
        assert not value.isna().to_numpy().any()
    elif turn.kind in ("numbers", "names"):
        assert [pd.notna(item) for item in value] == [True] * len(list(value))
        assert len(list(value))
    elif turn.kind == "date":
        assert pd.notna(pd.Timestamp(value))
    if choices:
        wanted = [value] if turn.kind == "text" else value
        assert {str(item) for item in wanted} <= set(choices)


def _check_judging(question: Question, turn: Turn, value: Any) -> None:
    """Check that the right answer is right, and another is wrong."""
    if not turn.kind:
        return
    if turn.kind in ("refuse", "asks"):
        right = Answer("I do not understand `x`. Which column do you mean?")
    elif turn.kind == "plot":
        right = _picture(value["kind"], value.get("columns", []))
    else:
        right = Answer(_written(turn.kind, value))
    assert judge(question, turn, right) == "right", right
    assert judge(question, turn, Answer("The mean is:\n\n```\n-98765.4321\n```")) == "wrong"
    expected = "right" if turn.kind in ("refuse", "asks") else "refused"
    assert judge(question, turn, Answer("I did not understand `x`.")) == expected


def _picture(kind: str, columns: list[str]) -> Answer:
    calls = {"histogram": "hist", "line": "plot", "box": "boxplot"}
    code = f"axes.{calls.get(kind, kind)}({', '.join(map(repr, columns))})"
    return Answer("Saved: `picture.png`", code=code, pictures=["picture.png"])


def _written(kind: str, value: Any) -> str:
    """Return a value as an answer shows it."""
    if kind == "table":
        table = pd.DataFrame(value)
        return f"The result:\n\n```\n{table.reset_index().to_string()}\n```"
    if kind in ("numbers", "names"):
        return "The result:\n\n```\n" + "\n".join(map(str, value)) + "\n```"
    if kind == "contains":
        return ", ".join(map(str, value))
    if kind == "date":
        return f"It was on {spellings(pd.Timestamp(value))[0]}."
    return f"Answer (12 rows):\n\n```\n{value}\n```"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Here is the mean:\n\n```\n5076.016260162602\n```", "right"),
        ("mean of `body_mass_g` where `species` is Gentoo (123 rows): **5,076.02**", "right"),
        ("mean of `body_mass_g`: 4201.75 (342 rows)", "wrong"),
        ("```\n     species  body_mass_g\n0  Adelie  3700.66\n1  Chinstrap 3733.09\n"
         "2  Gentoo 5076.016\n```", "wrong"),
        ("There is no column `Gentoo`. Which one do you mean?", "refused"),
        ("This could not be done: KeyError", "wrong"),
        ("", "wrong"),
    ],
)  # fmt: skip
def test_an_answer_is_judged_by_its_result(text: str, verdict: str) -> None:
    question = Question("x", "filter", ("penguins.csv",), (), False)
    expected = "penguins[penguins.species == 'Gentoo'].body_mass_g.mean()"
    turn = Turn("mean body_mass_g of Gentoo", "number", expected)

    assert judge(question, turn, Answer(text)) == verdict


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ("| species | mean |\n|---|---|\n| Adelie | 3,700.66 |\n| Chinstrap | 3,733.09 |\n"
         "| Gentoo | 5,076.02 |", "right"),
        ("- Adelie: 3700.7\n- Chinstrap: 3733.1\n- Gentoo: 5076.0", "right"),
        ("- Adelie: 3700.7\n- Chinstrap: 3733.1", "wrong"),
        ("- Adelie: 3733.1\n- Chinstrap: 3700.7\n- Gentoo: 5076.0", "wrong"),
    ],
)  # fmt: skip
def test_a_table_may_be_written_in_several_forms(rows: str, verdict: str) -> None:
    question = Question("x", "aggregate", ("penguins.csv",), (), False)
    expected = "penguins.groupby('species').body_mass_g.mean()"
    turn = Turn("mean body_mass_g per species", "table", expected)

    assert judge(question, turn, Answer(f"Mean per species (344 rows):\n\n{rows}")) == verdict


@pytest.mark.parametrize(
    "file", sorted({file for question in AVAILABLE for file in question.files})
)
def test_a_file_is_made_the_same_twice(file: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        place(file, tmp_path / name)

    first, second = (tmp_path / name / file for name in ("one", "two"))
    if first.suffix != ".xlsx":  # a workbook holds the time it was made at
        assert first.read_bytes() == second.read_bytes()
    assert all(len(frame) for frame in frames((file,)).values())
