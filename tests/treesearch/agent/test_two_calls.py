"""Two calls for an attempt: itself in fences, and one review with its lessons."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from desk import Answer, Asked, Desk, at_desk, plot_program
from live_folders import paths_below
from patience import PATIENCE_S
from search_lab import ONE, PLACE, proposal, search

from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search

TWO: dict[str, Any] = ONE | {
    "calls": "two", "phase0": "draft", "review": True, "summaries": True, "plots": True,
}  # fmt: skip
REVIEW = {"is_bug": False, "summary": "It ran.", "findings": "up", "next_steps": "on"}


def reviewed(**fields: Any) -> str:
    return json.dumps({**REVIEW, "plots": False, **fields})


def one_step(asked: Asked) -> str:
    """Answer a first attempt with a whole file, and others with an edit of it."""
    number = len(asked.prompt.get("Other attempts", "").splitlines())
    if asked.prompt["Kind of attempt"].startswith("draft"):
        sections = proposal(PLACE, height=1.0)["phase_artifacts"]
        script = sections["coding"]["workspace"]["files"][0]["content"]
        commands = json.dumps({"compile": sections["compile"], "run": sections["run"]})
        return f"try\n\n```file try.sh\n{script}```\n\n```commands\n{commands}\n```\n"
    value = asked.prompt["Code"].partition('"metric": ')[2].partition("}")[0]
    return (
        f"raise it, a {number}. time\n\n```edit try.sh\n<<<<<<< SEARCH\n"
        f'{{"metric": {value}}}\n=======\n{{"metric": {float(value) + 1}}}\n>>>>>>> REPLACE\n```\n'
        f'```commands\n{{"name": "up{number}-{value}"}}\n```'
    )


def desk_with(**answers: Answer) -> Desk:
    """Return a model that attempts step by step and finds each attempt well."""
    usual: dict[str, Answer] = {
        "attempt": one_step,
        "assessment": lambda _: reviewed(),
        "plan": lambda _: '{"plan": {"goal_summary": "go up"}}',
        "stage summary": lambda _: '{"summary": "well"}',
    }
    return Desk(usual | answers)


def searched(folder: Path, desk: Desk, **settings: Any) -> Search:
    with at_desk(folder, desk) as (project, _):
        made = search(project, None, **TWO | settings)
    assert made.state.is_over
    return made


def test_an_attempt_takes_two_calls(tmp_path: Path) -> None:
    """The plan of the first is inherited; children are edits, and the commands are the parent's."""
    desk = desk_with()
    made = searched(tmp_path, desk, stage2_nodes=2)
    nodes = made.state.journal.nodes
    assert [node.value for node in nodes] == [1.0, 2.0, 3.0]
    assert all(node.summary == {"findings": "up", "next_steps": "on"} for node in nodes)
    asked = Counter(asked.step for asked in desk.asked)
    assert asked == {"plan": 1, "attempt": 3, "assessment": 3, "stage summary": 2}
    assert [node.cost.calls for node in nodes] == [3, 2, 2]
    files = [made.places.node(node.id).plans / "phase0_plan.json" for node in nodes]
    plans = [json.loads(file.read_text()) for file in files]
    assert [plan.get("inherited_from") for plan in plans] == [None, "n0001", "n0001"]
    assert plans[0]["plan"] == plans[2]["plan"]
    with MemoryManager(made.places.memory) as store:
        kinds = {event.kind for event in store[nodes[1].branch].events()}
    assert {"node_created", "metrics_extracted", "node_summary", "node_result"} <= kinds


@pytest.mark.parametrize("left", [{}, {"plots": None}, {"findings": "up"}, {"untrue": "n0001"}])
def test_fields_a_review_leaves_out_are_empty(tmp_path: Path, left: dict[str, Any]) -> None:
    desk = desk_with(assessment=lambda _: json.dumps({"is_bug": False, **left}))
    made = searched(tmp_path, desk)
    (node,) = made.state.journal.nodes
    assert len(desk.of("assessment")) == 1
    assert (node.error, node.analysis) == (None, "")
    assert node.summary == ({"findings": "up"} if "findings" in left else {})


