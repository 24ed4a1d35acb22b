"""Who is carried on: a model is asked once at the end of a stage, and its answer holds everywhere.

The model is a server on loopback: attempts come from a model by rules, judgements from the test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from search_lab import FAST, Climber, is_memory_asked, lab, proposal, remembering, sections_of
from sizes import some, spread

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ModelRequest
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.record.runlog import read_log
from taskweaver.treesearch.reports.run_results import write_results
from taskweaver.treesearch.service import report_run, resume_search, session_on_node, start_search

Prompt = Mapping[str, str]
Answer = Callable[[Prompt], str]
HEIGHTS = {"n0001": 5, "n0002": 7, "n0003": 6}
DRAFTS = FAST | {"search.judge": True, "search.stage1_nodes": 3, "search.stage2_nodes": 0,
                 "search.stage3_nodes": 0, "search.stage4_nodes": 0,
                 "search.num_seeds": 0}  # fmt: skip
TWO = DRAFTS | {"search.stage2_nodes": 1}
WHY = "The others read <b>the answers</b>\nof the test."
ID = re.compile(r"^## (n\d+)$", re.MULTILINE)


def naming(node_id: str) -> Answer:
    return lambda _: json.dumps({"selected_id": node_id, "reasoning": WHY})


class Desk:
    """A server that plays the model.

    Attributes:
        answer: What it judges.
        script: What a draft writes as its result.
        config: What makes a project use it.
        asked: The prompts it was asked to judge by, without those for the memory.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.script = '{"metric": HEIGHT}'
        self.config: dict[str, Any] = {}
        self.asked: list[dict[str, str]] = []
        self._climber = Climber(lambda _: 1.0)

    def play(self, call: Call) -> None:
        messages = call.body["messages"]
        prompt = sections_of(messages[-1]["content"])
        call.stream(good(self._reply(prompt, messages)))

    def _reply(self, prompt: dict[str, str], messages: Sequence[Any]) -> str:
        if "Candidates" in prompt:
            if is_memory_asked(prompt):
                return remembering(prompt, "", {"core": {"preferred_over": "what is honest"}})
            self.asked.append(prompt)
            return self.answer(prompt)
        if prompt.get("Kind of attempt", "").startswith("draft"):
            number = 1 + prompt.get("Other attempts", "").count(" draft")
            return remembering(prompt, json.dumps(self._draft(f"n{number:04d}")))
        return self._climber(messages, ModelRequest(messages))

    def _draft(self, node_id: str) -> dict[str, Any]:
        values = {"x": 0, "y": 0, "z": 0}
        return proposal(values, text=self.script.replace("HEIGHT", str(HEIGHTS[node_id])))


@contextmanager
def desk(answer: Answer) -> Iterator[Desk]:
    made = Desk(answer)
    with serving(made.play) as endpoint:
        made.config = {
            "llm.api_type": "openai",
            "llm.api_base": endpoint.url,
            "llm.api_key": "none",
            "llm.model": "m",
            "llm.max_retries": 0,
        }
        yield made


def searched(project: Path, settings: Mapping[str, Any], *, is_reported: bool = False) -> Search:
    with (
        TaskWeaverApp(project) as app,
        start_search(app, project / "idea.md", settings, name="run") as made,
    ):
        made.run(lambda _: None)
        if is_reported:
            write_results(made.places, made.state, made.budget, made.store)
    return made


def judged(made: Search) -> list[dict[str, Any]]:
    return [entry for entry in read_log(made.places.log) if entry["t"] == "judged"]


def best(made: Search) -> str:
    node = made.state.journal.best()
    assert node is not None
    return node.id


def test_what_is_judged_best_is_best_everywhere(tmp_path: Path) -> None:
    with desk(naming("n0003")) as model:
        project = lab(tmp_path, **model.config)
        made = searched(project, TWO, is_reported=True)
        assert ID.findall(model.asked[0]["Candidates"]) == ["n0002", "n0003", "n0001"]
        assert len(model.asked) == 2  # stage 1 and the end
        assert ID.findall(model.asked[1]["Candidates"])[0] != "n0002"
        entry, _ = judged(made)
        assert entry["candidates"] == ["n0002", "n0003", "n0001"]
        assert (entry["stage"], entry["chosen"]) == (1, "n0003")
        (child,) = made.state.journal.of_stage(2)
        assert child.parent == "n0003"
        with TaskWeaverApp(project) as app:
            assert session_on_node(app, "run/best")
    assert best(made) == "n0003"
    assert [passed.best for passed in made.state.passed] == ["n0003", "n0003"]
    folder = made.places.folder
    assert json.loads((folder / "best/node.json").read_text())["id"] == "n0003"
    journal = Journal.from_dict(json.loads((folder / "journal.json").read_text()))
    assert journal.judgements == made.state.journal.judgements
    found = journal.best()
    assert found is not None
    assert found.id == "n0003"
    sentence = "After stage 1, n0003 (6) was chosen by judgement; the metric alone would have"
    report = (folder / "report.md").read_text()
    assert f"{sentence} chosen n0002 (7)" in report
    assert "&lt;b>the answers&lt;/b> of the test." in report
    assert sentence in (folder / "tree.html").read_text()
    with MemoryManager(made.places.memory) as store:
        assert [e.kind for e in store["root"].events()].count("best_node_judged") == 1
        assert store.get_core("n0004", "preferred_over") == "what is honest"


