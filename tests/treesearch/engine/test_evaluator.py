"""The evaluator of a run: its figure counts, whatever an attempt writes or changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from search_lab import Climber, lab, proposal, search

from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.node import Node, NodeKind

ONE: dict[str, Any] = {
    "stage1_nodes": 1, "num_drafts": 1, "stage2_nodes": 0, "stage3_nodes": 0, "stage4_nodes": 0,
    "num_seeds": 0, "memory": False,
}  # fmt: skip
COUNT = "import json\nprint('counting')\nprint(json.dumps({'metric': len(open('made').read())}))\n"
LIE = "mkdir -p working .evaluator; echo '{\"metric\": 999}' > working/result.json\n"
EDIT = 'mkdir -p .evaluator; echo \'print("{\\"metric\\": 999}")\' > .evaluator/measure.py\n'
LINK = "rm -rf .evaluator; ln -s /tmp .evaluator\n"


def searched(
    folder: Path, evaluator: str, *commands: str, line: str = "measure.py", **more: Any
) -> Search:
    """Search with an attempt that runs commands, and an evaluator beside the idea."""
    project = lab(folder)
    (project / "measure.py").write_text(evaluator)
    with (project / "idea.md").open("a") as idea:
        idea.write(f"\nEvaluate: {line}\n")
    run = {"commands": [*commands, "printf abcde > made"]}

    def model(*_: Any) -> str:
        return json.dumps(proposal({"x": 0, "y": 0, "z": 0}, run=run))

    return search(project, model, **ONE | more)


def first(made: Search) -> Node:
    return made.state.journal.nodes[0]


@pytest.mark.parametrize("attempt", [LIE, EDIT, LINK, pytest.param("true", marks=pytest.mark.long)])
def test_the_evaluator_measures_whatever_an_attempt_does(tmp_path: Path, attempt: str) -> None:
    made = searched(tmp_path, COUNT, attempt)
    node = first(made)
    assert (node.value, node.error) == (5.0, None)
    assert "[evaluator]\ncounting" in node.output
    assert not (made.places.node(node.id).workspace / ".evaluator").exists()


def test_an_attempt_without_run_commands_is_measured(tmp_path: Path) -> None:
    project = lab(tmp_path)
    (project / "measure.py").write_text("print('{\"metric\": 7}')\n")
    with (project / "idea.md").open("a") as idea:
        idea.write("\nEvaluate: measure.py\n")
    attempt = json.dumps(proposal({"x": 0, "y": 0, "z": 0}, run={"commands": []}))
    node = first(search(project, lambda *_: attempt, **ONE))
    assert (node.value, node.error) == (7.0, None)
    assert (node.phases[-1].status, node.phases[-1].message[:19]) == ("ok", "The evaluator alone")


@pytest.mark.parametrize(
    ("evaluator", "kind", "problem"),
    [
        ("raise SystemExit('no such luck')", "EvaluationError", "no such luck"),
        ("print('12')", "MetricError", "no JSON object"),
        ("print('{\"metric\": NaN}')", "MetricError", "no finite number"),
        pytest.param(
            "print('{\"metric\": true}')", "MetricError", "must be a number", marks=pytest.mark.long
        ),
        ('print(\'{"metric": 1, "valid": false}\')', "ValidityError", "not valid"),
        ("import signal; signal.pause()", "TimeoutError", "evaluate: "),
    ],
)
def test_an_evaluator_that_measures_nothing_fails_the_attempt(
    tmp_path: Path, evaluator: str, kind: str, problem: str
) -> None:
    node = first(searched(tmp_path, evaluator, run_timeout_s=2))
    assert node.error is not None
    assert node.error.kind == kind
    assert problem in node.error.message


def test_the_evaluator_is_that_of_the_beginning_of_the_run(tmp_path: Path) -> None:
    made = searched(tmp_path, COUNT)
    project = tmp_path / "lab"
    (project / "measure.py").write_text("print('{\"metric\": 1}')")

    def model(*_: Any) -> str:
        run = {"commands": ["printf abcdefg > made"]}
        return json.dumps({"name": "more", **proposal({"x": 1, "y": 0, "z": 0}, run=run)})

    more = {"stage1_nodes": 2, "num_drafts": 2}
    made = search(project, model, resume=True, **ONE | more)
    assert [node.value for node in made.state.journal.nodes][:1] == [5.0]
    assert made.places.evaluator.joinpath("measure.py").read_text() == COUNT


def test_an_evaluator_has_arguments_and_the_files_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "lab" / "tools"
    script = "import json, sys, table\nprint(json.dumps({'metric': table.ROWS + len(sys.argv)}))\n"
    project = lab(tmp_path)
    folder.mkdir()
    (folder / "measure.py").write_text(script)
    (folder / "table.py").write_text("ROWS = 40\n")
    with (project / "idea.md").open("a") as idea:
        idea.write("\nEvaluate: `tools/measure.py --size 3`\n")
    seen: list[str] = []

    def model(messages: Any, *_: Any) -> str:
        seen.append(str(messages[-1]["content"]))
        return json.dumps(proposal({"x": 0, "y": 0, "z": 0}))

    made = search(project, model, **ONE | {"calls": "two"})
    assert first(made).value == 43.0
    assert "import json, sys, table" in seen[0]
    assert "working/result.json" not in seen[0].partition("# Instructions")[2]


@pytest.mark.parametrize("line", ["missing.py", "../measure.py", "/bin/../no", "'"])
def test_an_evaluator_that_is_not_beside_the_idea_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(SearchError, match="valuat"):
        searched(tmp_path, COUNT, line=line)
    assert not list((tmp_path / "lab" / "experiments").iterdir())


def test_the_report_says_who_measured(tmp_path: Path) -> None:
    made = searched(tmp_path / "a", COUNT, report=True)
    assert "own evaluator, measure.py" in (made.places.folder / "report.md").read_text()


MEET = (
    "mkdir -p {0}/in; touch {0}/in/$$; n=0;"
    " while [ $(ls {0}/in | wc -l) -lt 2 ] && [ $n -lt {1} ]; do sleep 0.1; n=$((n+1)); done;"
    " ls {0}/in | wc -l > together; {2}"
    ' mkdir -p working; echo "{{\\"metric\\": $(cat together)}}" > working/result.json'
)


@pytest.mark.parametrize(("timed", "most"), [("always", 1.0), ("never", 2.0)])
def test_timed_runs_have_the_machine_alone(tmp_path: Path, timed: str, most: float) -> None:
    """Each run counts those that run with it, and waits for a second one, the longer if it may."""
    project = lab(tmp_path)
    numbers = iter(range(9))
    is_alone = timed == "always"
    leave = f"rm {tmp_path}/met/in/$$;" if is_alone else ""
    command = MEET.format(tmp_path / "met", 5 if is_alone else 600, leave)

    def model(*_: Any) -> str:
        value = {"x": next(numbers), "y": 0, "z": 0}
        return json.dumps(proposal(value, run={"commands": [command]}))

    more = {"stage1_nodes": 2, "num_drafts": 2, "workers": 2, "timed": timed}
    made = search(project, model, **ONE | more)
    assert [node.value for node in made.state.journal.nodes] == [most, most]


AWAIT = (
    "touch {0}; n=0; while [ ! -e {1} ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done;"
    " [ -e {1} ]"
)


def test_a_download_goes_on_beside_a_timed_run(tmp_path: Path) -> None:
    """Each waits for the other one to begin; neither would, if one waited for the other's end."""
    fetching, running = tmp_path / "fetching", tmp_path / "running"
    sections = [
        {"download": {"commands": [AWAIT.format(fetching, running)]}},
        {"run": {"commands": [AWAIT.format(running, fetching), "sh try.sh"]}},
    ]
    numbers = iter(range(2))

    def model(*_: Any) -> str:
        number = next(numbers)
        return json.dumps(proposal({"x": number, "y": 0, "z": 0}, **sections[number]))

    more = {"stage1_nodes": 2, "num_drafts": 2, "workers": 2, "timed": "always"}
    made = search(lab(tmp_path), model, **ONE | more)
    assert all(node.is_good for node in made.state.journal.nodes)


