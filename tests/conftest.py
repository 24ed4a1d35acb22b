"""Guards every test stands behind: no network but loopback, nothing left running."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

import hypothesis
import pytest
from browser import WARM_BROWSER
from leftovers import nothing_left
from sizes import EXAMPLES
from support import NO_STATES
from warm_commands import WarmCommands
from warm_kernels import WarmKernels, warm_kernels
from warm_workers import WarmWorkers, warm_workers

from taskweaver.ces.limits import KernelLimits
from taskweaver.config.config_mgt import env_name
from taskweaver.llm.facts import learnt

os.environ.setdefault("MPLBACKEND", "Agg")
# Made once for all tests, also for those that give a command a home folder of its own.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / "taskweaver-tests-cache")
# Kept for no other run: it has what was answered about folders, and their names come again.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="tw-state-")

# `jsonschema` checks IRIs with it, which no test asks for, and its grammar takes a second to make.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# What is started in the background ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's affair; speed is measured in bench/. The profile is
# chosen by `--hypothesis-profile`; `sizes.examples` scales the numbers that tests name.
for _profile, _share in {"gate": 1, "quick": 0.1, "long": 10}.items():
    hypothesis.settings.register_profile(
        _profile,
        max_examples=int(_share * EXAMPLES),
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("gate")

_TESTS = Path(__file__).parent
_SLOW = {
    "kernel": (
        "app", "bench_/test_bench_smoke.py", "ces", "docs_/test_analyst_examples.py", "face",
        "docs_/test_documented_commands.py", "doors", "evaluation/test_evaluate.py",
        "evaluation/test_shipped_cases.py", "llm_offline", "mcp_", "original", "stored",
    ),
    "sandbox": ("attacks", "ces/bounds", "ces/sandbox"),
    "browser": (
        "ext_role/test_web_explorer.py", "ext_role/test_web_explorer_page.py",
        "memory/branched/test_page.py", "plugin/test_table_profile.py",
        "session/test_export_in_browser.py", "treesearch/reports/test_search_page.py", "doors/page",
    ),
    "postgres": ("doors/test_several_servers.py", "plugin/test_sql_postgresql.py"),
    "search": ("treesearch/embedded", "treesearch/engine", "treesearch/execution"),
    "cli": ("ci_", "cli"),
    "questions": ("analyst/test_benchmark_questions.py", "bench_/test_questions.py"),
}  # fmt: skip
"""What is left out by `make quick`: marks, and the places whose tests have them."""
_IN_PART_POSTGRES = {
    _TESTS / "server" / f"test_{name}.py"
    for name in ("accounts", "agent_index", "full_databases", "poolers")
}
"""Files whose tests need a PostgreSQL server or are fast; those that need one are marked there."""
_COMMANDS = pytest.StashKey[WarmCommands]()

_LOOPBACK = ("127.", "::1", "localhost")
_OF_MODELS = ("LLM_", "OPENAI_", "AZURE_", "OTEL_")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of processes for tests: the slow ones wait for over half of their time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(2, (cores or 1) * (3 if "kernel" in config.option.markexpr else 5) // 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Distribute the files of tests; see `scheduling`, which needs pytest-xdist."""
    from scheduling import LikeFilesTogether

    def marks(path: Path) -> list[str]:
        return _marks(path) or (["postgres"] if path in _IN_PART_POSTGRES else [])

    return LikeFilesTogether(config, log, marks) if config.option.dist == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of the process that forks commands; a run of all tests starts one for all."""
    config: pytest.Config = node.config
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not is_whole or "cli" in _left_out(config) or "COVERAGE_PROCESS_CONFIG" in os.environ:
        return
    if _COMMANDS not in config.stash:
        folder = Path(tempfile.mkdtemp(prefix="tw-commands-"))
        config.stash[_COMMANDS] = WarmCommands(folder, dict(os.environ))
    node.workerinput["commands"] = config.stash[_COMMANDS].address


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process that forks commands; remove what was noted of this user."""
    commands = config.stash.get(_COMMANDS, None)
    if commands is not None:
        commands.close()
        shutil.rmtree(Path(commands.address).parent, ignore_errors=True)
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


@cache
def _marks(path: Path) -> list[str]:
    """Return the marks of the tests of a file."""
    return [
        mark
        for mark, places in _SLOW.items()
        if any(path.is_relative_to(_TESTS / place) for place in places)
    ]


