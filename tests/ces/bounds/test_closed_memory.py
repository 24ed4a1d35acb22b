"""The memory of a process that is closed to its owner is read from the file it hands over alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ordinary import as_ordinary, can_be_ordinary

RUN = Path(__file__).with_name("rollup_run.py")


def test_a_process_is_measured_by_its_own_file_and_another_file_is_refused() -> None:
    if not can_be_ordinary():
        pytest.skip("no program can be run as an ordinary user here")
    done = as_ordinary([str(RUN)])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("own") > 1 << 20
    assert set(found.values()) == {0}, found
