"""Overviews of data files over the agent API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from agents import API, SteeredModel, await_answer, new_session, serving_agents
from support import make_project

pytestmark = pytest.mark.usefixtures("no_states")

PRICES = "day,shop,price\n2025-01-01,a,1.50\n2025-01-02,b,2\n"


def read_overview(client: httpx2.Client, address: str) -> dict[str, Any]:
    """Ask until all files are read."""

    def is_read(response: httpx2.Response) -> bool:
        return not any(one["is_being_read"] for one in response.json()["files"])

    found: dict[str, Any] = await_answer(client, address, is_read).json()
    return found


def test_files_of_the_project_and_of_a_branch_have_overviews(tmp_path: Path) -> None:
    data = make_project(tmp_path / "project") / "data"
    data.mkdir(exist_ok=True)
    for old in data.iterdir():
        old.unlink()
    (data / "prices.csv").write_text(PRICES, "utf-8")
    (data / "notes.md").write_text("no table", "utf-8")
    (tmp_path / "secret.csv").write_text(PRICES, "utf-8")
    with serving_agents(tmp_path, SteeredModel()) as server:
        client = server.client()
        found = read_overview(client, f"{API}/files")
        assert (found["folder"], [one["name"] for one in found["files"]]) == (
            "project",
            ["prices.csv"],
        )
        (prices,) = found["files"]
        assert (prices["rows"], prices["problem"]) == (2, "")
        kinds = {one["name"]: one["kind"] for one in prices["columns"]}
        assert (kinds["day"], kinds["price"]) == ("day", "number")
        assert prices["sample"][0] == ["2025-01-01", "a", "1.50"]

        session = new_session(client)
        assert read_overview(client, f"{session}/overview")["files"] == []
        sent = client.put(
            f"{session}/files/own.csv",
            content=PRICES.encode(),
            headers={"Content-Type": "application/octet-stream"},
        )
        assert sent.status_code in {200, 201}
        (cwd,) = {path.parent for path in tmp_path.rglob("own.csv")}
        (cwd / "link.csv").symlink_to(tmp_path / "secret.csv")
        files = read_overview(client, f"{session}/overview")["files"]
        assert [(one["name"], one["rows"]) for one in files if one["rows"]] == [("own.csv", 2)]