def test_the_best_is_measured_again_without_the_search(tmp_path: Path) -> None:
    made = searched(tmp_path, COUNT, report=True)
    script = made.places.folder / "best" / "reproduce.sh"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", script], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout.splitlines()[-1]) == {"metric": 5}
    assert "python .evaluator/measure.py" in (made.places.folder / "report.md").read_text()


MEASURED = """import json, os
seed = int(os.environ["TASKWEAVER_SEED"])
place = json.loads(open("try.sh").readline().partition("VALUES ")[2].rstrip().rstrip("'"))
{}
print(json.dumps({{"metric": metric}}))
"""
ALL: dict[str, Any] = {
    "stage1_nodes": 3, "num_drafts": 1, "stage2_nodes": 5, "stage3_nodes": 2, "stage4_nodes": 0,
    "num_seeds": 2, "memory": False, "report": True,
}  # fmt: skip


def climbed(folder: Path, formula: str, model: Any = None) -> Search:
    """Search with an evaluator whose metric follows from the place that an attempt tries."""
    project = lab(folder)
    (project / "measure.py").write_text(MEASURED.format(formula))
    with (project / "idea.md").open("a") as idea:
        idea.write("\nEvaluate: measure.py\n")
    return search(project, model or Climber(), **ALL)


@pytest.mark.long
def test_a_constant_metric_has_no_winner_and_no_race(tmp_path: Path) -> None:
    made = climbed(tmp_path, "metric = 4")
    journal = made.state.journal
    best = journal.best()
    assert best is journal.nodes[0]
    assert made.state.is_over
    assert journal.samples(best.id).is_deterministic
    assert sum(node.kind is NodeKind.SEED for node in journal.nodes) == 1
    report = (made.places.folder / "report.md").read_text()
    assert "Repeated programs gave the very same figures (" in report
    assert "reached exactly the same." in report


