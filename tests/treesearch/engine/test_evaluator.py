"""The evaluator of a run: its figure counts, whatever an attempt writes or changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from search_lab import ONE, PLACE, Climber, lab, proposal, search

from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.node import Node, NodeKind

ALONE = ONE | {"memory": False}
COUNT = "import json\nprint('counting')\nprint(json.dumps({'metric': len(open('made').read())}))\n"
LIE = "mkdir -p working .evaluator; echo '{\"metric\": 999}' > working/result.json\n"
EDIT = 'mkdir -p .evaluator; echo \'print("{\\"metric\\": 999}")\' > .evaluator/measure.py\n'
LINK = "rm -rf .evaluator; ln -s /tmp .evaluator\n"


def evaluated_lab(folder: Path, evaluator: str, line: str = "measure.py") -> Path:
    """Make a project with an evaluator beside its idea."""
    project = lab(folder)
    (project / "measure.py").write_text(evaluator)
    with (project / "idea.md").open("a") as idea:
        idea.write(f"\nEvaluate: {line}\n")
    return project


def searched(
    folder: Path, evaluator: str, *commands: str, line: str = "measure.py", **more: Any
) -> Search:
    """Search with an attempt that runs commands, and an evaluator beside the idea."""
    run = {"commands": [*commands, "printf abcde > made"]}
    reply = json.dumps(proposal(PLACE, run=run))
    return search(evaluated_lab(folder, evaluator, line), lambda _: reply, **ALONE | more)


def first(made: Search) -> Node:
    return made.state.journal.nodes[0]


@pytest.mark.parametrize("attempt", [LIE, EDIT, LINK])
def test_the_evaluator_measures_whatever_an_attempt_does(tmp_path: Path, attempt: str) -> None:
    made = searched(tmp_path, COUNT, attempt)
    node = first(made)
    assert (node.value, node.error) == (5.0, None)
    assert "[evaluator]\ncounting" in node.output
    assert not (made.places.node(node.id).workspace / ".evaluator").exists()


def test_an_attempt_without_run_commands_is_measured(tmp_path: Path) -> None:
    project = evaluated_lab(tmp_path, "print('{\"metric\": 7}')\n")
    attempt = json.dumps(proposal(PLACE, run={"commands": []}))
    node = first(search(project, lambda _: attempt, **ALONE))
    assert (node.value, node.error) == (7.0, None)
    assert (node.phases[-1].status, node.phases[-1].message[:19]) == ("ok", "The evaluator alone")


@pytest.mark.parametrize(
    ("evaluator", "kind", "problem"),
    [
        ("raise SystemExit('no such luck')", "EvaluationError", "no such luck"),
        ("print('12')", "MetricError", "no JSON object"),
        ("print('{\"metric\": NaN}')", "MetricError", "no finite number"),
        ('print(\'{"metric": 1, "valid": false}\')', "ValidityError", "not valid"),
        ("import signal; signal.pause()", "TimeoutError", "evaluate: "),
    ],
)
def test_an_evaluator_that_measures_nothing_fails_the_attempt(
    tmp_path: Path, evaluator: str, kind: str, problem: str
) -> None:
    node = first(searched(tmp_path, evaluator, run_timeout_s=2))
    assert node.error.kind == kind
    assert problem in node.error.message


def test_the_evaluator_is_that_of_the_beginning_of_the_run(tmp_path: Path) -> None:
    two = {"stage1_nodes": 2, "num_drafts": 2}
    searched(tmp_path, COUNT, steps=1, **two)
    project = tmp_path / "lab"
    (project / "measure.py").write_text("print('{\"metric\": 1}')")
    reply = json.dumps(proposal(PLACE, run={"commands": ["printf abcdefg > made"]}))
    made = search(project, lambda _: reply, resume=True, steps=2)
    assert [node.value for node in made.state.journal.nodes] == [5.0, 7.0]


def test_an_evaluator_has_arguments_and_the_files_of_its_folder(tmp_path: Path) -> None:
    script = "import json, sys, table\nprint(json.dumps({'metric': table.ROWS + len(sys.argv)}))\n"
    project, model = evaluated_lab(tmp_path, "", "`tools/measure.py --size 3`"), Climber()
    (project / "tools").mkdir()
    (project / "tools/measure.py").write_text(script)
    (project / "tools/table.py").write_text("ROWS = 40\n")
    made = search(project, model, **ALONE, calls="two")
    assert first(made).value == 43.0
    (prompt,) = model.prompts
    assert "import json, sys, table" in str(prompt)
    assert "working/result.json" not in prompt["Instructions"]


@pytest.mark.parametrize("line", ["missing.py", "../measure.py", "/bin/../no", "'"])
def test_an_evaluator_that_is_not_beside_the_idea_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(SearchError, match="valuat"):
        searched(tmp_path, COUNT, line=line)
    assert not list((tmp_path / "lab" / "experiments").iterdir())


MEET = (
    "mkdir -p {0}/in; touch {0}/in/$$; n=0;"
    " while [ $(ls {0}/in | wc -l) -lt 2 ] && [ $n -lt {1} ]; do sleep 0.1; n=$((n+1)); done;"
    " ls {0}/in | wc -l > together; {2}"
    ' mkdir -p working; echo "{{\\"metric\\": $(cat together)}}" > working/result.json'
)


def two_at_a_time(folder: Path, timed: str, *sections: dict[str, Any]) -> Search:
    """Search with two drafts at one time."""
    replies = [json.dumps(proposal({"x": n}, **parts)) for n, parts in enumerate(sections)]
    two = ALONE | {"stage1_nodes": 2, "num_drafts": 2, "workers": 2, "timed": timed}
    return search(lab(folder), lambda _: replies.pop(), **two)


@pytest.mark.parametrize(("timed", "most"), [("always", 1.0), ("never", 2.0)])
def test_timed_runs_have_the_machine_alone(tmp_path: Path, timed: str, most: float) -> None:
    """Each run counts those that run with it, and waits for a second one, the longer if it may."""
    is_alone = timed == "always"
    leave = f"rm {tmp_path}/met/in/$$;" if is_alone else ""
    run = {"commands": [MEET.format(tmp_path / "met", 5 if is_alone else 600, leave)]}
    made = two_at_a_time(tmp_path, timed, {"run": run}, {"run": run})
    assert [node.value for node in made.state.journal.nodes] == [most, most]


AWAIT = (
    "touch {0}; n=0; while [ ! -e {1} ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done;"
    " [ -e {1} ]"
)


def test_a_download_goes_on_beside_a_timed_run(tmp_path: Path) -> None:
    """Each waits for the other one to begin; neither would, if one waited for the other's end."""
    fetching, running = tmp_path / "fetching", tmp_path / "running"
    made = two_at_a_time(
        tmp_path,
        "always",
        {"download": {"commands": [AWAIT.format(fetching, running)]}},
        {"run": {"commands": [AWAIT.format(running, fetching), "sh try.sh"]}},
    )
    assert all(node.is_good for node in made.state.journal.nodes)


def test_the_best_is_measured_again_without_the_search(tmp_path: Path) -> None:
    made = searched(tmp_path, COUNT, report=True)
    script = made.places.folder / "best" / "reproduce.sh"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", script], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout.splitlines()[-1]) == {"metric": 5}
    report = (made.places.folder / "report.md").read_text()
    assert "python .evaluator/measure.py" in report
    assert "own evaluator, measure.py" in report


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


def climbed(folder: Path, formula: str) -> Search:
    """Search with an evaluator whose metric follows from the place that an attempt tries."""
    return search(evaluated_lab(folder, MEASURED.format(formula)), Climber(), **ALL)


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
    assert journal.samples(best.id).n > 1  # the higher mode alone does not win
    report = (made.places.folder / "report.md").read_text()
    assert best.value == max(node.value or 0 for node in journal.good if node.seed == 0)
    assert "fresh seeds, which chose nothing: +" in report
    assert "**, by node" in report
