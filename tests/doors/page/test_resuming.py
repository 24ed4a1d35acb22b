"""The page when its server is killed and comes back."""

from __future__ import annotations

import json
import re
from pathlib import Path

from command_line import CommandLine
from page_tab import PageTab
from ports import free_port
from served import serving
from support import NO_STATES, make_project

from taskweaver.server.accounts import Accounts, accounts_file


def test_the_page_goes_on_when_its_killed_server_is_back(
    tab: PageTab, tmp_path: Path, command_line: CommandLine
) -> None:
    project = make_project(tmp_path / "p", {"llm.api_type": "offline", **NO_STATES})
    with Accounts.at(accounts_file(project / "workspace")) as accounts:
        token = accounts.add("ann", "admin").text
    port = str(free_port())  # new: the browser has cached no part of its page
    program = command_line.program
    with serving(project, "--port", port, program=program) as (process, line):
        address = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert address, line
        tab.open(f"{address[0]}/#token={token}")
        tab.new_session()
        tab.ask(
            "/run\nimport time\nfor n in range(600):\n    print('tick', n)\n    time.sleep(0.1)"
        )
        tab.shows("tick 1", ".output.live")
        process.kill()
    tab.shows("Connection lost", ".offline")
    tab.type("what is typed stays", ".composer textarea")
    place = tab.address()
    tab.value("location.hash = '#/searches'")
    tab.shows("This part of the page could not be loaded", ".failure")
    tab.value(f"location.hash = {json.dumps(place)}")
    with serving(project, "--port", port, program=program):
        tab.hides(".offline")
        tab.shows("The round failed", ".round")
        typed = "document.querySelector('.composer textarea')"
        assert tab.value(f"{typed}.value") == "what is typed stays"
        tab.value(f"({typed}.value = '', {typed}.dispatchEvent(new Event('input')), null)")
        tab.ask("/run\nprint('here again')")
        tab.shows("here again", ".output")
        tab.leave()
