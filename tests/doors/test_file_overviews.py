"""Overviews of data files over the agent API."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from agents import API, SteeredModel, await_answer, new_session, serving_agents
from support import make_project

pytestmark = pytest.mark.usefixtures("no_states")

PRICES = "day,shop,price\n2025-01-01,a,1.50\n2025-01-02,b,2\n"


def is_read(response: httpx2.Response) -> bool:
    return not any(one["is_being_read"] for one in response.json()["files"])


def test_files_of_the_project_and_of_a_branch_have_overviews(tmp_path: Path) -> None:
    data = make_project(tmp_path / "project", has_table=False) / "data"
    (data / "prices.csv").write_text(PRICES, "utf-8")
    (data / "notes.md").write_text("no table", "utf-8")
    (tmp_path / "secret.csv").write_text(PRICES, "utf-8")
    with serving_agents(tmp_path, SteeredModel()) as server:
        client = server.client()
        found = await_answer(client, f"{API}/files", is_read).json()
        (prices,) = found["files"]
        assert (found["folder"], prices["name"]) == ("project", "prices.csv")
        assert (prices["rows"], prices["problem"]) == (2, "")
        day, shop, price = prices["columns"]
        assert [one["kind"] for one in (day, price)] == ["day", "number"]
        assert (day["low"], price["high"], price["bars"]) == ("2025-01-01", "2.0", [1, 1])
        assert (sum(day["bars"]), shop["bars"]) == (2, [])
        assert prices["sample"][0] == ["2025-01-01", "a", "1.50"]

        session = new_session(client)
        overview = f"{session}/overview"
        assert await_answer(client, overview, is_read).json()["files"] == []
        is_bytes = {"Content-Type": "application/octet-stream"}
        for name in ("own.csv", "in/it/own.csv"):
            to = f"{session}/files/{name}"
            client.put(to, content=PRICES.encode(), headers=is_bytes).raise_for_status()
        cwd = min(tmp_path.rglob("own.csv"), key=lambda path: len(path.parts)).parent
        (cwd / "link.csv").symlink_to(tmp_path / "secret.csv")
        files = await_answer(client, overview, is_read).json()["files"]
        rows = {one["name"]: one["rows"] for one in files if one["rows"]}
        assert rows == {"own.csv": 2, "in/it/own.csv": 2}
