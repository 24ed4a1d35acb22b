"""A refusal names the library, the variable where it is known, and the remedy."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from textwrap import dedent

import pytest
from kernels import answers, forked, needs_thread_owners, run

from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.kernel.kernel import Kernel

pytestmark = needs_thread_owners

REFUSED = {
    "duckdb, a connection": (
        "import duckdb; con = duckdb.connect(); con.execute('select 1').fetchall()",
        r"DuckDB has \d+ threads?: close the connection `con`",
        "con.close()",
    ),
    "duckdb, the default connection": (
        "import duckdb; duckdb.sql('select 1').fetchall()",
        r"DuckDB has \d+ threads?: call `duckdb.close\(\)`",
        "duckdb.close()",
    ),
    "polars, a query": (
        "import polars; f = polars.DataFrame({'a': range(9)}); f.select(polars.col('a').sum())",
        r"polars ran a query in this kernel: its threads do not survive a fork",
        "",
    ),
    "concurrent.futures": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(1); pool.submit(abs, 1).result()",
        "thread 'ThreadPoolExecutor-0_0' is running: shut down the executor `pool`",
        "pool.shutdown()",
    ),
    "logging.handlers": (
        "import logging.handlers, queue\n"
        "listener = logging.handlers.QueueListener(queue.Queue()); listener.start()",
        r"is running: stop the QueueListener `listener`",
        "listener.stop()",
    ),
    "joblib, processes": (
        "import joblib; joblib.Parallel(2)(joblib.delayed(abs)(i) for i in range(4))",
        "joblib's worker processes are running",
        "",
    ),
    "io, a file opened for writing": (
        "gone = open('a.txt', 'w'); gone.close(); report = open('n.txt', 'wb')",
        r"n.txt is open for writing: close the file `report`",
        "report.close()",
    ),
    "sqlite3, a file": (
        "import sqlite3; con = sqlite3.connect('d.db'); con.execute('create table t (a)')",
        r"d.db is open for writing: close the connection `con`",
        "con.close()",
    ),
    "sqlalchemy, in a transaction": (
        """
        import sqlalchemy
        engine = sqlalchemy.create_engine("sqlite:///d.db")
        busy = engine.connect(); _ = busy.execute(sqlalchemy.text("create table t (a)"))
        """,
        r"d.db is open for writing",
        "busy.close()",
    ),
    "requests, an open answer": (
        """
        import requests, socket
        listener = socket.create_server(("127.0.0.1", 0))
        session = requests.Session(); session.headers["X"] = "y"
        """,
        r"a network connection or socket is open",
        "listener.close()",
    ),
    "pyarrow, a reader whose source is slow": (
        r"""
        import io, threading, pyarrow.csv as csv
        gate = threading.Event()
        class Slow(io.BytesIO):
            def read(self, *size):
                return (self.tell() < 25_000 or gate.wait()) and super().read(*size)
        reader = csv.open_csv(Slow(b"a,b\n" + b"1,2\n" * 100_000), csv.ReadOptions(block_size=9999))
        """,
        r"Python code called by a library is still working in 1 thread",
        "gate.set(); reader.read_all().num_rows",
    ),
    "threading": (
        "import threading; gate = threading.Event()\n"
        "thread = threading.Thread(target=gate.wait, name='clock', daemon=True); thread.start()",
        "the thread 'clock' is running",
        "gate.set(); thread.join()",
    ),
    "subprocess, with a pipe": (
        "import subprocess; p = subprocess.Popen(['cat'], stdin=-1)",
        "a pipe",
        "p.communicate()",
    ),
    "numpy, a file that is mapped": (
        "import numpy as np; m = np.memmap('m.bin', 'u1', 'w+', shape=4096)",
        "mapped for writing",
        "del m",
    ),
    "logging, a file begun anew": (
        "import logging; logging.basicConfig(filename='w.log', filemode='w', force=True)\n"
        "logging.error('x')",
        r"w.log is open for writing",
        "logging.basicConfig(force=True)",
    ),
}


# The others hold a file, a thread or a socket as one of these does.
IN_LONG = (
    "concurrent.futures", "duckdb, the default connection", "logging, a file begun anew",
    "logging.handlers",
)  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.long) if case in IN_LONG else case for case in REFUSED],
)
def test_a_refusal_names_library_variable_and_remedy(
    fresh: Kernel, tmp_path: Path, case: str
) -> None:
    if importlib.util.find_spec(case.split(",")[0]) is None:
        pytest.skip(f"{case} needs a library that is not installed")
    code, reason, remedy = REFUSED[case]
    assert run(fresh, dedent(code)).is_success
    for _ in range(2):  # the second time without waiting for the threads to end
        with pytest.raises(ForkRefused) as refusal:
            fresh.snapshot()
        assert any(re.search(reason, each) for each in refusal.value.reasons), refusal.value.reasons
    assert answers(fresh)
    if remedy:
        assert run(fresh, remedy).is_success
        child = forked(fresh, tmp_path.name)
        assert answers(child)
        child.stop()
