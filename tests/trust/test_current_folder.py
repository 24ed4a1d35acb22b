"""The current folder may be anybody's: no module in it is imported, and odd files do no harm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.session_sandbox import SandboxPlan
from taskweaver.config.errors import ConfigError
from taskweaver.treesearch.execution.executors.worker_pool import WorkerPool
from taskweaver.trust.opening import inspect_folder
from taskweaver.utils.app_utils import CONFIG_FILE, MOST_BYTES, discover_app_dir


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with modules named as those of libraries; they leave a file."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("matplotlib", "json", "pickle", "numpy", "taskweaver"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise OSError\n")
    monkeypatch.chdir(folder)
    return tmp_path / "ran"


def test_the_list_of_fonts_is_made_without_it(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert SandboxPlan(SandboxPolicy(), KernelLimits.default(), is_warm=False).font_lists()
    assert not planted.exists()


@pytest.mark.measured
def test_workers_of_a_search_start_without_it(planted: Path) -> None:
    with WorkerPool(1) as workers:
        assert workers.submit(abs, -1).result() == 1
    assert not planted.exists()


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _deep(file: Path) -> None:
    file.write_text("[" * 200_000)


def _huge(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(MOST_BYTES + 1)


@pytest.mark.parametrize(
    ("make", "problem"),
    [(_pipe, "no ordinary file"), (_deep, "too deeply"), (_huge, "larger than")],
)
def test_an_odd_configuration_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: object, problem: str
) -> None:
    assert callable(make)
    make(tmp_path / CONFIG_FILE)
    monkeypatch.chdir(tmp_path)
    assert discover_app_dir()[1] is False
    for place in (tmp_path, None):
        with pytest.raises(ConfigError, match=problem):
            inspect_folder(place, lambda _: True)
