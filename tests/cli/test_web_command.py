"""``taskweaver web`` as a program: the page, and the browser that opens it."""

from __future__ import annotations

import re
import signal
import stat
from pathlib import Path

import httpx2
import pytest
from command_line import CommandLine
from patience import PATIENCE_S
from served import serving
from support import make_project

PROGRAM = """#!/bin/sh
printf '%s\\n' "$1" > '{folder}/asked'
cp "$(printf '%s' "$1" | sed 's#^file://##')" '{folder}/opened'
stat -c %a "$(printf '%s' "$1" | sed 's#^file://##')" > '{folder}/mode'
"""


@pytest.mark.measured
def test_the_browser_gets_the_token_in_a_private_file(
    tmp_path: Path, command_line: CommandLine
) -> None:
    project = make_project(tmp_path / "p", {"llm.api_type": "offline"})
    browser = tmp_path / "browser"
    browser.write_text(PROGRAM.replace("{folder}", str(tmp_path)))
    browser.chmod(0o700)
    opening = {"command": "web", "BROWSER": f"{browser} %s"}
    with serving(project, program=command_line.program, **opening) as (process, line):
        match = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", line)
        assert match, line
        with httpx2.Client(base_url=match[1], timeout=PATIENCE_S, verify=False) as client:
            page = client.get("/")
            policy = page.headers["content-security-policy"]
            assert "require-trusted-types-for 'script'" in policy
            assert (
                client.get("/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
            )
            (script,) = re.findall(r'<script type="module" src="([^"]+)"', page.text)
            module = client.get(script)
            assert module.headers["content-type"].startswith("text/javascript")
            assert "immutable" in module.headers["cache-control"]
            assert client.get(script.replace("app.js", "none.js")).status_code == 404
            assert client.get(re.sub("page/[^/]+", "page/0", script)).status_code == 404
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    asked = (tmp_path / "asked").read_text()
    assert match[2] not in asked
    assert match[2] in (tmp_path / "opened").read_text()
    assert (tmp_path / "mode").read_text().strip() == "600"
    assert list((project / "workspace" / "server").glob("open-*")) == []
    assert stat.S_IMODE((project / "workspace" / "server").stat().st_mode) == 0o700
