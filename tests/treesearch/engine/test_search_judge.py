"""Who is carried on: a model is asked at the end of a stage, and its answer holds everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from desk import Asked, Desk, at_desk
from search_lab import ONE, PLACE, Climber, proposal, remembering, search
from search_story import read_journal
from sizes import some, spread

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.record.runlog import read_log
from taskweaver.treesearch.service import report_run, session_on_node

HEIGHTS = {"n0001": 5, "n0002": 7, "n0003": 6}
DRAFTS = ONE | {"judge": True, "num_drafts": 3, "stage1_nodes": 3}
TWO = DRAFTS | {"stage2_nodes": 1}
WHY = "The others read <b>the answers</b>\nof the test."
ID = re.compile(r"^## (n\d+)$", re.MULTILINE)
Answer = Callable[[Asked], str | int]


def naming(node_id: str) -> str:
    return json.dumps({"selected_id": node_id, "reasoning": WHY})


@contextmanager
def judge(folder: Path, answer: Answer, result: str = "HEIGHT") -> Iterator[tuple[Path, Desk]]:
    """Give a project, and its model: what it judges, and the result that its drafts write."""

    def attempt(asked: Asked) -> str | None:
        if not asked.prompt["Kind of attempt"].startswith("draft"):
            return None
        number = 1 + asked.prompt.get("Other attempts", "").count(" draft")
        metric = result.replace("HEIGHT", str(HEIGHTS[f"n{number:04d}"]))
        return json.dumps(proposal(PLACE, height=metric))

    def keep(asked: Asked) -> str:
        return remembering(asked.prompt, "", {"core": {"preferred_over": "what is honest"}})

    answers = {"attempt": attempt, "judge": answer, "judge memory": keep}
    desk = Desk(answers, Climber(lambda _: 1.0))
    with at_desk(folder, desk) as (project, _):
        yield project, desk


def judged(made: Search) -> list[dict[str, Any]]:
    return [entry for entry in read_log(made.places.log) if entry["t"] == "judged"]


def best(made: Search) -> str:
    return made.state.journal.best().id


def test_what_is_judged_best_is_best_everywhere(tmp_path: Path) -> None:
    with judge(tmp_path, lambda _: naming("n0003")) as (project, desk):
        made = search(project, None, report=True, **TWO)
        asked = desk.of("judge", is_memory=False)  # at stage 1 and the end
        names = [ID.findall(one.prompt["Candidates"]) for one in asked]
        assert names[0] == ["n0002", "n0003", "n0001"]
        assert [each[0] for each in names] == ["n0002", "n0003"]
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
    journal = read_journal(json.loads((folder / "journal.json").read_text()))
    assert journal.judgements == made.state.journal.judgements
    assert journal.best().id == "n0003"
    sentence = "After stage 1, n0003 (6) was chosen by judgement; the metric alone would have"
    report = (folder / "report.md").read_text()
    assert f"{sentence} chosen n0002 (7)" in report
    assert "&lt;b>the answers&lt;/b> of the test." in report
    assert sentence in (folder / "tree.html").read_text()
    with MemoryManager(made.places.memory) as store:
        assert [e.kind for e in store["root"].events()].count("best_node_judged") == 1
        assert store.get_core("n0004", "preferred_over") == "what is honest"


def test_a_judgement_is_asked_for_once_though_the_run_is_broken_off(tmp_path: Path) -> None:
    replies = ["n0003"]

    def answer(asked: Asked) -> str:
        is_first = "n0002" in asked.prompt["Candidates"]
        return naming(replies[0] if is_first else "n0003")

    with judge(tmp_path, answer) as (project, desk):
        made = search(project, None, **TWO | {"num_seeds": 1})
        whole = [(node.id, node.kind, node.parent) for node in made.state.journal.nodes]
        assert ("n0005", NodeKind.SEED, "n0003") in whole  # what was chosen is repeated too
        lines = made.places.log.read_bytes().splitlines(keepends=True)
        told = read_log(made.places.log)
        at = next(n for n, entry in enumerate(told) if entry["t"] == "judged")
        ends = spread(range(at + 1, at + 8), 3)
        asked = len(desk.of("judge", is_memory=False))
        replies[0] = "n0001"  # it would say something else by now
        for end in some(ends, 3):  # as if it had been killed after each of these lines
            made.places.log.write_bytes(b"".join(lines[:end]))
            desk.asked.clear()
            again = search(project, None, resume=True)
            assert [(n.id, n.kind, n.parent) for n in again.state.journal.nodes] == whole, end
            assert again.state.passed[0].best == "n0003"
            assert len(desk.of("judge", is_memory=False)) == asked - 1  # of the last stage alone
        with TaskWeaverApp(project) as app:
            report_run(app, made.places)
        assert len(desk.of("judge", is_memory=False)) == asked - 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (naming("n0009"), "By metric: 'n0009' was chosen, which is no candidate."),
        ("I like the third one.", "By metric: no model could judge. No reply to"),
        ('{"selected_id": 3, "reasoning": ""}', "By metric: no model could judge. No reply to"),
        pytest.param(400, "By metric: no model could judge. Model call", marks=pytest.mark.long),
    ],
)
def test_an_answer_that_is_none_leaves_it_to_the_metric(
    tmp_path: Path, answer: str | int, said: str
) -> None:
    with judge(tmp_path, lambda _: answer) as (project, desk):
        made = search(project, None, report=True, **DRAFTS, memory=False)
        assert len(desk.of("judge")) == (3 if "No reply" in said else 1)
    (entry,) = judged(made)
    assert entry["reasoning"].startswith(said)
    assert entry["chosen"] == best(made) == "n0002"
    assert "by judgement" not in (made.places.folder / "report.md").read_text()


@pytest.mark.parametrize(("noise", "chosen"), [(3, "n0002"), (6, "n0003")])
def test_candidates_are_as_near_as_the_seeds_of_the_best_are_apart(
    tmp_path: Path, noise: int, chosen: str
) -> None:
    result = f"$((10 * HEIGHT + {noise} * TASKWEAVER_SEED))e-1"
    with judge(tmp_path, lambda _: naming("n0003"), result) as (project, _):
        made = search(project, None, **DRAFTS | {"num_seeds": 2})
    assert best(made) == chosen
    names = [entry["candidates"] for entry in judged(made)]
    assert names == ([["n0002", "n0003"]] if chosen == "n0003" else [])


def test_a_run_that_is_spent_is_judged_and_with_more_nodes_anew(tmp_path: Path) -> None:
    with judge(tmp_path, lambda _: naming("n0001")) as (project, _):
        made = search(project, None, **DRAFTS, steps=2)
        assert made.state.is_spent
        assert best(made) == made.state.passed[-1].best == "n0001"
        again = search(project, None, resume=True, steps=3)
    assert [entry["candidates"] for entry in judged(again)] == [
        ["n0002", "n0001"],
        ["n0003", "n0001"],  # what was passed over stays so
    ]


def test_a_log_whose_judgement_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with judge(tmp_path, lambda _: naming("n0003")) as (project, _):
        log = search(project, None, **DRAFTS).places.log
        text = log.read_text()
        for wrong in ("n0009", "n0001x"):
            log.write_text(text.replace('"chosen":"n0003"', f'"chosen":"{wrong}"'))
            with pytest.raises(SearchError, match="an entry that cannot be read"):
                search(project, None, resume=True)


def test_nobody_is_asked_who_was_not_wanted(tmp_path: Path) -> None:
    with judge(tmp_path, lambda _: naming("n0003")) as (project, desk):
        made = search(project, None, **DRAFTS | {"judge": False})
        assert desk.of("judge") == []
    assert judged(made) == []
    assert best(made) == "n0002"
