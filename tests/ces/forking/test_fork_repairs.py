"""Files of both sides after a fork: log files, and those a library opens anew in the child."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kernels import forked, run

from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.kernel.kernel import Kernel

LOGGED = """
import logging, logging.handlers
handler = {handler}
logger = logging.getLogger("both"); logger.setLevel("INFO"); logger.addHandler(handler)
logger.info("before")
"""


@pytest.mark.parametrize(
    "handler", ["logging.FileHandler('run.log')", "logging.handlers.WatchedFileHandler('run.log')"]
)
def test_log_lines_of_both_sides_arrive(fresh: Kernel, tmp_path: Path, handler: str) -> None:
    assert run(fresh, LOGGED.format(handler=handler)).is_success
    child = forked(fresh, tmp_path.name)
    run(child, "logger.info('child')")
    run(fresh, "logger.info('parent')")
    run(child, "logger.info('child again')")
    lines = (tmp_path / "cwd" / "run.log").read_text().splitlines()
    assert lines == ["before", "child", "parent", "child again"]
    child.stop()


def test_a_log_file_that_was_moved_is_not_closed_behind_the_users_back(
    fresh: Kernel, tmp_path: Path
) -> None:
    run(fresh, LOGGED.format(handler="logging.FileHandler('run.log')"))
    (tmp_path / "cwd" / "run.log").rename(tmp_path / "moved.log")
    with pytest.raises(ForkRefused, match=r"moved.log is open for writing"):
        fresh.snapshot()
    run(fresh, "logger.info('after')")
    assert (tmp_path / "moved.log").read_text() == "before\nafter\n"


PREPARE = """
import gzip, pathlib
import pyarrow.csv as csv
part = gzip.compress((b"1," + b"x" * 997 + b"\\n") * 1000)
with open("long.csv.gz", "wb") as file:
    file.writelines([gzip.compress(b"a,b\\n"), *[part] * {megabytes}])
began, options = pathlib.Path("began").absolute(), csv.ConvertOptions(include_columns=["a"])
single_threaded = csv.ReadOptions(use_threads=False)
path = pathlib.Path("long.csv.gz").absolute()
"""
# In one thread: with more, Arrow itself looks at the interrupt only after many blocks.
READ = "began.touch(); csv.read_csv(path, single_threaded, convert_options=options).num_rows"


def test_an_interrupt_ends_a_long_read_of_arrow_in_a_fork(fresh: Kernel, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    assert run(fresh, PREPARE.format(megabytes=1)).is_success
    assert run(fresh, READ).output == 1000
    assert run(fresh, PREPARE.format(megabytes=3_000)).is_success
    (tmp_path / "cwd" / "began").unlink()
    child = forked(fresh, tmp_path.name)
    pause = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(run, child, READ)
        while not (tmp_path / "cwd" / "began").exists() and not reading.done():
            pause.wait(0.02)
        pause.wait(0.3)
        child.interrupt()
        result = reading.result()
    assert (result.status, result.is_state_lost) == ("interrupted", False)
    assert run(child, "options.include_columns").output == ["a"]
    child.stop()
