"""The needs of an idea are checked before its first attempt, and its folder is not made."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from socket import gethostname

import pytest
from search_lab import FAST, Climber, lab

from taskweaver.app.app import TaskWeaverApp
from taskweaver.treesearch.embedded.choice import needs_of
from taskweaver.treesearch.embedded.needs import Needs, named_packages
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.idea import read_idea
from taskweaver.treesearch.service import resume_search, start_search

IDEAS = Path(__file__).parents[3] / "project" / "ideas"
ONE = FAST | {"search.stage1_nodes": 1, "search.num_drafts": 1, "search.num_seeds": 0} | {
    f"search.stage{stage}_nodes": 0 for stage in (2, 3, 4)
}  # fmt: skip


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Take a package away."""
    version = metadata.version

    def found(name: str) -> str:
        if name == package:
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", found)


def error_of(folder: Path, idea: Path, model: object = None, **config: object) -> str:
    """Return the message of a search that is refused, which leaves no run behind."""
    keys = {} if model else {"llm.api_type": "offline"}
    project = lab(folder, **config)
    with TaskWeaverApp(project, keys, model=model) as app, pytest.raises(SearchError) as raised:
        start_search(app, idea, ONE)
    assert not list(project.glob("experiments/*"))
    return str(raised.value)


def test_a_package_of_a_built_in_proposer(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "scikit-learn")
    needs = needs_of(read_idea(IDEAS / "tabular.md"), is_embedded=True)
    with pytest.raises(SearchError) as raised:
        needs.check()
    assert str(raised.value) == (
        f"The idea needs scikit-learn, not installed on {gethostname()}. No attempt was made."
        ' Install: python -m pip install "scikit-learn"'
    )


def test_a_program_of_a_built_in_proposer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SearchError, match="needs no-such-tool, not installed on"):
        Needs(programs=("no-such-tool",)).check()
    with pytest.raises(SearchError, match="Install: install gcc with the system's packages"):
        Needs(programs=("gcc",)).check()


def test_packages_that_an_idea_names(tmp_path: Path) -> None:
    idea = tmp_path / "idea.md"
    line = "Packages: `no-such-package>=2`, pandas, a lot of patience"
    idea.write_text(f"# Try\n\nMetric: height\n\n{line}\n\nBuilt-in proposer: `tabular`\n")
    assert named_packages(line) == ("no-such-package>=2", "pandas")
    said = error_of(tmp_path, idea)
    assert "needs no-such-package>=2, not installed" in said
    assert 'pip install "no-such-package>=2"' in said
    script = {"search.phase_mode": "single"}  # a script installs nothing
    assert said == error_of(tmp_path / "script", idea, Climber(), **script)


def test_attempts_of_a_model_that_can_install_are_not_refused(tmp_path: Path) -> None:
    project = lab(tmp_path, **{"execution.sandbox": "none"})
    (project / "idea.md").write_text("# Try\n\nMetric: height\n\nPackages: no-such-package\n")
    with (
        TaskWeaverApp(project, model=Climber()) as app,
        start_search(app, project / "idea.md", ONE, name="run") as made,
    ):
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
        start_search(app, idea, ONE, name="run").close()
        facts.parent.rename(tmp_path / "gone")
        with pytest.raises(SearchError, match="own-package"):
            resume_search(app, "run")
        (tmp_path / "gone").rename(facts.parent)
        resume_search(app, "run").close()
