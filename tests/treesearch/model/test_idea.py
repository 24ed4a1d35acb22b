"""What an idea says is measured."""

from __future__ import annotations

import pytest

from taskweaver.treesearch.model.idea import parse_idea
from taskweaver.treesearch.model.node import Objective


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Metric: run time in s, lower is better.",
            Objective("run time", maximize=False, unit="s"),
        ),
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
        "",
        "## Metric\n\n## Other\n\nfoo",
        "## Metric\n\nRMSE in kWh. Lower is better.",
        "## Metric\n\n| Metric | Target |",
        "## Metric\n\nName: accuracy\nDirection: minimize",
        "## Objective\n\nfaster training",
    ],
)
def test_without_one_the_score_counts_and_that_is_said(text: str) -> None:
    objective, note = parse_idea(f"# An idea\n\n{text}\n").objective()
    assert objective == Objective()
    assert "names no metric" in note


@pytest.mark.parametrize(
    "text",
    [
        "It fails whatever the speed. Metric: median of 3 repeats, direction max.",
        "## Evaluation\n\nFive folds; our **metric**: accuracy",
    ],
)
def test_a_metric_inside_a_paragraph_is_not_read_and_the_note_names_it(text: str) -> None:
    objective, note = parse_idea(f"# An idea\n\n{text}\n").objective()
    assert objective == Objective()
    assert "`Metric:` is not at the start of a line" in note
