"""Guards every test stands behind: no network but loopback, nothing left running."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from command_line import CommandLine
from leftovers import nothing_left
from sizes import EXAMPLES
from support import NO_STATES

from taskweaver.config.config_mgt import env_name
from taskweaver.llm import learnt

os.environ.setdefault("MPLBACKEND", "Agg")
# Made once for all tests, also for those that give a command a home folder of its own.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / "taskweaver-tests-cache")
# Kept for no other run: it has what was answered about folders, and their names come again.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="tw-state-")
os.environ["XDG_CONFIG_HOME"] = f"{os.environ['XDG_STATE_HOME']}/config"

# What is started in the background ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's affair; speed is measured in bench/. The profile is
# chosen by `--hypothesis-profile`; `sizes.examples` scales the numbers that tests name. The gate
# tries the same examples each time, so that no change is refused by luck: `long` finds new ones.
for _profile, _share in {"gate": 1, "quick": 0.1, "long": 10}.items():
    hypothesis.settings.register_profile(
        _profile,
        max_examples=int(_share * EXAMPLES),
        deadline=None,
        derandomize=_profile != "long",
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("gate")

_TESTS = Path(__file__).parent
_SLOW = (
    "analyst/test_benchmark_questions.py", "app", "attacks", "bench_", "ces", "ci_", "cli",
    "docs_/test_analyst_examples.py", "docs_/test_documented_commands.py", "doors",
    "evaluation/test_evaluate.py", "evaluation/test_shipped_cases.py",
    "ext_role/test_web_explorer.py", "ext_role/test_web_explorer_page.py", "face", "llm_offline",
    "mcp_", "memory/branched/test_page.py", "original", "plugin/test_sql_postgresql.py",
    "plugin/test_table_profile.py", "session/test_export_in_browser.py", "stored",
    "treesearch/embedded", "treesearch/engine", "treesearch/execution",
    "treesearch/reports/test_search_page.py",
)  # fmt: skip
"""Places of tests that start kernels, browsers, servers, searches or commands."""
_LOOPBACK = ("127.", "::1", "localhost")
_OF_MODELS = ("LLM_", "OPENAI_", "AZURE_", "OTEL_")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of processes for tests, which wait for part of their time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(2, (cores or 1) * (5 if "slow" in config.option.markexpr else 3) // 2)


def pytest_unconfigure() -> None:
    """Remove what was noted of this user."""
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


@cache
def _is_slow(path: Path) -> bool:
    return any(path.is_relative_to(_TESTS / place) for place in _SLOW)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests by their places; they go first, so that short ones fill the end."""
    for item in items:
        if _is_slow(item.path):
            item.add_marker("slow")
    items.sort(key=lambda item: not _is_slow(item.path))


@pytest.fixture(scope="session")
def command_line() -> CommandLine:
    """Commands of the program."""
    return CommandLine()


@pytest.fixture(scope="module")
def no_states() -> Iterator[None]:
    """Keep no states of kernels at the ends of rounds: each costs as much as a cell."""
    with pytest.MonkeyPatch.context() as patch:
        for key, value in NO_STATES.items():
            patch.setenv(env_name(key), str(value))
        yield


@pytest.fixture(autouse=True, scope="session")
def _nothing_from_outside() -> Iterator[None]:
    """Keep the machine out of the tests: once for all, since thousands of them are short.

    Nothing is kept of a model: another test may get the same port. Keys and endpoints are hidden,
    ports are not probed, and no connection leaves the machine.
    """
    guarded = _guarded(socket.socket.connect)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learnt, "state_folder", lambda: None)
        patch.setattr(socket.socket, "connect", guarded)
        for name in list(os.environ):
            if name.startswith(_OF_MODELS):
                patch.delenv(name)
        patch.setenv("LLM_AUTO_DETECT", "false")
        yield
        left = [name for name in os.environ if name.startswith(_OF_MODELS)]
        assert left == ["LLM_AUTO_DETECT"], "a test left keys or endpoints behind"
        assert socket.socket.connect is guarded, "a test left the network open"


def _guarded(connect: Callable[[socket.socket, Any], None]) -> Callable[[socket.socket, Any], None]:
    """Return a function that refuses every connection that would leave the machine."""

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and not str(address[0]).startswith(_LOOPBACK):
            raise AssertionError(f"a test tried to reach {address}")
        connect(self, address)

    return guarded


@pytest.fixture(autouse="COVERAGE_PROCESS_CONFIG" in os.environ)
def _measure_other_processes_where_they_are_the_point(request: pytest.FixtureRequest) -> None:
    """Measure the coverage of processes that a test starts if it is marked ``measured``.

    Measuring costs a process 0.2 s before its first line, and half as much again of its imports.
    """
    if not request.node.get_closest_marker("measured"):
        request.getfixturevalue("monkeypatch").delenv("COVERAGE_PROCESS_CONFIG")


@pytest.fixture(scope="module")
def nothing_left_by_file() -> Iterator[None]:
    """Look for what is left behind at the end of a file alone: its tests share what they start."""
    with nothing_left():
        yield


@pytest.fixture(autouse=True)
def _nothing_left_running(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a child process or a non-daemon thread behind."""
    if "nothing_left_by_file" in request.fixturenames:
        yield
        return
    with nothing_left():
        yield
