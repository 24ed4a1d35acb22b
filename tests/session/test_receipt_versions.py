"""The versions in a receipt are those of the packages that hold the modules of its cells."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from taskweaver.session.receipt_content import versions_for


@pytest.fixture(params=["as it is", "replaced"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages, which is the only one; the usual packages take a second."""
    if request.param == "replaced":
        pytest.importorskip("importlib_metadata")  # it replaces the finder of packages for good
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def install(folder: Path, name: str, version: str, *modules: str) -> None:
    """Write what an installer writes about a package."""
    facts = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (facts / "RECORD").write_text("".join(f"{module}/__init__.py,,\n" for module in modules))


def test_a_package_that_is_installed_meanwhile_has_its_version(folder: Path) -> None:
    assert "new-package" not in versions_for(["import fresh"])
    install(folder, "new-package", "1.2", "fresh")
    assert versions_for(["import fresh"])["new-package"] == "1.2"


def test_a_package_that_is_only_called_like_a_module_is_not_its_own(folder: Path) -> None:
    install(folder, "attr", "0.3", "other")
    install(folder, "attrs", "26.1", "attr", "attrs")
    install(folder, "plain", "1.0", "plain")
    found = versions_for(["import attr, plain, Plain.parts"])
    assert found.keys() - {"python", "taskweaver"} == {"attrs", "plain"}


def test_what_an_installer_left_behind_is_passed_over(folder: Path) -> None:
    (folder / "numpy-1.26.4.dist-info").mkdir()
    (folder / "gone-1.0.dist-info").mkdir()
    (folder / "gone-1.0.dist-info/top_level.txt").write_text("gone\n")

    assert versions_for(["import numpy, gone"]).keys() == {"python", "taskweaver"}
