"""The plain code of plans, run as an exported script runs it."""

from __future__ import annotations

import gzip
import json
import pathlib
import sqlite3
import zipfile
from typing import Any

import pandas as pd
import pyarrow.parquet

from taskweaver.tables.plans.code import as_code
from taskweaver.tables.plans.plan import plan_of
from taskweaver.tables.reading import Table, load


def loaded(path: pathlib.Path, sheet: str | int | None = None) -> Table:
    """Read a table; its plan, sent as plain data and written as code, gives the same frame."""
    table = load(path, sheet)
    plan = plan_of(json.loads(json.dumps(table.plan.to_dict())))
    assert plan is not None
    modules = (gzip, json, pathlib, sqlite3, zipfile, pyarrow)
    names: dict[str, Any] = {"pd": pd, **{module.__name__: module for module in modules}}
    pd.testing.assert_frame_equal(eval(as_code(plan), names), table.frame)
    return table


def written(folder: pathlib.Path, text: str | bytes, name: str = "t.csv") -> pathlib.Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
