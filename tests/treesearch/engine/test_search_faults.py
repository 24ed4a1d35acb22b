"""Models and experiments that misbehave: the node is marked, and the search goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from phase_plans import artifacts
from search_lab import (
    ONE,
    PLACE,
    Climber,
    is_draft,
    is_memory_asked,
    lab,
    proposal,
    remembering,
    search,
    trying,
)

from taskweaver.llm.errors import ModelError
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model.node import NodeKind, NodeStatus
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.utils.redact import MASK, register_secret

DRAFTS = ONE | {"stage1_nodes": 3, "num_drafts": 2, "debug_prob": 1.0}
Prompt = Mapping[str, str]


def with_attempt(**parts: Any) -> Callable[[Prompt], str]:
    return partial(trying, **parts)


def refuse(_: Prompt) -> str:
    raise ModelError("bad_request", "too many words", "m")


def replies_of(made: Search, node: str = "n0001") -> list[str]:
    folder = made.places.node(node).prompt_logs
    return sorted(path.name for path in folder.glob("draft_*_reply.txt"))


def test_a_plan_that_cannot_be_read_is_asked_for_again(tmp_path: Path) -> None:
    def fault(prompt: Prompt) -> str | None:
        is_first = "Kind of attempt" not in prompt and "Parsing Feedback" not in prompt
        return remembering(prompt, "no plan at all", {"bogus": 1}) if is_first else None

    model = Climber(fault=fault)
    made = search(lab(tmp_path), model, **ONE, phase0="node")
    assert made.state.journal["n0001"].is_good
    assert ["Parsing Feedback" in prompt for prompt in model.prompts] == [False, True, False]


def test_results_of_memory_reads_are_cut_as_configured(tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        if "Memory Read Results" in prompt:
            return trying(prompt)
        return remembering(prompt, "", {"core": {"color": "blue" * 20}, "core_get": ["color"]})

    project = lab(tmp_path, **{"memory.section_budgets.results": 50})
    model = Climber(fault=reply)
    made = search(project, model, **ONE)
    names = [f"draft_attempt1_round{number}_reply.txt" for number in (0, 1)]
    assert replies_of(made) == names
    results, _, _ = model.prompts[1]["Memory Read Results"].partition("\n... (cut)")
    assert "core_get" in results
    assert len(results) == 50


UNUSABLE: Mapping[str, Callable[[Prompt], str]] = {
    "no object": lambda p: remembering(p, "I would rather not."),
    "a list": lambda p: remembering(p, "[1, 2]"),
    "a text for artifacts": lambda p: remembering(p, '{"phase_artifacts": "later"}'),
    "null": lambda p: remembering(p, '{"phase_artifacts": null}'),
    "numbers for commands": with_attempt(run={"commands": [17]}),
    "out of the workspace": with_attempt(
        coding={"workspace": {"files": [{"path": "../../out.sh", "content": "x"}]}}
    ),
    "an absolute path": with_attempt(
        coding={"workspace": {"files": [{"path": "/etc/out.sh", "content": "x"}]}}
    ),
    "a memory block that is no JSON": lambda _: "<memory_update>\nno\n</memory_update>\n{}",
    "an unknown operation": lambda p: remembering(p, "{}", {"explode": True}),
    "reads alone": lambda p: remembering(p, "", {"core_get": ["color"]}),
    "none, as the call fails": refuse,
}


def each_draft(replies: list[Callable[[Prompt], str]]) -> Callable[[Prompt], str | None]:
    """Make a fault for each draft, in order; what is left works."""

    def fault(prompt: Prompt) -> str | None:
        if not is_draft(prompt):
            return None
        number = len(re.findall("^- n", prompt.get("Other attempts", ""), re.MULTILINE))
        return replies[number](prompt) if number < len(replies) else None

    return fault


def test_replies_that_are_never_usable_fail_their_nodes_alone(tmp_path: Path) -> None:
    count = len(UNUSABLE)
    settings = DRAFTS | {"num_drafts": count, "stage1_nodes": count + 2, "retries": 2}
    made = search(lab(tmp_path), Climber(fault=each_draft([*UNUSABLE.values()])), **settings)
    nodes = made.state.journal.nodes
    for node, fault in zip(nodes, UNUSABLE, strict=False):
        kind, asked = ("ModelError", 0) if "none" in fault else ("PhasePlanError", 2)
        assert node.error.kind == kind, fault
        assert len(replies_of(made, node.id)) == asked + 3 * ("reads" in fault), fault
    assert nodes[count].kind is NodeKind.DRAFT  # there is nothing to repair
    assert nodes[count].is_good
    assert not list(made.places.folder.rglob("out.sh"))


RESULTS: Mapping[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"height": "NaN"}, "MetricError"),
    "infinite": ({"height": "-Infinity"}, "MetricError"),
    "a word": ({"height": '"high"'}, "MetricError"),
    "no JSON": ({"text": "high"}, "MetricError"),
    "nothing": ({"run": {"commands": ["true"]}}, "MetricError"),
    "said to be invalid": (
        {"text": '{"metric": 99, "valid": false, "details": {"why": "leak"}}'},
        "ValidityError",
    ),
    "missing output": (
        {"run": {"commands": ["true"], "expected_outputs": ["working/result.json"]}},
        "RuntimeError",
    ),
    "failed": ({"run": {"commands": ["echo so sad; exit 9"]}}, "RuntimeError"),
    "killed": ({"run": {"commands": ["kill -9 $$"]}}, "RuntimeError"),
}


def test_runs_without_a_result_fail_their_nodes_alone(tmp_path: Path) -> None:
    count = len(RESULTS)
    replies = [with_attempt(**parts) for parts, _ in RESULTS.values()]
    settings = DRAFTS | {"num_drafts": count, "stage1_nodes": count + 1}
    made = search(lab(tmp_path), Climber(fault=each_draft(replies)), **settings, memory=False)
    for node, (name, (_, kind)) in zip(made.state.journal.nodes, RESULTS.items(), strict=False):
        assert (node.status, node.error.kind) == (NodeStatus.BUGGY, kind), (name, node.error)
    assert made.state.journal.best().value == 0.0
    # A model that finds no metric in what was printed is asked once.
    logs = made.places.node("n0005").prompt_logs
    assert len([*logs.glob("metrics_extraction_attempt*_reply.txt")]) == 1


def test_a_run_that_hangs_is_stopped(tmp_path: Path) -> None:
    hanging = each_draft([with_attempt(run={"commands": ["sleep 600.61"]})])
    made = search(lab(tmp_path), Climber(fault=hanging), **ONE, run_timeout_s=1.0)
    (first,) = made.state.journal.nodes
    assert (first.status, first.error.kind) == (NodeStatus.TIMEOUT, "TimeoutError")


def test_nothing_that_works_ends_the_search_after_the_first_stage(tmp_path: Path) -> None:
    broken = Climber(fault=with_attempt(run={"commands": ["false"]}))
    made = search(lab(tmp_path), broken, report=True, **DRAFTS | {"stage2_nodes": 2})
    assert "no attempt of the first stage worked" in made.state.reason
    assert made.state.journal.best() is None
    assert len(made.state.journal) == 3
    assert "n0003" in (made.places.folder / "report.md").read_text()


def test_prose_odd_words_and_a_missing_memory_block_do_no_harm(tmp_path: Path) -> None:
    def prose(prompt: Prompt) -> str:
        body = json.dumps(proposal(PLACE, height=1.0), indent=1)
        return remembering(prompt, f"Here it is:\n```json\n{body}\n```\nI hope {{that}} helps!")

    def bare(prompt: Prompt) -> str:
        body = json.dumps(proposal(PLACE, height=2.0))
        return remembering(prompt, body) if "Parsing Feedback" in prompt else body

    def odd(prompt: Prompt) -> str:
        attempt = proposal(PLACE) | {"plan": "half \ud800 \0 a pair", "name": "\udfff=1"}
        updates = {"core": {"odd": "\ud800 \0"}, "archival": [{"text": "\ud800", "tags": ["X"]}]}
        is_first = "Parsing Feedback" not in prompt
        return remembering(prompt, json.dumps(attempt), updates if is_first else {})

    project, three = lab(tmp_path), ONE | {"stage1_nodes": 3, "num_drafts": 3}
    made = search(project, Climber(fault=each_draft([prose, bare, odd])), **three)
    assert [node.is_good for node in made.state.journal.nodes] == [True] * 3
    assert [len(replies_of(made, f"n000{number}")) for number in (1, 2)] == [1, 2]
    again = made.places.node("n0002").prompt_logs / "draft_attempt2_round0.md"
    assert "no <memory_update> block" in again.read_text()
    assert "half" in made.state.journal["n0003"].plan
    resumed = search(project, Climber(), resume=True, report=True)
    assert len(resumed.state.journal) == 3


def test_a_review_may_find_a_run_wrong(tmp_path: Path) -> None:
    def fault(prompt: Prompt) -> str | None:
        is_review = "Execution output" in prompt and "Kind of attempt" not in prompt
        if not is_review or is_memory_asked(prompt):
            return None
        return json.dumps({"is_bug": next(is_bug), "summary": "too good"})

    is_bug = iter([True, *[False] * 9])
    made = search(lab(tmp_path), Climber(fault=fault), **DRAFTS | {"num_drafts": 1}, review=True)
    first, mended, *_ = made.state.journal.nodes
    assert (first.status, first.error.kind) == (NodeStatus.BUGGY, "ReviewError")
    assert (first.analysis, first.value) == ("too good", 0.0)
    assert (mended.kind, mended.is_good) == (NodeKind.DEBUG, True)


def test_leaving_the_hard_data_set_out_does_not_win(tmp_path: Path) -> None:
    measured: list[Any] = [
        {"easy": 0.95, "hard": 0.6}, {"easy": 0.99}, {"hard": 0.7, "easy": 0.9, "new": 1.0}, 1.0,
    ]  # fmt: skip

    def fault(prompt: Prompt) -> str | None:
        if not is_draft(prompt):
            return None
        told.append(prompt["Evaluation metric"])
        return trying(prompt, text=json.dumps({"metric": next(metrics)}))

    metrics, told = iter(measured), list[str]()
    few = DRAFTS | {"stage1_nodes": 4, "num_drafts": 4}
    made = search(lab(tmp_path), Climber(fault=fault), **few, memory=False)
    first, short, full, one = made.state.journal.nodes
    assert made.state.journal.best() == full
    assert (first.value, full.value) == (pytest.approx(0.775), pytest.approx(0.8))
    assert full.metric.details == {"further data sets": {"new": 1.0}}
    for node, missing in [(short, "hard"), (one, "easy, hard")]:
        assert node.error.kind == "MetricError"
        assert f"compares {missing} too" in node.error.message
    assert "easy" not in told[0]
    assert "the mean over easy, hard" in told[1]


def test_a_model_that_cannot_be_asked_at_all_ends_the_search(tmp_path: Path) -> None:
    def refusing(prompt: Prompt) -> str | None:
        if "Other attempts" in prompt:
            raise ModelError("auth", "the key is not valid", "m")
        return None

    project = lab(tmp_path)
    with pytest.raises(ModelError, match="the key is not valid"):
        search(project, Climber(fault=refusing), **DRAFTS)
    made = search(project, Climber(), resume=True)
    assert made.state.is_over
    ids = [node.id for node in made.state.journal.nodes]
    assert ids == [f"n{n:04d}" for n in range(1, len(ids) + 1)]


def test_two_unusable_replies_do_not_end_a_stage(tmp_path: Path) -> None:
    def fault(prompt: Prompt) -> str | None:
        kind = prompt.get("Kind of attempt", "").split(" ")[0]
        is_early = "n0003" not in prompt.get("Other attempts", "") + prompt.get("Made from", "")
        return remembering(prompt, "no") if kind in {"hyperparam", "debug"} and is_early else None

    settings = ONE | {"stage2_nodes": 3, "retries": 1, "debug_prob": 1.0}
    made = search(lab(tmp_path), Climber(fault=fault), **settings)
    kinds = [node.kind.value for node in made.state.journal.nodes]
    assert len(kinds) == 4, kinds


SECRET = "search-canary-of-16-chars"
EVERYDAY = "token=abcdefghijklmnop1234"


def test_a_run_is_stored_as_it_ran_and_told_without_its_secrets(tmp_path: Path) -> None:
    """The model proposes a program with a secret; the first time with a mask in its place."""
    register_secret(SECRET)
    lines = [f"echo {MASK}"]

    def careless(prompt: Mapping[str, str]) -> str:
        line = lines.pop() if lines else f"{EVERYDAY}; echo {SECRET}"
        return trying(prompt, height=5.0, run={"commands": [line, "sh try.sh"]})

    model = Climber(fault=careless)
    run = search(lab(tmp_path), model, report=True, **ONE).places.folder
    log = run / "journal.jsonl"
    assert f"{EVERYDAY}; echo {SECRET}" in log.read_text()
    assert run.stat().st_mode & 0o077 == 0
    assert log.stat().st_mode & 0o077 == 0
    script = (run / "best" / "reproduce.sh").read_text()
    assert SECRET in script
    for name in ("report.md", "tree.html", "journal.json", "best/node.json"):
        text = (run / name).read_text()
        assert SECRET not in text, name
        assert EVERYDAY.partition("=")[2] in text or name == "report.md", name
    prompts = [path for path in (run / "logs").rglob("prompt_logs/**/*") if path.is_file()]
    assert prompts
    assert all(SECRET not in path.read_text() for path in prompts)
    # The model was asked again after the mask, and nothing ran meanwhile.
    assert "holds a mask" in model.prompts[1]["Parsing Feedback"]
    assert f"echo {MASK}" not in log.read_text()


def test_a_plan_with_a_mask_cannot_be_carried_out() -> None:
    file = {"path": "m.py", "content": f"key = '{MASK}'"}
    plan = artifacts(coding={"workspace": {"files": [file]}})
    with pytest.raises(PhasePlanError, match="read the value from its source"):
        PhasePlan.from_dict(plan)
