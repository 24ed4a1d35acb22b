"""Tabular learning on data that comes with scikit-learn: cross-validated accuracy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from taskweaver.treesearch.embedded.needs import Needs
from taskweaver.treesearch.embedded.space import Parameter, Space, Values

_PROGRAM = Path(__file__).with_name("tabular_program.txt")


def _code(values: Values) -> str:
    return _PROGRAM.read_text().replace("@VALUES@", json.dumps(dict(values)))


def _write(values: Values) -> dict[str, Any]:
    build = {"language": "python", "compiler_selected": "", "workdir": "/workspace"}
    file = {"path": "experiment.py", "content": _code(values)}
    return {
        "download": {"commands": [], "notes": "scikit-learn is installed"},
        "coding": {"workspace": {"root": "/workspace", "tree": [], "files": [file]}},
        "compile": {"build_plan": build, "commands": []},
        "run": {
            "commands": ["python experiment.py"],
            "expected_outputs": ["working/result.json"],
        },
    }


def _repair(values: Values, error: str) -> Values:
    if "iter" in error or "converge" in error:
        return {**values, "iterations": 1000}
    return {**values, "model": "tree", "components": 0}


_PLAIN = {
    "model": "tree", "depth": 1, "scale": "no", "strength": 1.0, "iterations": 50, "trees": 5,
    "components": 0,
}  # fmt: skip

TABULAR = Space(
    name="tabular",
    parameters=(
        Parameter("scale", ("no", "yes")),
        Parameter("model", ("tree", "forest", "logistic", "svm")),
        Parameter("components", (0, 5, 10)),
        Parameter("depth", (1, 2, 3, 5), True, lambda v: v["model"] == "tree"),
        Parameter("trees", (5, 20, 60), True, lambda v: v["model"] == "forest"),
        Parameter(
            "strength", (0.01, 0.1, 0.3, 1.0, 3.0, 10.0), True,
            lambda v: v["model"] in {"logistic", "svm"},
        ),
        Parameter("iterations", (50, 200, 1000), True, lambda v: v["model"] == "logistic"),
    ),
    drafts=(_PLAIN, {**_PLAIN, "model": "logistic", "iterations": 200}, {**_PLAIN, "depth": 3}),
    write=_write,
    script=_code,
    repair=_repair,
    needs=Needs(packages=("scikit-learn",)),
)  # fmt: skip