@pytest.mark.long
def test_a_metric_that_is_nan_once_costs_one_attempt(tmp_path: Path) -> None:
    once = "metric = float('nan') if place == {'x': 1, 'y': 0, 'z': 0} else sum(place.values())"
    journal = climbed(tmp_path, once).state.journal
    failed = journal.buggy
    assert {node.error.kind for node in failed if node.error} == {"MetricError"}
    assert {node.parent for node in failed} <= {"n0001", *(node.id for node in failed)}
    best = journal.best()
    assert best is not None
    assert best.value is not None
    assert best.value > 0


@pytest.mark.long
def test_a_metric_with_two_modes_is_repeated_within_bounds_and_compared_by_seed(
    tmp_path: Path,
) -> None:
    made = climbed(tmp_path, "metric = (10 if seed % 2 else 1) + sum(place.values()) / 10")
    journal = made.state.journal
    seeds = [node for node in journal.nodes if node.kind is NodeKind.SEED]
    assert 0 < len([node for node in seeds if not node.is_fresh]) <= 3 * 3 * ALL["num_seeds"]
    for node in journal.good:
        own = [one for one in journal.repetitions(node.id) if one.kind is NodeKind.SEED]
        assert len(own) <= ALL["num_seeds"]
    best = journal.best()
    assert best is not None
    assert journal.samples(best.id).n > 1  # the higher mode alone does not win
    report = (made.places.folder / "report.md").read_text()
    assert best.value == max(node.value or 0 for node in journal.good if node.seed == 0)
    assert "fresh seeds, which chose nothing: +" in report
    assert "**, by node" in report
