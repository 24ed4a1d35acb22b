"""The built-in proposers: what their ideas need, and what they try."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from socket import gethostname

import pytest
from search_lab import FAST, ONE, Climber, lab, opened

from taskweaver.app.app import TaskWeaverApp
from taskweaver.treesearch.embedded import built_in
from taskweaver.treesearch.embedded.built_in import model_for, needs_of
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.idea import read_idea
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.service import resume_search, start_search

IDEAS = Path(__file__).parents[3] / "project" / "ideas"
SETTINGS = FAST | {f"search.{name}": value for name, value in ONE.items()}


def error_of(folder: Path, idea: Path, model: object = None, **config: object) -> str:
    """Return the message of a search that is refused, which leaves no run behind."""
    keys = {} if model else {"llm.api_type": "offline"}
    project = lab(folder, **config)
    with TaskWeaverApp(project, keys, model=model) as app, pytest.raises(SearchError) as raised:
        start_search(app, idea, SETTINGS)
    assert not list(project.glob("experiments/*"))
    return str(raised.value)


def test_packages_and_programs_of_a_built_in_proposer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_in, "absent", lambda packages: list(packages))
    with pytest.raises(SearchError) as raised:
        needs_of(read_idea(IDEAS / "tabular.md"), is_embedded=True).check()
    assert str(raised.value) == (
        f"The idea needs scikit-learn, not installed on {gethostname()}. No attempt was made."
        ' Install: python -m pip install "scikit-learn"'
    )
    with pytest.raises(SearchError, match="Install: install no-such-tool with the system's"):
        built_in.Needs(programs=("no-such-tool",)).check()


def test_packages_that_an_idea_names(tmp_path: Path) -> None:
    idea = tmp_path / "idea.md"
    line = "Packages: `no-such-package>=2`, pandas, a lot of patience"
    idea.write_text(f"# Try\n\nMetric: height\n\n{line}\n\nBuilt-in proposer: `tabular`\n")
    assert built_in.named_packages(line) == ("no-such-package>=2", "pandas")
    said = error_of(tmp_path, idea)
    assert "needs no-such-package>=2, not installed" in said
    assert 'pip install "no-such-package>=2"' in said
    script = {"search.phase_mode": "single"}  # a script installs nothing
    assert said == error_of(tmp_path / "script", idea, Climber(), **script)


def test_attempts_of_a_model_that_can_install_are_not_refused(tmp_path: Path) -> None:
    project = lab(tmp_path, **{"execution.sandbox": "none"})
    (project / "idea.md").write_text("# Try\n\nMetric: height\n\nPackages: no-such-package\n")
    with opened(project, Climber(), **ONE) as made:
        assert not made.is_embedded


def test_a_run_whose_package_is_gone_goes_on_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, site = lab(tmp_path), tmp_path / "site"
    facts = site / "own_package-1.0.dist-info" / "METADATA"
    facts.parent.mkdir(parents=True)
    facts.write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    idea = project / "idea.md"
    lines = ["# Try", "Metric: height", "Packages: own-package", "Built-in proposer: `tabular`"]
    idea.write_text("\n\n".join(lines))
    monkeypatch.syspath_prepend(str(site))  # workers have the path of the coordinator
    with TaskWeaverApp(project, {"llm.api_type": "offline"}) as app:
        start_search(app, idea, SETTINGS, name="run").close()
        facts.parent.rename(tmp_path / "gone")
        with pytest.raises(SearchError, match="own-package"):
            resume_search(app, "run")
        (tmp_path / "gone").rename(facts.parent)
        resume_search(app, "run").close()


IDEA = IDEAS / "stencil.md"
SMALL = {"search.num_drafts": 2, "search.stage1_nodes": 2, "search.stage2_nodes": 1,
         "search.workers": 2}  # fmt: skip
VALUES = {
    "optimize": "O0", "native": "yes", "fast_math": "yes", "openmp": "no", "threads": 2,
    "inner": "k", "block_i": 62, "block_j": 31,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_it_is_searched_from_end_to_end(tmp_path: Path) -> None:
    with (
        TaskWeaverApp(lab(tmp_path), {"llm.api_type": "offline"}) as app,
        start_search(app, IDEA, SETTINGS | SMALL, name="run") as made,
    ):
        assert made.is_embedded
        made.run(lambda _: None)
    plain, threaded, tuned = made.state.journal.nodes
    assert plain.value > 0
    # The second draft asks for threads without their library: the linker tells.
    assert threaded.error.kind == "CompilationError"
    assert "omp_" in threaded.error.message
    assert (tuned.kind, tuned.parent, tuned.error) == (NodeKind.HYPERPARAM, plain.id, None)
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
    code = f"VALUES = {json.dumps(VALUES)}"
    prompt = f"# Kind of attempt\n\ndebug\n\n# Code\n\n{code}\n\n# Error\n\n{error}"
    reply = json.loads(model([{"role": "user", "content": prompt}]))
    flags = reply["phase_artifacts"]["compile"]["build_plan"]["cflags"]
    assert flag in flags
    assert ("-ffast-math" in flags) == (threads == 2)
    assert f"-DTHREADS={threads}" in flags
    assert reply["phase_artifacts"]["run"]["commands"][0].startswith(f"OMP_NUM_THREADS={threads} ")


def test_changes_that_are_refused_are_not_proposed_again() -> None:
    model = model_for(read_idea(IDEA))
    prompt = f"# Kind of attempt\n\nimprove\n\n# Code\n\n// VALUES = {json.dumps(VALUES)}\n"
    refused: list[str] = []
    for _ in range(6):
        taken = f"n0002 makes the change already; make another change than {', '.join(refused)}."
        feedback = f"\n# Parsing Feedback\n\nIt could not be used: {taken}\nCorrect that.\n"
        reply = model([{"role": "user", "content": prompt + (feedback if refused else "")}])
        refused.append(json.loads(reply)["name"])
    assert len(set(refused)) == 6
    assert "" not in refused
