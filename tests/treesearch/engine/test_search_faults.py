"""Models and experiments that misbehave: the node is marked, and the search goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from search_lab import FULL, Climber, is_memory_asked, lab, proposal, remembering, search

from taskweaver.llm.errors import ModelError
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus

PLACE = {"x": 0, "y": 0, "z": 0}
DRAFTS = {"stage1_nodes": 3, "num_drafts": 2, "debug_prob": 1.0, "stage2_nodes": 0,
          "stage3_nodes": 0, "stage4_nodes": 0, "num_seeds": 0}  # fmt: skip
Prompt = Mapping[str, str]


def first_draft(reply: Callable[[Prompt], str]) -> Callable[[Prompt], str | None]:
    """Make a fault of the first draft alone, however often it is asked for."""

    def fault(prompt: Prompt) -> str | None:
        is_first = prompt.get("Kind of attempt") == "draft" and "Other attempts" not in prompt
        return reply(prompt) if is_first else None

    return fault


def with_attempt(**parts: Any) -> Callable[[Prompt], str]:
    return lambda prompt: remembering(prompt, json.dumps(proposal(PLACE, **parts)))


def drafted(folder: Path, reply: Callable[[Prompt], str], **settings: Any) -> tuple[Node, Search]:
    """Search with a fault in the first draft; check that the rest went on as usual."""
    made = search(lab(folder), Climber(fault=first_draft(reply)), **(DRAFTS | settings))
    first, *others = made.state.journal.nodes
    assert made.state.is_over
    assert others
    assert all(node.is_good for node in others)
    return first, made


def replies_of(made: Search, node: str = "n0001") -> list[str]:
    folder = made.places.node(node).prompt_logs
    return sorted(path.name for path in folder.glob("draft_*_reply.txt"))


def test_prose_around_json_is_no_fault(tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        body = json.dumps(proposal(PLACE, height=1.0), indent=1)
        return remembering(prompt, f"Here it is:\n```json\n{body}\n```\nI hope {{that}} helps!")

    first, made = drafted(tmp_path, reply)
    assert first.is_good
    assert len(replies_of(made)) == 1


def test_a_reply_without_its_memory_block_is_asked_for_again(tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        body = json.dumps(proposal(PLACE))
        return remembering(prompt, body) if "Parsing Feedback" in prompt else body

    first, made = drafted(tmp_path, reply)
    assert first.is_good
    assert len(replies_of(made)) == 2
    again = made.places.node("n0001").prompt_logs / "draft_attempt2_round0.md"
    assert "no <memory_update> block" in again.read_text()


def test_what_is_asked_of_the_memory_is_shown(tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        if "Memory Read Results" not in prompt:
            reads = {"core": {"color": "blue"}, "core_get": ["color"]}
            return remembering(prompt, "", reads)
        assert "blue" in prompt["Memory Read Results"]
        return remembering(prompt, json.dumps(proposal(PLACE)))

    first, made = drafted(tmp_path, reply)
    assert first.is_good
    assert replies_of(made) == [
        "draft_attempt1_round0_reply.txt",
        "draft_attempt1_round1_reply.txt",
    ]


def test_one_that_only_reads_comes_to_an_end(tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        return remembering(prompt, "", {"core_get": ["color"]})

    first, made = drafted(tmp_path, reply)
    assert first.status is NodeStatus.BUGGY
    assert len(replies_of(made)) <= 6


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
}


def each_draft(replies: list[Callable[[Prompt], str]]) -> Callable[[Prompt], str | None]:
    """Make a fault for each draft, in order; what is left works."""

    def fault(prompt: Prompt) -> str | None:
        if prompt.get("Kind of attempt") != "draft":
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
        assert node.status is NodeStatus.BUGGY, fault
        assert node.error is not None
        assert node.error.kind == "PhasePlanError", fault
        assert len(replies_of(made, node.id)) == 2, fault
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
        assert node.status is NodeStatus.BUGGY, name
        assert node.error is not None
        assert node.error.kind == kind, (name, node.error)
    best = made.state.journal.best()
    assert best is not None
    assert best.value == 0.0


def test_a_run_that_hangs_is_stopped(tmp_path: Path) -> None:
    hanging = with_attempt(run={"commands": ["sleep 600.61"]})
    first, _ = drafted(tmp_path, hanging, run_timeout_s=1.0, num_drafts=1, stage1_nodes=2)
    assert first.status is NodeStatus.TIMEOUT
    assert first.error is not None
    assert first.error.kind == "TimeoutError"


def test_nothing_that_works_ends_the_search_after_the_first_stage(tmp_path: Path) -> None:
    broken = Climber(fault=lambda p: with_attempt(run={"commands": ["false"]})(p))
    made = search(lab(tmp_path), broken, report=True, **(DRAFTS | {"stage2_nodes": 2}))
    assert made.state.is_over
    assert "no attempt of the first stage worked" in made.state.reason
    assert made.state.journal.best() is None
    assert len(made.state.journal) == 3
    assert "n0003" in (made.places.folder / "report.md").read_text()


def test_odd_words_do_no_harm(tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        attempt = proposal(PLACE) | {"plan": "half \ud800 \0 a pair", "name": "\udfff=1"}
        updates = {"core": {"odd": "\ud800 \0"}, "archival": [{"text": "\ud800", "tags": ["X"]}]}
        is_first = "Parsing Feedback" not in prompt
        return remembering(prompt, json.dumps(attempt), updates if is_first else {})

    first, made = drafted(tmp_path, reply)
    assert first.is_good
    assert "half" in first.plan
    again = search(made.places.folder.parents[1], Climber(), resume=True, report=True)
    assert len(again.state.journal) == len(made.state.journal)


def test_a_review_may_find_a_run_wrong(tmp_path: Path) -> None:
    def fault(prompt: Prompt) -> str | None:
        is_review = "Execution output" in prompt and "Kind of attempt" not in prompt
        if not is_review or is_memory_asked(prompt):
            return None
        return json.dumps({"is_bug": "first" in prompt["Plan"], "summary": "too good"})

    def model(prompt: Prompt) -> str | None:
        if prompt.get("Kind of attempt") == "draft":
            return remembering(prompt, json.dumps(proposal(PLACE) | {"plan": "the first"}))
        return fault(prompt)

    made = search(lab(tmp_path), Climber(fault=model), **DRAFTS, review=True)
    first = made.state.journal.nodes[0]
    assert first.status is NodeStatus.BUGGY
    assert first.error is not None
    assert (first.error.kind, first.analysis) == ("ReviewError", "too good")
    assert first.value == 0.0
    mended = [node for node in made.state.journal.nodes if node.kind is NodeKind.DEBUG]
    assert mended
    assert mended[0].is_good


POINTS: list[tuple[Any, bool]] = [
    ([{"metric_name": "height", "data": [{"dataset_name": "all", "value": 7}]}], True),
    ([{"metric_name": "height", "data": [{"value": 7}]}], True),
    ([{"metric_name": "height", "data": None}], False),
    ([{"metric_name": "height", "data": [{"dataset_name": "all", "value": 1e400}]}], False),
    (["height"], False),
    ([], False),
]


@pytest.mark.long
def test_a_metric_may_be_read_from_what_was_printed(tmp_path: Path) -> None:
    def fault(prompt: Prompt) -> str | None:
        if prompt.get("Kind of attempt") == "draft":
            return with_attempt(run={"commands": ["echo height 7"]})(prompt)
        if "Files" in prompt and not is_memory_asked(prompt):
            found = next(answers)
            return json.dumps({"valid_metrics_received": True, "metric_names": found})
        return None

    answers = (found for found, _ in POINTS)
    count = len(POINTS)
    few = DRAFTS | {"stage1_nodes": count, "num_drafts": count}
    made = search(lab(tmp_path), Climber(fault=fault), **few, memory=False)
    for node, (found, is_good) in zip(made.state.journal.nodes, POINTS, strict=True):
        assert node.is_good is is_good, found
        assert not is_good or node.value == 7.0


def test_leaving_the_hard_data_set_out_does_not_win(tmp_path: Path) -> None:
    measured: list[Any] = [
        {"easy": 0.95, "hard": 0.6}, {"easy": 0.99}, {"hard": 0.7, "easy": 0.9, "new": 1.0}, 1.0,
    ]  # fmt: skip

    def fault(prompt: Prompt) -> str | None:
        if prompt.get("Kind of attempt") != "draft":
            return None
        told.append(prompt["Evaluation metric"])
        attempt = proposal(PLACE, text=json.dumps({"metric": next(metrics)}))
        return remembering(prompt, json.dumps(attempt))

    metrics, told = iter(measured), list[str]()
    few = DRAFTS | {"stage1_nodes": 4, "num_drafts": 4}
    made = search(lab(tmp_path), Climber(fault=fault), **few, memory=False)
    first, short, full, one = made.state.journal.nodes
    assert made.state.journal.best() == full
    assert (first.value, full.value) == (pytest.approx(0.775), pytest.approx(0.8))
    assert full.metric is not None
    assert full.metric.details == {"further data sets": {"new": 1.0}}
    for node, missing in [(short, "hard"), (one, "easy, hard")]:
        assert node.error is not None
        assert node.error.kind == "MetricError"
        assert f"compares {missing} too" in node.error.message
    assert "easy" not in told[0]
    assert "the mean over easy, hard" in told[1]


def test_what_was_measured_stands_without_a_review(tmp_path: Path) -> None:
    def fault(prompt: Prompt) -> str | None:
        is_asked = "Execution output" in prompt and "Kind of attempt" not in prompt
        return "no idea" if is_asked and not is_memory_asked(prompt) else None

    settings = {key.removeprefix("search."): value for key, value in FULL.items()}
    made = search(lab(tmp_path), Climber(fault=fault), **(DRAFTS | settings), retries=1)
    assert made.state.is_over
    assert all(node.is_good for node in made.state.journal.nodes)
    assert "It was not reviewed" in made.state.journal.nodes[0].analysis


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


def test_a_call_that_fails_now_fails_its_node_alone(tmp_path: Path) -> None:
    def refuse(_: Prompt) -> str:
        raise ModelError("bad_request", "too many words", "m")

    first, _ = drafted(tmp_path, refuse, num_drafts=1, stage1_nodes=2)
    assert first.error is not None
    assert first.error.kind == "ModelError"
    assert "too many words" in first.error.message


def test_two_unusable_replies_do_not_end_a_stage(tmp_path: Path) -> None:
    def fault(prompt: Prompt) -> str | None:
        kind = prompt.get("Kind of attempt", "").split(" ")[0]
        is_early = "n0003" not in prompt.get("Other attempts", "") + prompt.get("Made from", "")
        return remembering(prompt, "no") if kind in {"hyperparam", "debug"} and is_early else None

    settings = {"stage1_nodes": 1, "num_drafts": 1, "stage2_nodes": 3, "stage3_nodes": 0,
                "stage4_nodes": 0, "num_seeds": 0, "retries": 1, "debug_prob": 1.0}  # fmt: skip
    made = search(lab(tmp_path), Climber(fault=fault), **settings)
    kinds = [node.kind.value for node in made.state.journal.nodes]
    assert len(kinds) == 4, kinds
