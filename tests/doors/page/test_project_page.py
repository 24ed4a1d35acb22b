"""The project's settings and checks on the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from page_axe import check, load_axe
from page_server import DirectedModel, page_server, start_address
from page_tab import PageTab
from test_accessibility import SETTING

from taskweaver.doors.agent_api import door

pytestmark = pytest.mark.usefixtures("no_states")


STATUSES = {"python": "ok", "kernel": "ok", "sandbox": "warn", "model": "fail"}
CHECKS = [
    {"name": name, "status": status, "detail": f"it is {status}", "fix": "See docs/security.md."}
    for name, status in STATUSES.items()
]
"""What the command says that checks a project; `test_agent_project.py` runs the real one."""


def test_settings_are_kept_and_refused_and_checks_are_shown(
    tab: PageTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"print({json.dumps(CHECKS)!r})"
    monkeypatch.setattr(door, "_command", lambda _: [sys.executable, "-S", "-c", said])
    with page_server(tmp_path, DirectedModel(), {"limits.round_tokens": 500}) as server:
        tab.open(start_address(server))
        command(tab, "Settings")
        tab.type("round_tokens", "dialog input[type=search]")
        tab.until(f"document.querySelector(\"{SETTING}\").value === '500'")
        write(tab, "many")
        tab.shows("limits.round_tokens", "dialog [role=alert]")
        write(tab, "700", leaves=False)
        tab.value("(dispatchEvent(new Event('resize')), null)")  # the page is drawn anew
        tab.is_drawn()
        tab.key("Tab")
        tab.shows("In force from the next start; now 500.", "dialog")
        file = tmp_path / "project" / "taskweaver_config.json"
        assert json.loads(file.read_text("utf-8"))["limits.round_tokens"] == 700
        assert tab.value("document.querySelector('dialog select')") is None
        tab.until("(document.querySelector('dialog input[type=search]').select(), true)")
        tab.type("answers.check")
        tab.shows("default: true", "dialog select")
        assert tab.value("document.querySelector('dialog select').value") == "-"
        tab.press_on("dialog button", "Close")
        tab.hides("dialog")
        command(tab, "Check what works here")
        tab.until("document.querySelectorAll('.checks li').length > 3")
        tab.shows("See docs/security.md.", ".checks")
        load_axe(tab)
        check(tab, "checks", "dialog")
        tab.tab.view(1280)
        tab.press_on("dialog button", "Close")
        tab.leave()


def command(tab: PageTab, name: str) -> None:
    tab.look_for(name)
    tab.press_on(".palette [role=option]", name)
    tab.until("document.querySelector('dialog.project')")


def write(tab: PageTab, text: str, *, leaves: bool = True) -> None:
    tab.until(f'(document.querySelector("{SETTING}").select(), true)')
    tab.type(text)
    if leaves:
        tab.key("Tab")
