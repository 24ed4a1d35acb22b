"""The Makefile takes the first Python of a version that works, and says when there is none."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from taskweaver import __version__

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make")
PROGRAM = """#!/bin/sh
if [ "$1" = -c ]; then exit {status}; fi
/bin/mkdir -p .venv/bin && echo {name} > .venv/bin/python
"""
"""Stands for a Python: the check of its version passes or fails, and `-m venv` leaves its name."""

UV = """#!/bin/sh
[ {status} = 0 ] || exit {status}
/bin/mkdir -p .venv/bin && echo "uv $@" > .venv/bin/python
"""
"""Stands for uv, which works or fails, and leaves its arguments."""

INSTALLED = """#!/bin/sh
echo "$@" >> calls
case "$1" in .ci/*) exit "$(/bin/cat status)";; esac
"""
"""Stands for the Python of the environment: keeps its calls; the installation has a status."""


def chosen(tmp_path: Path, programs: dict[str, bool], *arguments: str) -> tuple[int, str]:
    """Make the environment with some programs; return the status, and its Python or the errors."""
    if MAKE is None:
        pytest.skip("there is no make here")
    place = tmp_path / "bin"
    place.mkdir()
    for name, is_new in programs.items():
        program = place / name
        text = UV if name == "uv" else PROGRAM
        program.write_text(text.format(status=0 if is_new else 1, name=name))
        program.chmod(0o755)
    command = [MAKE, "--silent", "-f", str(ROOT / "Makefile"), ".venv/bin/python", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": str(place)}, capture_output=True, text=True, check=False
    )
    made = tmp_path / ".venv" / "bin" / "python"
    return done.returncode, made.read_text().strip() if made.exists() else done.stderr


@pytest.mark.parametrize(
    ("programs", "name"),
    [
        ({"python3.11": True, "python3.13": True, "python3": True}, "python3.11"),
        ({"python3.13": True, "python3": True}, "python3.13"),
        ({"python3.11": False, "python3.12": True, "python3": True}, "python3.12"),
        ({"python3": True}, "python3"),
    ],
)
def test_the_first_version_that_works_is_taken(
    tmp_path: Path, programs: dict[str, bool], name: str
) -> None:
    assert chosen(tmp_path, programs) == (0, name)


@pytest.mark.parametrize("programs", [{}, {"python3": False}])
def test_without_one_it_says_so(tmp_path: Path, programs: dict[str, bool]) -> None:
    status, errors = chosen(tmp_path, programs)
    assert status == 2
    assert "TaskWeaver needs Python 3.11 or newer" in errors
    assert "python3.14 python3. Install one" in errors


def test_a_person_may_name_another(tmp_path: Path) -> None:
    programs = {"python3.11": True, "mine": True}
    assert chosen(tmp_path, programs, "PYTHON=mine") == (0, "mine")


@pytest.mark.parametrize(
    ("programs", "made"),
    [
        ({"uv": True, "python3.12": True}, "--python python3.12 .venv"),
        ({"uv": True}, "--python >=3.11 .venv"),
        ({"uv": False, "python3.13": True}, "python3.13"),
    ],
)
def test_uv_makes_the_environment_where_it_works(
    tmp_path: Path, programs: dict[str, bool], made: str
) -> None:
    status, python = chosen(tmp_path, programs)
    assert status == 0
    assert python.endswith(made)
    assert python.startswith("uv venv") == programs.get("uv", False)


def test_an_installation_that_failed_is_resumed_and_a_complete_one_is_not_repeated(
    tmp_path: Path,
) -> None:
    if MAKE is None:
        pytest.skip("there is no make here")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(INSTALLED)
    python.chmod(0o755)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    calls = []
    for status in ("1", "0", "0"):
        (tmp_path / "status").write_text(status)
        command = [MAKE, "--silent", "-f", str(ROOT / "Makefile"), "chat"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert (done.returncode == 0) == (status == "0"), done.stderr
        calls.append((tmp_path / "calls").read_text().splitlines())
        (tmp_path / "calls").unlink()
    install, chat = ".ci/install.py parquet serve", "-m taskweaver -p project/"
    assert calls == [[install], [install, chat], [chat]]


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    attribute = project["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    assert attribute == "taskweaver.__version__"
    assert __version__.count(".") == 2
    assert {"authors", "keywords", "classifiers"} <= project["project"].keys()
