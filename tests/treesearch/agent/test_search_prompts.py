"""What a model is shown: everything once, the form of the reply last, and faults in plain words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from search_lab import (
    FULL,
    ONE,
    PLACE,
    Climber,
    is_draft,
    lab,
    proposal,
    remembering,
    search,
    trying,
)
from search_story import node

from taskweaver.llm.parsing.json_text import required_object
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.agent.describe import attempt_lines
from taskweaver.treesearch.agent.phase0 import read_plan
from taskweaver.treesearch.agent.prompt_files import PromptFiles, plan_lines
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import NodeError, NodeKind, Objective
from taskweaver.treesearch.model.phase_plan import PhasePlan

IDEA = "Three numbers, from 0 to 3."
FORMS = {"Instructions", "Reply"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Search, Climber]:
    """A search with a failing draft, a model for everything, and several data sets."""

    def fault(prompt: Mapping[str, str]) -> str | None:
        if not is_draft(prompt) or "Other attempts" in prompt:
            return None
        return trying(prompt, text='{"metric": {"east": 1.0, "west": NaN}}')

    model = Climber(fault=fault)
    return search(lab(tmp_path_factory.mktemp("prompts")), model, num_drafts=1, **FULL), model


def test_nothing_is_said_twice_and_the_form_of_the_reply_comes_last(
    whole: tuple[Search, Climber],
) -> None:
    made, model = whole
    assert {node.kind for node in made.state.journal.nodes} == set(NodeKind)
    sent = [path.read_text() for path in made.places.folder.rglob("*_attempt*.md")]
    prompts = [prompt for prompt in sent if "# Research idea" in prompt]
    assert len(prompts) > 20
    for prompt in prompts:
        assert prompt.count(IDEA) == 1
        assert len(re.findall("^Begin your reply with exactly one", prompt, re.MULTILINE)) <= 1
        assert prompt.count("- compilers:") + prompt.count("hardware_compiler") <= 1
        assert prompt.count("go up") <= 1
    for prompt in model.prompts:
        assert list(prompt)[-1] in FORMS | {"Parsing Feedback"}
        assert len(FORMS & set(prompt)) == 1


def test_a_child_is_told_what_its_parent_wanted_reached_and_taught(
    whole: tuple[Search, Climber],
) -> None:
    made, model = whole
    children = [p for p in model.prompts if "Code" in p and "Kind of attempt" in p]
    assert children
    for prompt in children:
        parent = made.state.journal[prompt["Made from"]]
        assert parent.plan in prompt["Its plan"]
        assert prompt["Result"].endswith(f"({parent.status})")
        assert prompt["What was learnt"] == "Found: well\nTo try next: well"
    mended = next(p for p in children if p["Kind of attempt"] == "debug")
    assert "the mean of east 1, west nan" in mended["Result"]
    assert "Stage" not in mended


@pytest.mark.parametrize("form", ["execution_split", "default", "phase0", "phase1"])
def test_the_example_of_a_form_is_accepted(form: str) -> None:
    text = PromptFiles().text(f"agent/parallel/response_format/{form}")
    found = required_object(text, {})
    if form == "execution_split":
        plan = PhasePlan.from_dict(found["phase_artifacts"], {"gcc"})
        assert plan.expected_outputs == ("working/result.json",)
        assert "gcc -O2 src/main.c -o bin/main -lm" in str(plan.build.filled(plan.compile[0]))
    elif form == "phase0":
        assert read_plan(text).internal is not None
    else:
        assert {"default": "code", "phase1": "command"}[form] in found


def test_parts_of_a_plan_that_say_nothing_are_left_out() -> None:
    plan = {"goal": "go", "empty": {"a": [], "b": {"c": ""}}, "exit_code": 0, "no": None}
    assert plan_lines(plan) == ["goal: go", "exit_code: 0"]


def test_a_reader_is_told_how_often_it_may_read(tmp_path: Path) -> None:
    def fault(prompt: Mapping[str, str]) -> str:
        wants = {} if "You may read" not in prompt["Memory operations"] else {"core_get": ["a"]}
        return remembering(prompt, json.dumps(proposal(PLACE)), wants)

    model = Climber(fault=fault)
    made = search(lab(tmp_path, **{"memory.max_memory_read_rounds": 2}), model, **ONE)
    assert made.state.journal.nodes[0].is_good
    told = [re.findall(r"You may read .*\.", p["Memory operations"]) for p in model.prompts]
    assert told == [["You may read at most 2 times."], ["You may read once."], []]


def test_what_prompts_say_anyway_is_not_shown_when_it_is_put_away(tmp_path: Path) -> None:
    model = Climber()
    settings = ONE | {"stage2_nodes": 2}
    made = search(lab(tmp_path, **{"memory.core_max_chars": 250}), model, **settings)
    with MemoryManager(made.places.memory) as store:
        branches = [node.branch for node in made.state.journal.nodes]
        put_away = [r.text for b in branches for r in store[b].records(tags=["CORE_EVICT"])]
    assert any("hardware_" in text for text in put_away)
    assert len(model.prompts) == 3
    assert not any("hardware_" in prompt["Memory"] for prompt in model.prompts)


def test_a_fault_in_the_json_is_shown_with_its_place(tmp_path: Path) -> None:
    good = json.dumps(proposal(PLACE))

    def fault(prompt: Mapping[str, str]) -> str:
        is_first = "Parsing Feedback" not in prompt
        body = good.replace('"phase_artifacts":', '"phase_artifacts"') if is_first else good[:-1]
        return remembering(prompt, body if is_first else f"{body},}}", {"core": {"a": "1"}})

    model = Climber(fault=fault)
    made = search(lab(tmp_path), model, **ONE)
    assert made.state.journal.nodes[0].is_good
    said = model.prompts[1]["Parsing Feedback"]
    assert '"phase_artifacts" `, before `{"coding"' in said
    assert "here a colon is needed" in said
    assert "Its memory block was not applied: send that too." in said
    assert len(model.prompts) == 2


def test_of_a_failure_siblings_see_the_end_that_names_it() -> None:
    trace = "run: `python main.py`: exit status 1\n" + 'File "/a/b.py", line 3, in fit\n' * 9
    error = NodeError("RuntimeError", f"{trace}ValueError: Input X contains NaN.")
    long = NodeError("RuntimeError", "begin " + "word " * 99 + "the end")
    failed = [node(n, NodeKind.DRAFT, error=each) for n, each in enumerate((error, long), 1)]
    first, second = attempt_lines(Journal(Objective(), failed), failed)
    assert "(RuntimeError: ValueError: Input X contains NaN.)" in first
    assert "word the end)" in second
    assert "begin" not in second