def test_a_reply_that_is_refused_leaves_no_memory(tmp_path: Path) -> None:
    def review(asked: Asked) -> str:
        is_first = "Parsing Feedback" not in asked.prompt
        block = json.dumps({"core": {"refused" if is_first else "accepted": "x"}})
        body = "It went well." if is_first else reviewed()
        return f"<memory_update>{block}</memory_update>\n{body}"

    desk = desk_with(assessment=review)
    made = searched(tmp_path, desk)
    (node,) = made.state.journal.nodes
    assert "Its memory block was not applied" in desk.of("assessment")[1].prompt["Parsing Feedback"]
    with MemoryManager(made.places.memory) as store:
        assert store.get_core(node.branch, "accepted") == "x"
        assert store.get_core(node.branch, "refused") is None


def test_what_a_review_finds_untrue_is_withdrawn(tmp_path: Path) -> None:
    """A lesson leaves the prompts of others; a core key is hidden from the attempt on."""

    def review(asked: Asked) -> str:
        if "Made from" not in asked.prompt and "Lessons so far" not in asked.prompt:
            block = '<memory_update>{"core": {"approach": "plain loop"}}</memory_update>'
            return f"{block}\n{reviewed(findings='Loops are fast.')}"
        return reviewed(findings="Tiles are faster.", untrue=["n0001", "approach", "nothing"])

    desk = desk_with(assessment=review)
    made = searched(tmp_path, desk, stage2_nodes=2)
    first, second, third = made.state.journal.nodes
    assert "Loops are fast." in desk.of("assessment")[1].prompt["Lessons so far"]
    assert second.refutes == ("n0001",)
    assert "approach: plain loop" in desk.of("attempt")[1].prompt["Memory"]
    last = desk.of("attempt")[2].prompt
    assert third.parent == second.id
    assert "Loops are fast." not in str(last)
    assert "approach: plain loop" not in last["Memory"]
    with MemoryManager(made.places.memory) as store:
        assert store.get_core(first.branch, "approach") == "plain loop"
        (event,) = [e for e in store[second.branch].events() if e.kind == "findings_refuted"]
    assert event.text == "n0002 found untrue: n0001, approach"


def test_a_review_that_rewrites_an_untrue_key_keeps_its_new_value(tmp_path: Path) -> None:
    """One of a failed attempt withdraws no lesson."""

    def review(asked: Asked) -> str:
        is_first = "Made from" not in asked.prompt and "Lessons so far" not in asked.prompt
        value = "plain loop" if is_first else "tiles"
        block = f'<memory_update>{{"core": {{"approach": "{value}"}}}}</memory_update>'
        untrue = [] if is_first else ["n0001", "approach"]
        return f"{block}\n{reviewed(is_bug=not is_first, untrue=untrue)}"

    made = searched(tmp_path, desk_with(assessment=review), stage2_nodes=1)
    first, second = made.state.journal.nodes
    assert (second.error.kind, second.analysis, second.refutes) == ("ReviewError", "It ran.", ())
    with MemoryManager(made.places.memory) as store:
        assert store.get_core(first.branch, "approach") == "plain loop"
        assert store.get_core(second.branch, "approach") == "tiles"


def test_a_first_attempt_sees_the_plan_of_one_that_runs(tmp_path: Path) -> None:
    first_wrote = threading.Event()
    second_asked = threading.Event()
    lock = threading.Lock()
    plans: list[str] = []

    def plan(_: Asked) -> str:
        with lock:
            plans.append(f"way {len(plans)}")
            mine = plans[-1]
        if mine == "way 1":
            assert first_wrote.wait(PATIENCE_S)
        return json.dumps({"plan": {"goal_summary": mine}})

    def attempt(asked: Asked) -> str:
        if "way 0" in asked.prompt["Phase 0 plan"]:
            first_wrote.set()
            assert second_asked.wait(PATIENCE_S)
        else:
            second_asked.set()
        return one_step(asked)

    desk = desk_with(plan=plan, attempt=attempt)
    searched(tmp_path, desk, num_drafts=2, stage1_nodes=2, workers=2)
    shown = [a.prompt for a in desk.of("attempt") if "way 1" in a.prompt["Phase 0 plan"]]
    assert "draft: running. way 0" in shown[0]["Other attempts"]


