"""The installation shows how far it is, takes uv where that is there, and resumes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

from patience import PATIENCE_S
from screen import Screen

ROOT = Path(__file__).parents[2]
INSTALL = str(ROOT / ".ci" / "install.py")
PIP = """
import sys, time
print("Collecting one>=1 (from x)", flush=True)
print("  Downloading one.whl", flush=True)
print("Requirement already satisfied: two in here", flush=True)
{wait}
print("Installing collected packages: two, one", flush=True)
if {status}:
    print("ERROR: no space left", file=sys.stderr)
sys.exit({status})
"""
"""Stands for pip: the lines that the progress is read from."""

COMPILEALL = """
import pathlib, sys
pathlib.Path(__file__).with_name("compiled").write_text(sys.argv[-1])
sys.exit(1)
"""
"""Stands for the compiler, which fails at some file of another version of Python."""

FOREVER = "sys.stdin.read()"


def environment(
    folder: Path, *, status: int = 0, uv: int | None = None, wait: str = ""
) -> dict[str, str]:
    """Return an environment with a pip, and perhaps a uv, that end with some status."""
    pip, programs = folder / "lib" / "pip", folder / "bin"
    pip.mkdir(parents=True)
    programs.mkdir()
    (pip / "__init__.py").write_text("")
    (pip / "__main__.py").write_text(PIP.format(status=status, wait=wait))
    (folder / "lib" / "compileall.py").write_text(COMPILEALL)
    if uv is not None:
        program = programs / "uv"
        program.write_text(f'#!/bin/sh\necho "uv: $@"\nexit {uv}\n')
        program.chmod(0o755)
    path = f"{programs}:/usr/bin:/bin"
    return {"PATH": path, "PYTHONPATH": str(folder / "lib"), "TERM": "xterm"}


def install(keys: dict[str, str], *extras: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, INSTALL, *extras]
    return subprocess.run(command, env=keys, capture_output=True, text=True, check=False)


def test_pip_is_followed_without_a_terminal(tmp_path: Path) -> None:
    done = install(environment(tmp_path), "parquet", "excel")
    first, found, end = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert "with pip (Python 3." in first
    assert re.fullmatch(r"  downloaded: 2 packages, \d+ s", found)
    assert end.startswith("  done: ")
    assert (tmp_path / "lib" / "compiled").read_text() == sysconfig.get_path("purelib")
    assert "\x1b" not in done.stdout


def test_a_failure_shows_the_end_of_the_output(tmp_path: Path) -> None:
    done = install(environment(tmp_path, status=3))
    assert done.returncode == 3
    assert "  failed, " in done.stdout
    assert "ERROR: no space left" in done.stderr
    assert "The same command completes the installation." in done.stderr


def test_pip_is_taken_where_uv_fails(tmp_path: Path) -> None:
    done = install(environment(tmp_path, uv=2), "excel")
    assert done.returncode == 0
    assert f"--python {sys.executable} --compile-bytecode --editable .[excel]" in done.stdout
    assert "uv failed; trying pip." in done.stdout
    assert "  done: " in done.stdout


def test_a_terminal_shows_one_line_that_changes(tmp_path: Path) -> None:
    keys = environment(tmp_path, wait=FOREVER)
    screen = Screen(program=(INSTALL,), **keys)
    screen.wait_for("\r\x1b[K  downloading: 2 packages")
    screen.type("\x04")
    screen.wait_for("\r\x1b[K  done: ")
    assert screen.wait_for_end() == 0


def test_an_interrupt_ends_it_in_a_line(tmp_path: Path) -> None:
    wait = f"print('Installing collected packages: two', flush=True)\n{FOREVER}"
    process = subprocess.Popen(
        [sys.executable, INSTALL], env=environment(tmp_path, wait=wait), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert "with pip" in process.stdout.readline()
        assert "downloaded" in process.stdout.readline()  # from here on, pip runs
        os.killpg(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "The same command completes the installation." in rest
    assert "Traceback" not in rest
