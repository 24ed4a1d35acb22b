"""The guide to MCP shows what works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from patience import PATIENCE_S

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.mcp.config import MCPConfig
from taskweaver.mcp.servers import MCPServers

pytest.importorskip("mcp")
ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "mcp.md").read_text("utf-8")
JSON, CALL, STOCK, _, CLIENT, *_ = re.findall(r"```(?:json|python)\n(.*?)\n```", GUIDE, re.DOTALL)
OWN = {"command": "python", "args": ["stock.py"], "confirm": "never"}
SETTINGS = {"llm.api_type": "offline", "execution.sandbox": "none", "execution.zygote": False}


pytestmark = pytest.mark.skipif(
    find_spec("mcp_server_time") is None, reason="mcp-server-time is not installed"
)


def both_servers() -> dict[str, Any]:
    """Return the configuration of the guide, with the server of one's own."""
    servers: dict[str, Any] = json.loads(JSON)
    servers["mcp.servers"]["stock"] = OWN
    return servers


def test_the_published_server_and_the_own_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    (tmp_path / "stock.py").write_text(STOCK)
    config = MCPConfig(AppConfigSource(None, both_servers(), tmp_path))
    servers = MCPServers(config.servers, tmp_path / "logs")

    def called(function: str, **arguments: str) -> Any:
        tool = servers.offer().tools[function]
        (part,) = servers.call(tool, arguments).result(PATIENCE_S)
        return part["value"]

    try:
        offered = ["stock_pieces", "time_convert_time", "time_get_current_time"]
        assert sorted(servers.offer().tools) == offered
        times = {"source_timezone": "Europe/Paris", "target_timezone": "Asia/Tokyo"}
        told = called("time_convert_time", **times, time="12:00")
        assert told["source"]["timezone"] == "Europe/Paris"
        assert json.dumps(told["target"]).count("Tokyo") == 1
        assert called("stock_pieces", product="chair") == 12
    finally:
        servers.close()


@pytest.mark.long
def test_the_five_minutes_a_server_of_ones_own_and_a_client(
    tmp_path: Path, command_line: CommandLine
) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {name: value for name, value in os.environ.items() if not name.startswith("LLM_")}
    env |= {"PATH": path, "PYTHONPATH": str(ROOT), "LLM_AUTO_DETECT": "false"}

    def run(*arguments: str) -> str:
        done = command_line.run(*arguments, env=env, cwd=tmp_path)
        done.check_returncode()
        return done.stdout

    def output(code: str) -> str:
        command = [sys.executable, "-c", code]
        return subprocess.check_output(command, cwd=tmp_path, env=env, text=True)

    run("init", "timely")
    file = tmp_path / "timely" / "taskweaver_config.json"
    settings = json.loads(file.read_text()) | SETTINGS
    assert '"stock": {"command": "python", "args": ["stock.py"]}' in GUIDE
    file.with_name("stock.py").write_text(STOCK)
    file.write_text(json.dumps(settings | both_servers()))
    found = run("--trust", "-p", "timely", "doctor")
    assert "`python -m taskweaver --trust -p timely doctor`" in GUIDE
    (line,) = re.findall(r"```text\n(ok    mcp .*?)\n```", GUIDE)
    assert line in found
    assert "ok    mcp       stock: stock_pieces" in found
    line = CALL.splitlines()[-1].replace("(code)", "(\"stock_pieces('chair')\")")
    called, _, pieces = output(f"{CALL}\n{line}").partition("+09:00")
    assert called.endswith(("T20:00:00", "T19:00:00"))
    assert "12" in pieces

    file.write_text(json.dumps(settings))
    run("--trust", "trust", "timely")
    # The client hands on no PYTHONPATH, and the package may be found by that alone. Nor does it
    # hand on the folder of the tests' own state.
    handed = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    assert "400" in output(CLIENT.replace("args=command", f"args=command, env={handed!r}"))
