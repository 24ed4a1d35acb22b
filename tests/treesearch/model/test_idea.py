"""What an idea says is measured."""

from __future__ import annotations

import pytest

from taskweaver.treesearch.model.idea import parse_idea
from taskweaver.treesearch.model.node import Objective


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Metric: time in s, lower is better.", Objective("time", maximize=False, unit="s")),
        ("Metric: rate (GB/s, maximize)", Objective("rate", unit="GB/s")),
        ("Metric: latency (ms), lower is better", Objective("latency", maximize=False, unit="ms")),
        ("Metric: task(s) solved (maximize)", Objective("task")),
        ("Metric: score (higher/lower, maximize)", Objective("score")),
        ("## Metric\n\n- name: ratio (before / after, larger is better)", Objective("ratio")),
        ("## Evaluation metric\n\n**hit rate**, maximize\n\nmore of it", Objective("hit rate")),
        ("## Metric\n\nfirst\n\n## Other\n\nMetric: gain (maximize)", Objective("gain")),
    ],
)
def test_the_metric_is_in_a_line_or_under_a_heading(text: str, expected: Objective) -> None:
    assert parse_idea(f"# An idea\n\n{text}\n").objective() == (expected, "")


@pytest.mark.parametrize(
    "text",
    [
        "", "## Metric\n\n## Other\n\nfoo", "## Metric\n\nRMSE in kWh. Lower is better.",
        "## Metric\n\n| Metric | Target |", "## Metric\n\nName: accuracy\nDirection: minimize",
        "## Objective\n\nfaster training",
        "It fails whatever the speed. Metric: median of 3 repeats, direction max.",
        "## Evaluation\n\nFive folds; our **metric**: accuracy",
    ],
)  # fmt: skip
def test_without_one_the_score_counts_and_that_is_said(text: str) -> None:
    objective, note = parse_idea(f"# An idea\n\n{text}\n").objective()
    assert objective == Objective()
    is_inside = "etric:" in text or "**metric**:" in text
    assert ("`Metric:` is not at the start of a line" if is_inside else "names no metric") in note


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Predict prices. Minimise the mean absolute\nerror.",
            Objective("mean absolute error", False),
        ),
        ("- Maximize F1-score on the held-out year", Objective("F1-score", True)),
        ("The goal is to minimize cost of a run.", Objective("cost", False)),
        ("Here we\nminimise the loss with Adam.", Objective()),
        ("Minimise the error. Maximise the speed.", Objective()),
        ("Text.\nMinimise the error\nMaximise the speed", Objective()),
        ("**Goal:** minimise **RMSE** of weeks.", Objective("RMSE", False)),
        (
            "## Goal\nMaximise the number of correct answers.",
            Objective("number of correct answers"),
        ),
        ("Minimise validation loss from 0.3 to 0.2.", Objective("validation loss", False)),
        ("1. Minimise the MAE\n2. Report.", Objective("MAE", False)),
        ("The goal of this study is to minimise cost.", Objective("cost", False)),
        ("Classify digits. The idea of a vector machine is to maximise the margin.", Objective()),
        ("Minimise this.", Objective()),
        ("## Risk Factors and Limitations\n\n- Minimise risk of leaks.", Objective()),
    ],
)
def test_the_aim_of_a_sentence_is_the_metric_and_said(text: str, expected: Objective) -> None:
    objective, note = parse_idea(f"# An idea\n\n{text}\n").objective()
    assert objective == expected
    verb = "maximises" if expected.maximize else "minimises"
    assert f"names no metric: the run {verb} `{expected.name}`. Write" in note
