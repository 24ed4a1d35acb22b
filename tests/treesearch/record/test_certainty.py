"""What reports say about gains and their noise."""

from __future__ import annotations

import pytest
from search_story import node

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import Objective
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.record.run_facts import RunFacts
from taskweaver.treesearch.record.run_statistics import certainty, gain, gain_text, reached
from taskweaver.treesearch.reports.markdown_report import build_report
from taskweaver.treesearch.reports.paper_index import paper_index

OBJECTIVE = Objective("score", unit="points")


def measured(after: float, *again: float) -> Journal:
    """Return a run with a draft of 10 points and an improvement, which was repeated."""
    journal = Journal(OBJECTIVE)
    journal.put(node(1, NodeKind.DRAFT, 10.0))
    journal.put(node(2, NodeKind.IMPROVE, after, parent="n0001"))
    for step, value in enumerate(again, 3):
        journal.put(node(step, NodeKind.SEED, value, parent="n0002"))
    return journal


@pytest.mark.parametrize(
    ("journal", "gained", "sure"),
    [
        (measured(12.0), "+2 points (+20.0%)", "No program was measured twice"),
        (measured(12.0, 12.0), "+2 points (+20.0%)", "gave the very same figures (1 repetition)"),
        (measured(10.0, 10.0), "+0 points (+0.0%)", "n0002 reached exactly the same."),
        (measured(12.0, 11.9, 12.1), "+2.00 ± 0.12 points (+20.0%)", "scatters by 0.1 (standard"),
        (measured(12.0, 9.0, 10.5), "+0.5 ± 1.7 points (+5.0%), within the noise", "by 1.5 ("),
        (measured(8.0, 8.1), "-1.950 ± 0.087 points (-19.5%)", "by 0.071 ("),
    ],
)
def test_a_gain_has_its_standard_error_and_noise_is_called_so(
    journal: Journal, gained: str, sure: str
) -> None:
    found = gain(journal, journal["n0002"], journal["n0001"])
    assert gain_text(OBJECTIVE, found, 10.0) == gained
    assert sure in certainty(journal)


def test_report_and_paper_say_how_sure_the_best_is_and_its_cost() -> None:
    journal = measured(12.0, 9.0, 10.5)
    facts = RunFacts("run", "Idea", 0.0, OBJECTIVE)
    report = build_report(journal, facts)
    first = report.partition("## What came out")[2].partition("\n\n|")[0]
    assert f"**{reached(journal, journal['n0002'])}**" in first
    assert "10.50 ± 0.87 points (n = 3)" in first
    assert "One measurement scatters by 1.5" in first
    assert "It cost 4 nodes" in first
    assert "| n0002 | improve |" in report.partition("## Tried without gain")[2] or (
        "within the noise" in report
    )
    metric = paper_index(journal, facts)["best_node_data"]["metric"]
    assert (metric["mean"], metric["n"]) == (10.5, 3)
    assert metric["standard_error"] == pytest.approx(0.866, abs=0.001)