def _left_out(config: pytest.Config) -> set[str]:
    """Return the marks that a run leaves out, as ``not (kernel or browser)`` says."""
    negation, _, marks = config.option.markexpr.partition("not ")
    return set() if negation else set(marks.strip("()").split(" or "))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests `make quick` leaves out: it takes half of the collection."""
    return True if _left_out(config) >= set(_SLOW) and _marks(collection_path) else None


def _import_share(config: pytest.Config) -> None:
    """Import a share of the test files, each worker another one.

    pytest compiles a file that is imported for the first time, and keeps it. Workers that go
    through all files at the same pace would each compile them all, which takes twice as long as
    all else that they do until their first test.
    """
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if not worker or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    first, step = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    every, before = sorted(_TESTS.rglob("test_*.py")), list(sys.path)
    paths = [path for path in every if not pytest_ignore_collect(path, config)]
    sys.path[:0] = dict.fromkeys(str(path.parent) for path in paths)
    for path in paths[first::step]:
        with suppress(Exception, pytest.skip.Exception):  # it is imported again, and reported
            import_module(path.stem)
    sys.path[:] = before
    _read_constants(first, step)


def _read_constants(first: int, step: int) -> None:
    """Have hypothesis cache the constants in a share of the modules, each worker another one.

    It draws some examples from them. Without the cache, each worker reads the source of all modules
    of this repository, which takes four seconds.
    """
    try:
        from hypothesis.internal.constants_ast import constants_from_module, is_local_module_file
    except ImportError:  # it is no public name
        return
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and crc32(name.encode()) % step == first and is_local_module_file(file):
            constants_from_module(module)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, nor in the modules and tests afterwards.

    They stay to the end; looking through them takes half of the time of a collection. Tests make
    many objects and little garbage, and spend an eighth of their time on looking for it at the
    usual rate: they do so a tenth as often.
    """
    gc.disable()
    try:
        _import_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(7_000)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests by their places; the slow ones go first, so that short ones fill the end."""
    for item in items:
        for mark in _marks(item.path):
            item.add_marker(mark)
    items.sort(key=lambda item: not _marks(item.path))


@pytest.fixture(scope="session")
def _warm_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmKernels]:
    log_path = tmp_path_factory.mktemp("warm") / "warm.log"
    with warm_kernels(log_path, KernelLimits.default()) as kernels:
        yield kernels


@pytest.fixture(autouse=True, scope="module")
def _kernels_start_warm(_warm_kernels: WarmKernels) -> Iterator[None]:
    """Fork kernels from shared warm processes; the tests of kernels themselves do not."""
    with _warm_kernels.in_use():
        yield


@pytest.fixture(scope="session")
def _warm_workers() -> Iterator[WarmWorkers]:
    with warm_workers() as workers:
        yield workers


@pytest.fixture(autouse=True, scope="module")
def _workers_go_on(_warm_workers: WarmWorkers) -> Iterator[None]:
    """Give the workers of a search to the next one; the tests of workers themselves do not."""
    with _warm_workers.in_use():
        yield


@pytest.fixture(autouse=True, scope="session")
def _browser_ends() -> Iterator[None]:
    yield
    WARM_BROWSER.close()


@pytest.fixture(autouse=True, scope="module")
def _browser_goes_on(request: pytest.FixtureRequest) -> None:
    """Keep the browser of the files before for one that opens pages; others run without it."""
    if "browser" not in _marks(request.path):
        WARM_BROWSER.close()


@pytest.fixture
def cold_workers(_warm_workers: WarmWorkers) -> Iterator[None]:
    """Start and end each worker as its search asks."""
    with _warm_workers.out_of_use():
        yield


@pytest.fixture
def early_kernels(_warm_kernels: WarmKernels) -> Iterator[None]:
    """Start kernels as soon as a session opens, and not at their first use."""
    with _warm_kernels.early():
        yield


@pytest.fixture
def cold_kernels(_warm_kernels: WarmKernels) -> Iterator[None]:
    """Start each kernel as its application asks."""
    with _warm_kernels.out_of_use():
        yield


@pytest.fixture(scope="session")
def warm_commands(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WarmCommands]:
    """Commands of the program, each a process of its own that does not import anew."""
    shared = getattr(request.config, "workerinput", {}).get("commands", "")
    commands = WarmCommands(tmp_path_factory.mktemp("commands"), dict(os.environ), shared)
    yield commands
    commands.close()


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
def nothing_left_by_file(
    _warm_kernels: WarmKernels, _warm_workers: WarmWorkers, warm_commands: WarmCommands
) -> Iterator[None]:
    """Look for what is left behind at the end of a file alone: its tests share what they start."""
    with nothing_left(_warm_kernels, _warm_workers, warm_commands, WARM_BROWSER):
        yield


@pytest.fixture(autouse=True)
def _nothing_left_running(
    request: pytest.FixtureRequest,
    _warm_kernels: WarmKernels,
    _warm_workers: WarmWorkers,
    warm_commands: WarmCommands,
) -> Iterator[None]:
    """Fail a test that leaves a child process or a non-daemon thread behind."""
    if "nothing_left_by_file" in request.fixturenames:
        yield
        return
    with nothing_left(_warm_kernels, _warm_workers, warm_commands, WARM_BROWSER):
        yield