def test_a_judgement_is_asked_for_once_though_the_run_is_broken_off(tmp_path: Path) -> None:
    with desk(naming("n0003")) as model:
        project = lab(tmp_path, **model.config)
        made = searched(project, TWO | {"search.num_seeds": 1})
        whole = [(node.id, node.kind, node.parent) for node in made.state.journal.nodes]
        assert ("n0005", NodeKind.SEED, "n0003") in whole  # what was chosen is repeated too
        lines = made.places.log.read_bytes().splitlines(keepends=True)
        told = read_log(made.places.log)
        at = next(n for n, entry in enumerate(told) if entry["t"] == "judged")
        ends = spread(range(at + 1, at + 8), 3)
        asked = len(model.asked)
        model.answer = lambda prompt: naming(
            "n0001" if "n0002" in prompt["Candidates"] else "n0003"
        )(prompt)  # it would say something else by now
        for end in some(ends, 3):  # as if it had been killed after each of these lines
            made.places.log.write_bytes(b"".join(lines[:end]))
            model.asked.clear()
            with TaskWeaverApp(project) as app, resume_search(app, "run") as again:
                again.run(lambda _: None)
            assert [(n.id, n.kind, n.parent) for n in again.state.journal.nodes] == whole, end
            assert again.state.passed[0].best == "n0003"
            assert len(model.asked) == asked - 1  # of the last stage alone
        with TaskWeaverApp(project) as app:
            report_run(app, made.places)
        assert len(model.asked) == asked - 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (naming("n0009"), "By metric: 'n0009' was chosen, which is no candidate."),
        (lambda _: "I like the third one.", "By metric: no model could judge. No reply to"),
        (lambda _: '{"selected_id": 3, "reasoning": ""}', "By metric: no model could judge."),
    ],
)
@pytest.mark.parametrize("memory", [False, pytest.param(True, marks=pytest.mark.long)])
def test_an_answer_that_is_none_leaves_it_to_the_metric(
    tmp_path: Path, answer: Answer, said: str, *, memory: bool
) -> None:
    with desk(answer) as model:
        settings = DRAFTS | {"memory.enabled": memory}
        made = searched(lab(tmp_path, **model.config), settings, is_reported=not memory)
        assert len(model.asked) == (1 if "candidate" in said else 3)
    (entry,) = judged(made)
    assert entry["reasoning"].startswith(said)
    assert entry["chosen"] == best(made) == "n0002"
    if not memory:
        assert "by judgement" not in (made.places.folder / "report.md").read_text()


@pytest.mark.long
def test_a_model_that_fails_leaves_it_to_the_metric(tmp_path: Path) -> None:
    with desk(naming("n0003")) as model:

        def play(call: Call) -> None:
            if "# Candidates" in call.body["messages"][-1]["content"]:
                call.refuse(400, "too many words")
            else:
                model.play(call)

        with serving(play) as endpoint:
            config = model.config | {"llm.api_base": endpoint.url}
            made = searched(lab(tmp_path, **config), DRAFTS)
    assert best(made) == "n0002"
    assert "too many words" in judged(made)[0]["reasoning"]


@pytest.mark.parametrize(("noise", "chosen"), [(3, "n0002"), (6, "n0003")])
def test_candidates_are_as_near_as_the_seeds_of_the_best_are_apart(
    tmp_path: Path, noise: int, chosen: str
) -> None:
    with desk(naming("n0003")) as model:
        model.script = f'{{"metric": $((10 * HEIGHT + {noise} * TASKWEAVER_SEED))e-1}}'
        made = searched(lab(tmp_path, **model.config), DRAFTS | {"search.num_seeds": 2})
    assert best(made) == chosen
    names = [entry["candidates"] for entry in judged(made)]
    assert names == ([["n0002", "n0003"]] if chosen == "n0003" else [])


def test_a_run_that_is_spent_is_judged_and_with_more_nodes_anew(tmp_path: Path) -> None:
    with desk(naming("n0001")) as model:
        project = lab(tmp_path, **model.config)
        made = searched(project, DRAFTS | {"search.steps": 2})
        assert made.state.is_spent
        assert best(made) == made.state.passed[-1].best == "n0001"
        with (
            TaskWeaverApp(project) as app,
            resume_search(app, "run", {"search.steps": 3}) as again,
        ):
            again.run(lambda _: None)
    assert [entry["candidates"] for entry in judged(again)] == [
        ["n0002", "n0001"],
        ["n0003", "n0001"],  # what was passed over stays so
    ]


def test_a_log_whose_judgement_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with desk(naming("n0003")) as model:
        project = lab(tmp_path, **model.config)
        made = searched(project, DRAFTS)
        text = made.places.log.read_text()
        for wrong in ("n0009", "n0001x"):
            made.places.log.write_text(text.replace('"chosen":"n0003"', f'"chosen":"{wrong}"'))
            with (
                TaskWeaverApp(project) as app,
                pytest.raises(SearchError, match="an entry that cannot be read"),
            ):
                resume_search(app, "run")


def test_nobody_is_asked_who_was_not_wanted(tmp_path: Path) -> None:
    with desk(naming("n0003")) as model:
        made = searched(lab(tmp_path, **model.config), DRAFTS | {"search.judge": False})
        assert model.asked == []
    assert judged(made) == []
    assert best(made) == "n0002"
