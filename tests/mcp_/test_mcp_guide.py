"""The guide to MCP shows what works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("mcp")
ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "mcp.md").read_text("utf-8")
JSON, CALL, STOCK, _, CLIENT, *_ = re.findall(r"```(?:json|python)\n(.*?)\n```", GUIDE, re.DOTALL)
SETTINGS = {"llm.api_type": "offline", "execution.sandbox": "none", "execution.zygote": False}


def ran(folder: Path, *arguments: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LLM_")}
    env = kept | {"PATH": path, "PYTHONPATH": str(ROOT), "LLM_AUTO_DETECT": "false"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of the project that the guide makes."""
    folder = tmp_path_factory.mktemp("guide")
    ran(folder, "-m", "taskweaver", "init", "timely")
    found = folder / "timely" / "taskweaver_config.json"
    found.write_text(json.dumps(json.loads(found.read_text()) | SETTINGS))
    return found


@pytest.mark.skipif(find_spec("mcp_server_time") is None, reason="mcp-server-time is not installed")
def test_the_five_minutes_and_the_server_of_ones_own(file: Path) -> None:
    folder = file.parents[1]
    servers = json.loads(JSON)
    own = {"command": "python", "args": ["stock.py"], "confirm": "never"}
    servers["mcp.servers"]["stock"] = own
    assert '"stock": {"command": "python", "args": ["stock.py"]}' in GUIDE
    file.with_name("stock.py").write_text(STOCK)
    before = file.read_text()
    file.write_text(json.dumps(json.loads(before) | servers))
    found = ran(folder, "-m", "taskweaver", "--trust", "-p", "timely", "doctor")
    assert "`python -m taskweaver --trust -p timely doctor`" in GUIDE
    (line,) = re.findall(r"```text\n(ok    mcp .*?)\n```", GUIDE)
    assert line in found
    assert "ok    mcp       stock: stock_pieces" in found
    line = CALL.splitlines()[-1].replace("(code)", "(\"stock_pieces('chair')\")")
    called, _, pieces = ran(folder, "-c", f"{CALL}\n{line}").partition("+09:00")
    file.write_text(before)
    assert called.endswith(("T20:00:00", "T19:00:00"))
    assert "12" in pieces


def test_the_client_of_the_guide_gets_an_answer(file: Path) -> None:
    folder = file.parents[1]
    ran(folder, "-m", "taskweaver", "--trust", "trust", "timely")
    # The client hands on no PYTHONPATH, and the package may be found by that alone. Nor does it
    # hand on the folder of the tests' own state.
    env = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    client = CLIENT.replace(
        'command="python", args=command', f'command="python", args=command, env={env!r}'
    )
    assert "400" in ran(folder, "-c", client)
