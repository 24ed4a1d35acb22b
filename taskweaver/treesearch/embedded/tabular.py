"""Tabular learning on data that comes with scikit-learn: cross-validated accuracy."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from taskweaver.treesearch.embedded.needs import Needs
from taskweaver.treesearch.embedded.space import Parameter, Space, Values

_HERE = Path(__file__).parent


def _code(values: Values, *, has_evaluator: bool) -> str:
    """Return the program: it predicts the folds of `evaluate_tabular.py`, or measures itself."""
    ending = "tabular_predict.txt" if has_evaluator else "tabular_own_measure.txt"
    model = (_HERE / "tabular_program.txt").read_text()
    filled = model.replace("@VALUES@", json.dumps(dict(values)))
    return filled.replace("@MEASURE@", (_HERE / ending).read_text().strip())


def _write(values: Values, *, has_evaluator: bool) -> dict[str, Any]:
    code = _code(values, has_evaluator=has_evaluator)
    check = "python -m py_compile experiment.py"
    build = {"language": "python", "compiler_selected": "", "workdir": "/workspace"}
    file = {"path": "experiment.py", "content": code}
    return {
        "download": {"commands": [], "notes": "scikit-learn is installed"},
        "coding": {"workspace": {"root": "/workspace", "tree": [], "files": [file]}},
        "compile": {"build_plan": build, "commands": []},
        "run": {
            "commands": [check if has_evaluator else "python experiment.py"],
            "expected_outputs": [] if has_evaluator else ["working/result.json"],
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
    script=partial(_code, has_evaluator=False),
    repair=_repair,
    needs=Needs(packages=("scikit-learn",)),
)  # fmt: skip