def test_a_plot_that_a_review_asks_for_delays_no_attempt(tmp_path: Path) -> None:
    """With one worker, too, the next attempt is asked for while a plot is drawn."""
    next_began = threading.Event()
    waited: list[bool] = []

    def plotting(_: Asked) -> str:
        waited.append(next_began.wait(PATIENCE_S))
        return plot_program("height.png")

    def attempt(asked: Asked) -> str:
        if not asked.prompt["Kind of attempt"].startswith("draft"):
            next_began.set()
        return one_step(asked)

    review = [reviewed(plots=True), reviewed()]
    desk = desk_with(
        plotting=plotting,
        attempt=attempt,
        assessment=lambda _: review.pop(0) if review else reviewed(),
    )
    made = searched(tmp_path, desk, stage2_nodes=2)
    assert waited == [True]
    first, *others = made.state.journal.nodes
    assert first.plots == ("nodes/n0001/plots/height.png",)
    assert (first.wants_plots, first.cost.calls) == (False, 4)
    assert not any(node.plots for node in others)
    assert "Memory" not in desk.of("plotting")[0].prompt


HANGS_ONCE = """
import signal
from pathlib import Path
begun = Path("working/begun")
if not begun.exists():
    begun.touch()
    signal.pause()
"""


def test_a_plot_gives_way_to_a_timed_run(tmp_path: Path) -> None:
    """A program that hangs holds up no run that has the machine alone; it begins again later."""
    found: list[Path] = []

    def attempt(asked: Asked) -> str:
        while not asked.prompt["Kind of attempt"].startswith("draft") and not found:
            threading.Event().wait(0.05)
            found.extend(paths_below(tmp_path, "n0001/working/begun"))
        return one_step(asked)

    review = [reviewed(plots=True), reviewed()]
    drawing = json.loads(plot_program("height.png"))["code"]
    desk = desk_with(
        plotting=lambda _: json.dumps({"code": HANGS_ONCE + drawing}),
        attempt=attempt,
        assessment=lambda _: review.pop(0),
    )
    made = searched(tmp_path, desk, stage2_nodes=1, timed="always")
    first, second = made.state.journal.nodes
    assert second.is_good
    assert len(first.plots) == len(desk.of("plotting")) == 1


def test_plots_a_model_could_not_be_asked_for_are_drawn_after_the_end(tmp_path: Path) -> None:
    answers: list[str | int] = [400]
    desk = desk_with(
        assessment=lambda _: reviewed(plots=True),
        plotting=lambda _: answers.pop() if answers else plot_program("height.png"),
    )
    with at_desk(tmp_path, desk) as (project, _):
        made = search(project, None, **TWO, retries=1)
        (node,) = made.state.journal.nodes
        assert made.state.is_over
        assert (node.plots, node.wants_plots) == ((), True)
        assert node.plot_feedback.startswith("No plots were drawn: ")
        again = search(project, None, resume=True)
    (node,) = again.state.journal.nodes
    assert again.state.is_over
    assert (len(node.plots), node.wants_plots, node.plot_feedback) == (1, False, "")


def test_a_plot_can_be_declined(tmp_path: Path) -> None:
    desk = desk_with(assessment=lambda _: reviewed(plots=True), plotting=lambda _: "none")
    made = searched(tmp_path, desk)
    assert len(desk.of("plotting")) == 1
    assert made.state.journal.nodes[0].is_good


def test_models_are_chosen_by_their_work(tmp_path: Path) -> None:
    desk = desk_with(assessment=lambda _: reviewed(plots=True))
    aliases = {name: {"llm.model": f"the-{name}"} for name in ("coder", "critic", "scribe")}
    with at_desk(tmp_path, desk, **{"ext_llms.llm_configs": aliases}) as (project, _):
        work = {"code_alias": "coder", "feedback_alias": "critic", "summary_alias": "scribe"}
        search(project, None, **TWO | work)
    assert {asked.step: asked.model for asked in desk.asked} == {
        "plan": "the-coder", "attempt": "the-coder", "plotting": "the-coder",
        "assessment": "the-critic", "stage summary": "the-scribe",
    }  # fmt: skip


@pytest.mark.parametrize(("wait_s", "asked"), [(60, 1), (1, 2)])
def test_a_reply_may_begin_late(tmp_path: Path, wait_s: int, asked: int) -> None:
    """A search waits by a limit of its own; after it the question is asked again."""
    late = threading.Event()

    def attempt(question: Asked) -> str:
        if not late.is_set():
            late.set()
            threading.Event().wait(1.5)
        return one_step(question)

    desk = desk_with(attempt=attempt)
    with at_desk(tmp_path, desk, **{"llm.max_retries": 1}) as (project, _):
        settings = TWO | {"review": False, "plots": False, "summaries": False, "phase0": "off"}
        made = search(project, None, **settings, first_token_timeout_s=wait_s)
    assert made.state.journal.nodes[0].is_good
    assert len(desk.of("attempt")) == asked
