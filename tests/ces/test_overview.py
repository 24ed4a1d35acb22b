"""The first impression of hostile files, which the kernel reads."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from taskweaver.ces.inkernel import overview


def test_a_view_that_computes_for_ever_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pd.DataFrame is not None  # its import takes no time of the limit
    path = tmp_path / "endless.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE VIEW endless AS WITH RECURSIVE c(x) AS"
            " (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
        )
        connection.commit()
    content = path.read_bytes()
    file = {"name": path.name, "bytes": len(content), "content": base64.b64encode(content).decode()}
    monkeypatch.setattr(overview, "_LIMIT_S", 0.2)

    found = overview.overviews({"files": [file]})["files"][path.name]

    assert "tables" not in found
    assert found["problem"]
