"""The best node of a search is run again from what the search has written, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from search_lab import Climber, lab, proposal, remembering, search

from taskweaver.treesearch.engine.search import Search

ONE = {"stage1_nodes": 1, "num_drafts": 1, "stage2_nodes": 0, "stage3_nodes": 0,
       "stage4_nodes": 0, "num_seeds": 0, "seed": 5}  # fmt: skip


def answering(attempts: Mapping[str, Mapping[str, Any]]) -> Climber:
    """A model that has one attempt for each kind."""

    def fault(prompt: Mapping[str, str]) -> str | None:
        kind = prompt.get("Kind of attempt", "").split(" ")[0]
        return remembering(prompt, json.dumps(attempts[kind])) if kind in attempts else None

    return Climber(fault=fault)


def run_again(made: Search, folder: Path, **variables: str) -> Any:
    """Take what is in ``best`` elsewhere, and run it there; return the metric."""
    shutil.copytree(made.places.folder / "best", folder)
    (folder / "workspace/working/result.json").unlink()
    ran = reproduced(folder, **variables)
    assert ran.returncode == 0, ran.stderr
    return json.loads((folder / "workspace/working/result.json").read_text())["metric"]


def reproduced(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run what is in a folder, in an environment of its own."""
    path = os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]])
    return subprocess.run(
        [folder / "reproduce.sh"],
        env={"PATH": path, "HOME": str(folder), **variables},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.fixture
def lean(tmp_path: Path) -> dict[str, str]:
    """Variables with which pandas and matplotlib are empty: most of a run is their import."""
    (tmp_path / "lean" / "matplotlib").mkdir(parents=True)
    for name in ("pandas.py", "matplotlib/__init__.py", "matplotlib/pyplot.py"):
        (tmp_path / "lean" / name).touch()
    return {"PYTHONPATH": str(tmp_path / "lean")}


def test_an_attempt_of_phases_is_run_again(tmp_path: Path) -> None:
    program = 'echo "{\\"metric\\": $((TASKWEAVER_SEED * 8 + $1))}" > working/result.json  # {x}\n'
    attempt = proposal(
        {},
        coding={"workspace": {"files": [{"path": "src/try.sh", "content": program}]}},
        compile={
            "build_plan": {
                "language": "other",
                "compiler_selected": "cp",
                "cflags": ["-f", "--preserve=mode"],
                "workdir": "/workspace/src",
                "output": "try the best",
            },
            "commands": ["{compiler_selected} {cflags} try.sh ../{output}  # built"],
        },
        run={
            "commands": [
                "cd src && exit",
                "# nothing",
                "cat <<END\nno end",
                ["sh", "{output}", "2"],
            ]
        },
    )
    made = search(lab(tmp_path), answering({"draft": attempt}), report=True, **ONE)
    best = made.state.journal.best()
    assert best is not None, made.state.journal.nodes[0].error
    assert best.value == 42.0
    assert run_again(made, tmp_path / "again") == 42
    script = (tmp_path / "again/reproduce.sh").read_text()
    said = (made.places.folder / "report.md").read_text()
    assert script.strip() in said.partition("## How to reproduce")[2]
    assert "cp -f --preserve=mode try.sh ../'try the best'" in said
    page = (made.places.folder / "tree.html").read_text()
    assert "cp -f --preserve=mode try.sh" in page


@pytest.mark.long
@pytest.mark.parametrize("forks", [False, True])
def test_one_script_is_run_again(tmp_path: Path, *, forks: bool) -> None:
    code = (
        "import json, os\nfrom pathlib import Path\nseed = int(os.environ['TASKWEAVER_SEED'])\n"
        "assert __name__ == '__main__'\n"
        "result = {'metric': float(np.sum([seed, 37]))}\n"
        "Path('working/result.json').write_text(json.dumps(result))\n"
    )
    model = answering({"draft": {"plan": "", "name": "", "code": code}})
    settings = ONE | {"phase_mode": "single", "fork_kernels": forks}
    made = search(lab(tmp_path), model, report=True, **settings)
    assert made.state.journal.nodes[0].value == 42.0
    assert run_again(made, tmp_path / "again") == 42.0
    assert (tmp_path / "again/workspace/experiment.py").read_text() == code


def test_a_line_of_scripts_is_run_again_and_says_so_when_it_fails(
    tmp_path: Path, lean: dict[str, str]
) -> None:
    """Each program has its own folder and seed, and what those before it left."""
    draft = (
        "import json, os\nfrom pathlib import Path\nplace = Path('data.txt').absolute()\n"
        "assert __name__ == '__main__' and 'AGAIN' not in os.environ and np.sum([1]) == 1\n"
        "def told(): return place.read_text() + os.environ['TASKWEAVER_NODE']\n"
        "place.write_text('x')\ndata = [int(os.environ['TASKWEAVER_SEED'])] * 8\n"
        "Path('working/result.json').write_text(json.dumps({'metric': 1}))\n"
    )
    child = (
        "assert not Path('data.txt').exists() and told() == 'xn0002'\ndata.append(2)\n"
        "Path('working/result.json').write_text(json.dumps({'metric': sum(data)}))\n"
    )
    attempts = {"draft": draft, "hyperparam": child}
    model = answering({k: {"plan": "", "name": k, "code": code} for k, code in attempts.items()})
    settings = ONE | {"phase_mode": "single", "stage2_nodes": 1}
    made = search(lab(tmp_path), model, report=True, **settings)
    best = made.state.journal.best()
    assert best is not None
    assert (best.id, best.value) == ("n0002", 42.0), made.state.journal.nodes[-1].error
    assert run_again(made, tmp_path / "again", **lean) == 42
    assert (tmp_path / "again/before/01_n0001/experiment.py").read_text() == draft
    ran = reproduced(tmp_path / "again", AGAIN="1", **lean)
    assert ran.returncode == 1
    assert "The program of n0001 failed." in ran.stderr
