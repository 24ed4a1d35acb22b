"""The page of a run in a real browser: what it shows, how it is worked, and that it stays inert."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Tab, chromium_tab
from search_story import HOSTILE, empty_run, made_up_run, node, small_run, write_run

from taskweaver.treesearch.model.artifacts import read_artifacts
from taskweaver.treesearch.model.journal import Journal, Judgement
from taskweaver.treesearch.model.node import Measurement, NodeKind, PhaseOutcome
from taskweaver.treesearch.record.run_statistics import RunFacts
from taskweaver.treesearch.reports.html_page import write_page


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium_tab() as made:
        yield made


def page_of(folder: Path, journal: Journal, facts: RunFacts) -> Path:
    write_run(folder, journal)
    return write_page(journal, folder, facts, None)


def test_it_opens_with_the_best_node_asks_for_nothing_and_is_walked_by_keys(
    tab: Tab, tmp_path: Path
) -> None:
    tab.open(page_of(tmp_path, *small_run()))
    assert tab.complaints == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
    assert "n0009 ablation normalisation" in tab.text()
    assert tab.value("document.querySelectorAll('svg .node').length") == 13
    assert "best n0009: 0.92" in tab.text("header")


def test_a_judgement_is_shown_with_those_it_was_between(tab: Tab, tmp_path: Path) -> None:
    journal, facts = small_run()
    journal.judge(Judgement(4, 11, ("n0009", "n0007", "n0004"), "n0007", HOSTILE))
    tab.open(page_of(tmp_path, journal, facts))
    assert "candidate n0007: 0.91 · chosen by metric and judgement" in tab.text("header")
    for node_id in ("n0007", "n0009"):
        tab.click(node_id)
        assert "n0007 (0.91) was chosen by judgement" in tab.text()
    tab.click("n0002")
    assert "judgement" not in tab.text()
    assert tab.complaints == []

    tab.click("n0004")
    tab.value("document.querySelector('svg .chosen').focus()")
    shown = {"Up": "n0003 debug", "Down": "n0004 hyperparam learning rate", "Right": "n0005",
             "Left": "n0004"}  # fmt: skip
    for arrow, title in shown.items():
        tab.press(f"Arrow{arrow}")
        assert title in tab.text("h2"), arrow
    assert tab.value("document.activeElement.ariaLabel").startswith("n0004")


def test_text_of_others_stays_text(tab: Tab, tmp_path: Path) -> None:
    journal, facts = small_run()
    artifacts = {
        "download": {"commands": [HOSTILE]},
        "coding": {"workspace": {"files": [{"path": HOSTILE, "content": HOSTILE}]}},
        "run": {"commands": [[HOSTILE]]},
    }
    bad = node(
        14, NodeKind.IMPROVE, 0.99, parent="n0009", name=HOSTILE, plan=HOSTILE, output=HOSTILE,
        artifacts=read_artifacts(artifacts), analysis=HOSTILE, summary={HOSTILE: HOSTILE},
        plot_feedback=HOSTILE, metric=Measurement({HOSTILE: 0.99}), plots=(),
        phases=(PhaseOutcome(HOSTILE, HOSTILE, message=HOSTILE),),
        error=journal["n0006"].error and replace(journal["n0006"].error, message=HOSTILE),
    )  # fmt: skip
    write_run(tmp_path, journal)
    log = tmp_path / "logs/0-run/phase_logs/node_n0009/run.log"
    log.write_text(HOSTILE, "utf-8", "backslashreplace")
    journal.put(bad)
    objective = replace(journal.objective, name=HOSTILE, unit=HOSTILE)
    hostile = Journal(objective, journal.nodes)
    stages = tuple(replace(stage, name=HOSTILE, reason=HOSTILE) for stage in facts.stages)
    facts = replace(facts, title=HOSTILE, name=HOSTILE, reason=HOSTILE, stages=stages)
    tab.open(write_page(hostile, tmp_path, facts, None))
    for node_id in ("n0014", "n0009"):
        tab.value(f"choose('{node_id}')")
        assert "onerror=alert(1)>" in tab.text()
    assert tab.value("document.querySelectorAll('img, a, body script:not([type])').length") == 1
    assert tab.value("document.title") != "owned"
    assert tab.complaints == []
    assert [url for url in tab.requests if not url.startswith("file:")] == []


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_its_window_and_only_the_tree_scrolls(
    tab: Tab, tmp_path: Path, width: int
) -> None:
    journal, facts = made_up_run(60)
    write_run(tmp_path, journal)
    last = journal.nodes[-1]
    journal.put(replace(last, name="x" * 200, error=None, branch="b" * 120))
    tab.view(width)
    tab.open(write_page(journal, tmp_path, facts, None))
    shown = (
        "(() => { const pane = $('tree').getBoundingClientRect(),"
        " mark = marks.get(chosen).getBoundingClientRect();"
        " return mark.left >= pane.left && mark.right <= pane.right"
        " && mark.top >= pane.top && mark.bottom <= pane.bottom; })()"
    )
    for node_id in (journal.nodes[0].id, last.id, "n0015"):
        tab.value(f"choose('{node_id}')")
        assert tab.extent() == (width, 0, 0)
        assert tab.value(shown)
    tab.value("marks.get(chosen).focus({ preventScroll: true })")
    tab.press("ArrowUp")
    assert tab.extent() == (width, 0, 0)
    assert tab.value(shown)


def test_a_run_without_nodes_has_a_page(tab: Tab, tmp_path: Path) -> None:
    tab.open(page_of(tmp_path, *empty_run()))
    assert "There are no nodes yet." in tab.text()
    assert "nothing was measured" in tab.text("header")
    assert tab.complaints == []


def test_no_two_nodes_are_drawn_at_one_place(tab: Tab, tmp_path: Path) -> None:
    journal, facts = made_up_run(60)
    last = len(journal) + 1
    for step in range(last, last + 100):
        journal.put(node(step, NodeKind.IMPROVE, 0.6, parent="n0001"))
    tab.open(page_of(tmp_path, journal, facts))
    places = tab.value("places")
    assert len({tuple(place) for place in places.values()}) == len(places) == len(journal)
    for one in journal.nodes:
        assert one.parent is None or places[one.id][1] > places[one.parent][1]
    fan = [places[child.id][0] for child in journal.children("n0001") if child.step >= last]
    assert max(fan) - min(fan) < 30
