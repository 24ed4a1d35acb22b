"""Runs of tree searches, read over the agent API."""

from __future__ import annotations

import json
from pathlib import Path

from agents import API, SteeredModel, serving_agents
from served import problem

from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus


def write_run(folder: Path) -> None:
    """Write the log of a run with two attempts."""
    folder.mkdir(parents=True)
    objective = {"name": "score", "maximize": True, "unit": ""}
    nodes = [
        Node("n0001", 1, NodeKind.DRAFT, 1, status=NodeStatus.BUGGY, plan="first\nmore"),
        Node("n0002", 2, NodeKind.DEBUG, 1, parent="n0001", status=NodeStatus.BUGGY),
    ]
    entries = [
        {"t": "run", "objective": objective, "title": "An idea", "at": 1.0},
        *({"t": "node", "node": node.to_dict()} for node in nodes),
        {"t": "ended", "reason": "enough"},
    ]
    lines = "".join(json.dumps(entry) + "\n" for entry in entries)
    (folder / "journal.jsonl").write_text(lines)


def test_runs_are_listed_and_read_by_admins_alone(tmp_path: Path) -> None:
    searches = tmp_path / "searches"
    write_run(searches / "run-one")
    config = {"search.folder": str(searches)}
    with serving_agents(tmp_path, SteeredModel(), config) as server:
        client = server.client()
        (run,) = client.get(f"{API}/searches").json()["runs"]
        assert (run["name"], run["title"], run["state"]) == ("run-one", "An idea", "over")
        assert (run["nodes"], run["best"], run["best_value"]) == (2, "", None)
        tree = client.get(f"{API}/searches/run-one").json()
        assert [(node["node"], node["parent"]) for node in tree["nodes"]] == [
            ("n0001", None),
            ("n0002", "n0001"),
        ]
        assert (tree["nodes"][0]["plan"], tree["nodes"][0]["status"]) == ("first", "buggy")
        node = client.get(f"{API}/searches/run-one/nodes/n0001").json()["node"]
        assert node["plan"] == "first\nmore"
        problem(client.get(f"{API}/searches/run-two"), 404, "search-error")
        problem(client.get(f"{API}/searches/run-one/nodes/n9"), 404, "not-found")
        made = client.post(f"{API}/searches/run-one/nodes/n0001/session")
        assert "no memory" in problem(made, 404, "search-error")["detail"]
        user = server.client(server.accounts.add("ann").text)
        for path in ("", "/run-one", "/run-one/nodes/n0001"):
            problem(user.get(f"{API}/searches{path}"), 404, "not-found")
        problem(user.post(f"{API}/searches/run-one/nodes/n0001/session"), 404, "not-found")
        admin = server.client(server.accounts.add("root", "admin").text)
        assert len(admin.get(f"{API}/searches").json()["runs"]) == 1
