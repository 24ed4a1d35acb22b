"""Commands that install packages name those packages, and never this one, which PyPI lacks."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from taskweaver.utils.system import installation as subject

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
TEXTS = [
    *(path for name in ("taskweaver", "plugins") for path in (ROOT / name).rglob("*.*")),
    *(path for name in ("docs", "project") for path in (ROOT / name).rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile")),
]
"""All that a user reads or runs."""


def same(lines: list[str]) -> list[tuple[str, frozenset[str], str]]:
    """Return requirements in a form that does not depend on their spelling."""
    parsed = map(Requirement, lines)
    return sorted((item.name, frozenset(item.extras), str(item.specifier)) for item in parsed)


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_the_command_of_an_extra_names_its_packages(extra: str) -> None:
    command = shlex.split(subject.install_command(extra))
    assert command[:4] == ["python", "-m", "pip", "install"]
    assert same(command[4:]) == same(EXTRAS[extra])


def test_markers_and_versions_are_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "core>=1",
        'old>=1; python_version < "3"',
        'new[a]>=1,<2; python_version >= "3"',
        'other==3; extra == "x"',
        'never; python_version < "3" and extra == "x"',
        'pinned[b]==1.*; python_version >= "3" and extra == "x"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda _: lines)
    assert subject.requirements() == ["core>=1", "new[a]<2,>=1"]
    assert subject.requirements("x") == ["other==3", "pinned[b]==1.*"]
    assert subject.install_command("x") == 'python -m pip install "other==3" "pinned[b]==1.*"'


def test_missing_packages_are_those_without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: ["pandas>=2", "no-such-package-here>=1"])
    assert subject.missing() == ["no-such-package-here>=1"]


def test_without_metadata_no_command_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", fail)
    assert subject.requirements("sql") == []
    assert subject.install_command("sql") == "install the packages of its extra `sql`"


def test_no_text_has_anybody_install_this_package_from_an_index() -> None:
    wrong = re.compile(r"""(pip|pipx|uv|uvx)\s+(?:\w+\s+|-\S+\s+)*["']?taskweaver\b(?![./])""")
    found = []
    for path in TEXTS:
        if path.is_file() and path.suffix in {".py", ".md", ".yaml", ".txt", ".json", ""}:
            lines = path.read_text("utf-8", "replace").splitlines()
            found += [f"{path.relative_to(ROOT)}: {line}" for line in lines if wrong.search(line)]
    assert found == []


def test_documents_name_the_versions_of_the_extras() -> None:
    every = same([line for lines in EXTRAS.values() for line in lines])
    named = []
    for path in (ROOT / "docs").glob("*.md"):
        for match in re.finditer(r'pip install ((?:"[^"]+" ?)+)', path.read_text("utf-8")):
            named += [line for line in shlex.split(match[1]) if not line.startswith(".")]
    assert named
    assert [item for item in same(named) if item not in every] == []
