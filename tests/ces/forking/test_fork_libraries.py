"""The table of docs/sessions.md: libraries of which a live fork survives the use.

Each is used, forked right after use, and used again in the child, in its parent, and in a fork of
the fork.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from threading import Thread

import pytest
from kernels import FORKS, forked, needs_thread_owners, run

from taskweaver.ces.common import Client

pytestmark = needs_thread_owners

LIBRARIES = {
    "numpy": """
        import numpy as np
        a = np.ones((400, 400))
        def use(): return float((a @ a).sum()) == 400**3
    """,
    "pyarrow, all parts": """
        import pyarrow as pa, pyarrow.compute as pc, pyarrow.csv as csv, pyarrow.dataset as ds
        import pyarrow.feather as feather, pyarrow.parquet as pq
        t = pa.table({"a": list(range(10_000))})
        def use():
            csv.write_csv(t, "t.csv"); pq.write_table(t, "t.pq"); feather.write_feather(t, "t.f")
            read = csv.read_csv("t.csv"), feather.read_table("t.f"), ds.dataset("t.pq").to_table()
            return [pc.sum(each["a"]).as_py() for each in read] == [49_995_000] * 3
    """,
    "pyarrow, a file of Python's": """
        import io, threading
        import pyarrow.csv as csv
        class Named(io.BytesIO):
            def read(self, *size): threading.current_thread(); return super().read(*size)
        def use(): return csv.read_csv(Named(b"a,b\\n" + b"1,2\\n" * 10_000)).num_rows == 10_000
    """,
    "pandas, parquet and strings of pyarrow": """
        import pandas as pd
        df = pd.DataFrame({"g": list("abc") * 400, "x": range(1200)})
        def use():
            df.to_parquet("d.pq")
            return pd.read_parquet("d.pq").groupby("g").x.sum().sum() == 719_400
    """,
    "scipy, with workers": """
        import numpy as np, scipy.fft, scipy.linalg
        a = np.eye(300) + 1
        def use():
            spectrum = scipy.fft.fft2(np.ones((500, 500)), workers=2)
            return bool(spectrum[0, 0].real == 250_000 and np.isfinite(scipy.linalg.inv(a)).all())
    """,
    "numexpr": """
        import numexpr, numpy as np
        a = np.ones(1_000_000)
        def use(): return float(numexpr.evaluate("2 * a").sum()) == 2_000_000
    """,
    "sklearn": """
        from sklearn.datasets import load_iris
        from sklearn.ensemble import HistGradientBoostingClassifier
        x, y = load_iris(return_X_y=True)
        def use():
            return len(HistGradientBoostingClassifier(max_iter=3).fit(x, y).predict(x)) == 150
    """,
    "lightgbm": """
        import lightgbm, numpy as np
        x = np.arange(2000.0).reshape(500, 4)
        def use():
            model = lightgbm.LGBMRegressor(n_estimators=3, n_jobs=2, verbose=-1)
            return len(model.fit(x, x[:, 0]).predict(x)) == 500
    """,
    "xgboost": """
        import numpy as np, xgboost
        x = np.arange(2000.0).reshape(500, 4)
        def use():
            model = xgboost.XGBRegressor(n_estimators=3, n_jobs=2)
            return len(model.fit(x, x[:, 0]).predict(x)) == 500
    """,
    "numba, layer workqueue": """
        import numba, numpy as np
        numba.config.THREADING_LAYER = "workqueue"
        @numba.njit(parallel=True)
        def total(x):
            s = 0.0
            for i in numba.prange(x.shape[0]): s += x[i]
            return s
        def use(): return total(np.ones(1000)) == 1000
    """,
    "matplotlib": """
        import matplotlib.pyplot as plt
        def use(): plt.figure(); plt.plot([3, 1]); plt.savefig("p.png"); plt.close(); return True
    """,
    "plotly": """
        import plotly.graph_objects as go
        def use(): return "<div" in go.Figure(go.Scatter(y=[1, 2])).to_html()
    """,
    "sqlite3, in memory": """
        import sqlite3
        con = sqlite3.connect(":memory:"); con.execute("create table t (a)")
        def use():
            con.execute("insert into t values (1)")
            return con.execute("select min(a) from t").fetchone() == (1,)
    """,
    "sqlalchemy, idle engine": """
        import sqlalchemy
        engine = sqlalchemy.create_engine("sqlite:///data.db")
        def use():
            with engine.begin() as connection:
                connection.execute(sqlalchemy.text("create table if not exists t (a)"))
                connection.execute(sqlalchemy.text("insert into t values (1)"))
                text = sqlalchemy.text("select min(a) from t")
                return connection.execute(text).scalar() == 1
    """,
    "sqlalchemy, in memory": """
        import sqlalchemy
        engine = sqlalchemy.create_engine("sqlite://")
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("create table t (a)"))
        del connection
        def use():
            with engine.begin() as connection:
                return connection.execute(sqlalchemy.text("select count(a) from t")).scalar() == 0
    """,
    "tqdm": """
        from tqdm import tqdm
        def use(): return sum(tqdm(range(100))) == 4950
    """,
    "joblib, threads": """
        from joblib import Parallel, delayed
        def use(): return Parallel(2, prefer="threads")(map(delayed(abs), range(9)))[8] == 8
    """,
    "concurrent.futures, closed": """
        from concurrent.futures import ThreadPoolExecutor
        def use():
            with ThreadPoolExecutor(2) as pool:
                return list(pool.map(abs, [-1, 2])) == [1, 2]
    """,
    "polars, imported": """
        import polars
        df = polars.DataFrame({"a": range(1000)})
        def use(): return df.height == 1000
    """,
    "duckdb, closed": """
        import duckdb
        def use():
            with duckdb.connect() as con:
                return con.execute("select sum(range) from range(9)").fetchone() == (36,)
    """,
    "requests": """
        import requests
        session = requests.Session()
        def use(): return session.get(URL).text == "ok"
    """,
    "httpx": """
        import httpx
        session = httpx.Client()
        def use(): return session.get(URL).text == "ok"
    """,
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Address of a local server that keeps connections alive."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


# One of each kind: compiled code with threads, Arrow, figures, databases, pools, connections, bars.
IN_GATE = (
    "numpy", "pyarrow, all parts", "matplotlib", "sqlite3, in memory", "sqlalchemy, idle engine",
    "joblib, threads", "requests", "tqdm",
)  # fmt: skip


@pytest.mark.parametrize(
    "library",
    [name if name in IN_GATE else pytest.param(name, marks=pytest.mark.long) for name in LIBRARIES],
)
def test_a_fork_right_after_use_works_on_both_sides(
    fresh: Client, tmp_path: Path, url: str, library: str
) -> None:
    if importlib.util.find_spec(library.split(",")[0]) is None:
        pytest.skip(f"{library} is not installed")
    result = run(fresh, f"URL = {url!r}\n" + dedent(LIBRARIES[library]))
    assert result.is_success, result.error
    for n in range(FORKS):
        assert_use(fresh)
        child = forked(fresh, f"{tmp_path.name}-{n}")
        assert_use(child)
        assert_use(fresh)
        if n == 0:
            grandchild = forked(child, f"{tmp_path.name}-of-{n}")
            assert_use(grandchild)
            assert_use(child)
            grandchild.stop()
        child.stop()


def assert_use(client: Client) -> None:
    result = run(client, "use()")
    assert (result.output, result.error) == (True, None)
