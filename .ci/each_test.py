"""A plugin of pytest: notes the start, the outcome and the seconds of each test function.

Cases of one function have one name. Where coverage is measured, the function is the context of what
the test runs, also in processes that it starts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

_FAILED = pytest.StashKey[bool]()


def outcomes(log: Path) -> list[tuple[str, str, float]]:
    """Return what was noted: the function, `start`, `passed` or `failed`, and the seconds."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure all processes, see the mark `measured`."""
    if "COVERAGE_PROCESS_CONFIG" in os.environ:
        for item in items:
            item.add_marker("measured")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note a test before and after it, and name its context."""
    name = item.nodeid.partition("[")[0]  # without its case
    _name_context(name)
    _note(name, "start")
    since = monotonic()
    result = yield
    _note(name, "failed" if item.stash.get(_FAILED, False) else "passed", monotonic() - since)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, Any]:
    """Remember whether any phase of a test failed."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


def _note(name: str, what: str, seconds: float = 0) -> None:
    line = json.dumps([name, what, round(seconds, 3)]) + "\n"
    with Path(os.environ["EACH_TEST"]).open("a", encoding="utf-8") as file:
        file.write(line)


def _name_context(name: str) -> None:
    if "COVERAGE_PROCESS_CONFIG" not in os.environ:
        return
    from coverage import Coverage

    measuring = Coverage.current()
    if measuring is not None:
        measuring.switch_context(name)
        config = measuring.config.copy()
        config.context = name
        os.environ["COVERAGE_PROCESS_CONFIG"] = config.serialize()
