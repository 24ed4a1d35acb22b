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
from search_lab import Climber, lab, proposal, remembering, search

from taskweaver.treesearch.search import Search

ONE = {"stage1_nodes": 1, "num_drafts": 1, "stage2_nodes": 0, "stage3_nodes": 0,
       "stage4_nodes": 0, "num_seeds": 0, "seed": 5}  # fmt: skip


def answering(attempts: Mapping[str, Mapping[str, Any]]) -> Climber:
    """A model that has one attempt for each kind."""

    def fault(prompt: Mapping[str, str]) -> str | None:
        kind = prompt.get("Kind of attempt", "").split(" ")[0]
        return remembering(prompt, json.dumps(attempts[kind])) if kind in attempts else None

    return Climber(fault=fault)


def run_again(made: Search, folder: Path) -> Any:
    """Take what is in ``best`` elsewhere, and run it there; return the metric."""
    shutil.copytree(made.places.folder / "best", folder)
    (folder / "workspace/working/result.json").unlink()
    path = os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]])
    environment = {"PATH": path, "HOME": str(folder)}
    subprocess.run([folder / "reproduce.sh"], env=environment, cwd="/", check=True, timeout=60)
    return json.loads((folder / "workspace/working/result.json").read_text())["metric"]


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
        run={"commands": ["cd src && exit", ["sh", "{output}", "2"]]},
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


@pytest.mark.parametrize("forks", [True, False])
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
