"""Decision records: their form, their list, and the reasons for dependencies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "decisions"


def test_every_record_has_context_decision_and_consequences_and_is_listed() -> None:
    listed = (FOLDER / "README.md").read_text("utf-8")
    records = sorted(FOLDER.glob("[0-9]*.md"))
    assert len(records) > 20
    for number, record in enumerate(records, 1):
        title, *lines = record.read_text("utf-8").splitlines()
        assert title.startswith(f"# {number:04}. ")
        parts = [line for line in lines if line.startswith("## ")]
        assert parts == ["## Context", "## Decision", "## Consequences"], record.name
        assert f"| [{number:04}]({record.name}) | {title[8:]} |" in listed


def test_every_dependency_has_a_reason() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        data = tomllib.load(file)
    project = data["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    groups += [*data["dependency-groups"].values(), data["build-system"]["requires"]]
    needed = {Requirement(item).name for group in groups for item in group}
    page = (FOLDER / "0001-dependencies.md").read_text("utf-8")
    tables = page.partition("A test compares these tables")[0]
    rows = [line.split("|")[1:3] for line in tables.splitlines() if line.startswith("| ")]
    explained = {name for row in rows for name in re.findall(r"[\w.-]+", " ".join(row))}
    assert needed - explained - {"setuptools"} == set()
