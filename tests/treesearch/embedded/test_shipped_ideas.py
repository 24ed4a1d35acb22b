"""The shipped ideas: their evaluators measure a plain attempt, and refuse a wrong one."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sizes import some

from taskweaver.treesearch.execution.results import keep_evaluator, kept_evaluator, place_evaluator
from taskweaver.treesearch.model.idea import parse_idea

IDEAS = Path(__file__).parents[3] / "project" / "ideas"
NEEDS_GCC = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")

STENCIL = """
#define AT(i, j, k) (((i) * 64 + (j)) * 128 + (k))
void stencil(const float *in, float *out) {
  for (int i = 1; i < 63; i++) for (int j = 1; j < 63; j++) for (int k = 1; k < 127; k++)
    out[AT(i, j, k)] = 0.4f * in[AT(i, j, k)] + 0.1f * (in[AT(i - 1, j, k)] + in[AT(i + 1, j, k)]
      + in[AT(i, j - 1, k)] + in[AT(i, j + 1, k)] + in[AT(i, j, k - 1)] + in[AT(i, j, k + 1)]);
}
"""
SPARSE = """
#include <stdlib.h>
typedef struct { int rows; const int *starts, *columns; const double *values; } M;
void *prepare(int rows, const int *starts, const int *columns, const double *values) {
  M *m = malloc(sizeof *m);
  *m = (M){rows, starts, columns, values};
  return m;
}
void multiply(const void *prepared, const double *x, double *y) {
  const M *m = prepared;
  for (int r = 0; r < m->rows; r++) {
    double sum = 0;
    for (int n = m->starts[r]; n < m->starts[r + 1]; n++) sum += m->values[n] * x[m->columns[n]];
    y[r] = sum;
  }
}
"""
ROUTES = """
import math
def solve(places, seconds):
    left, trip = set(range(1, len(places))), [0]
    while left:
        trip.append(min(left, key=lambda n: math.dist(places[trip[-1]], places[n])))
        left.remove(trip[-1])
    return trip
"""
DEMAND = """
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/train.csv")))
mean = sum(float(row["Count"]) for row in rows) / len(rows)
test = list(csv.DictReader(open(sys.argv[1] + "/test.csv")))
assert "Count" not in test[0]
open(sys.argv[1] + "/predicted.txt", "w").write("\\n".join(str(mean) for _ in test))
"""
TABULAR = """
import sys
import numpy as np
for n in range(5):
    with np.load(f"{sys.argv[1]}/fold{n}.npz") as fold:
        np.save(f"{sys.argv[1]}/predicted{n}.npy", np.ones(len(fold["test"]), int))
"""


MAPS = len(some(range(4), 1))


def evaluated(idea: str, workspace: Path, name: str, source: str) -> tuple[dict[str, Any], str]:
    """Return the result of an attempt of one file, and all that was printed."""
    line = parse_idea((IDEAS / f"{idea}.md").read_text()).evaluation
    keep_evaluator(line, IDEAS, workspace.parent / "kept")
    if idea == "routes":
        routes = workspace.parent / "kept/evaluate_routes.py"
        source_of_all = routes.read_text()
        assert source_of_all.count("GRACE_S = 4, ") == 1
        routes.write_text(source_of_all.replace("GRACE_S = 4, ", f"GRACE_S = {MAPS}, "))
    evaluator = kept_evaluator(line, workspace.parent / "kept")
    file = workspace / name
    file.parent.mkdir(parents=True)
    file.write_text(source)
    if file.suffix == ".c":
        (workspace / "bin").mkdir()
        build = ["gcc", "-O1", "-c", str(file), "-o", str(workspace / f"bin/{file.stem}.o")]
        subprocess.run(build, check=True)
    place_evaluator(evaluator, workspace)
    command = [sys.executable, *shlex.split(evaluator.command)[1:]]
    ran = subprocess.run(command, cwd=workspace, capture_output=True, text=True)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("idea", "name", "source", "least", "most"),
    [
        pytest.param("stencil", "src/stencil.c", STENCIL, 1.0, 1e6, marks=NEEDS_GCC),
        pytest.param("sparse", "src/sparse.c", SPARSE, 1.0, 1e6, marks=NEEDS_GCC),
        ("routes", "solve.py", ROUTES, 20.0, 45.0),
        ("demand", "predict.py", DEMAND, 3.0, 4.0),
        pytest.param("tabular", "experiment.py", TABULAR, 0.6, 0.7, marks=pytest.mark.long),
    ],
)
def test_a_plain_attempt_is_measured(
    tmp_path: Path, idea: str, name: str, source: str, least: float, most: float
) -> None:
    found, said = evaluated(idea, tmp_path / "workspace", name, source)
    assert found, said
    assert found["valid"]
    metric = found["metric"]
    value = metric if isinstance(metric, float) else metric["breast_cancer"]
    assert least < value < most


@pytest.mark.parametrize(
    ("idea", "name", "source", "problem"),
    [
        pytest.param("stencil", "src/stencil.c", STENCIL.replace("0.4f", "0.5f"), '"valid": false',
                     marks=NEEDS_GCC),
        ("routes", "solve.py", "def solve(places, seconds):\n    return [0, 0, 1]",
         "does not visit each place once"),
        ("demand", "predict.py", "open('.evaluator/sales.csv')", "No such file"),
    ],
)  # fmt: skip
def test_a_wrong_attempt_is_refused(
    tmp_path: Path, idea: str, name: str, source: str, problem: str
) -> None:
    found, said = evaluated(idea, tmp_path / "workspace", name, source)
    assert not found.get("valid")
    assert problem in said


def test_a_late_trip_counts_as_the_plainest_whatever_clock_it_shows(tmp_path: Path) -> None:
    lie = "import time\ntime.monotonic = lambda: 0.0\n" + ROUTES.replace(
        "    left, trip", "    time.sleep(9)\n    left, trip"
    )
    found, said = evaluated("routes", tmp_path / "workspace", "solve.py", lie)
    assert found, said
    assert found["details"]["late"] == MAPS
    assert 20.0 < found["metric"] < 45.0
