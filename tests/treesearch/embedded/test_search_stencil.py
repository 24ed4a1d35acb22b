"""The idea of the stencil, searched by the built-in proposer with a real compiler."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from search_lab import FAST, lab

from taskweaver.app.app import TaskWeaverApp
from taskweaver.treesearch.embedded.choice import model_for
from taskweaver.treesearch.model.idea import read_idea
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.service import start_search

IDEA = Path(__file__).parents[3] / "project" / "ideas" / "stencil.md"
SMALL = {
    "search.num_drafts": 2, "search.num_seeds": 0, "search.stage1_nodes": 2,
    "search.stage2_nodes": 1, "search.stage3_nodes": 0, "search.stage4_nodes": 0,
    "search.workers": 2,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_it_is_searched_from_end_to_end(tmp_path: Path) -> None:
    with (
        TaskWeaverApp(lab(tmp_path), {"llm.api_type": "offline"}) as app,
        start_search(app, IDEA, FAST | SMALL, name="run") as made,
    ):
        assert made.is_embedded
        made.run(lambda _: None)
    plain, threaded, tuned = made.state.journal.nodes
    assert plain.value is not None
    assert plain.value > 0
    # The second draft asks for threads without their library: the linker tells.
    assert threaded.error is not None
    assert threaded.error.kind == "CompilationError"
    assert "omp_" in threaded.error.message
    assert (tuned.kind, tuned.parent, tuned.error) == (NodeKind.HYPERPARAM, plain.id, None)
    assert tuned.name
    assert tuned.artifacts != plain.artifacts


@pytest.mark.parametrize(
    ("error", "flag", "threads"),
    [
        ("undefined reference to `omp_set_num_threads'", "-fopenmp", 2),
        ("relative error 0.3", "-O0", 1),
    ],
)
def test_what_failed_is_mended_by_what_it_said(error: str, flag: str, threads: int) -> None:
    model = model_for(read_idea(IDEA))
    assert model is not None
    values = {
        "optimize": "O0", "native": "yes", "fast_math": "yes", "openmp": "no", "threads": 2,
        "inner": "k", "block_i": 62, "block_j": 31,
    }  # fmt: skip
    sections = {
        "Kind of attempt": "debug",
        "Code": f"VALUES = {json.dumps(values)}",
        "Error": error,
    }
    prompt = "\n\n".join(f"# {title}\n{text}" for title, text in sections.items())
    reply = json.loads(model([{"role": "user", "content": prompt}]))
    flags = reply["phase_artifacts"]["compile"]["build_plan"]["cflags"]
    assert flag in flags
    assert ("-ffast-math" in flags) == (threads == 2)
    assert f"-DTHREADS={threads}" in flags
    assert reply["phase_artifacts"]["run"]["commands"][0].startswith(f"OMP_NUM_THREADS={threads} ")


def test_changes_that_are_refused_are_not_proposed_again() -> None:
    model = model_for(read_idea(IDEA))
    assert model is not None
    values = {
        "optimize": "O0", "native": "yes", "fast_math": "yes", "openmp": "no", "threads": 1,
        "inner": "k", "block_i": 62, "block_j": 62,
    }  # fmt: skip
    prompt = f"# Kind of attempt\n\nimprove\n\n# Code\n\n// VALUES = {json.dumps(values)}\n"
    refused: list[str] = []
    for _ in range(6):
        taken = f"n0002 makes the change already; make another change than {', '.join(refused)}."
        feedback = f"\n# Parsing Feedback\n\nIt could not be used: {taken}\nCorrect that.\n"
        reply = model([{"role": "user", "content": prompt + (feedback if refused else "")}])
        refused.append(json.loads(reply)["name"])
    assert len(set(refused)) == 6
    assert "" not in refused
