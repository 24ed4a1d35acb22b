"""The plain code of plans, run as an exported script runs it."""

from __future__ import annotations

import json
import pathlib
import sqlite3
from typing import Any

import pandas as pd

from taskweaver.tables.plans.code import as_code
from taskweaver.tables.plans.plan import plan_of
from taskweaver.tables.reading import Table, load


def loaded(path: pathlib.Path, sheet: str | int | None = None) -> Table:
    """Read a table; its plan, sent as plain data and written as code, gives the same frame."""
    table = load(path, sheet)
    plan = plan_of(json.loads(json.dumps(table.plan.to_dict())))
    assert plan is not None
    names: dict[str, Any] = {"pd": pd, "json": json, "pathlib": pathlib, "sqlite3": sqlite3}
    pd.testing.assert_frame_equal(eval(as_code(plan), names), table.frame)
    return table


def written(folder: pathlib.Path, text: str | bytes, name: str = "t.csv") -> pathlib.Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
