"""Code that waits for a person, on the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_server import DirectedModel, page_server, start_address
from page_tab import CTRL, PageTab
from served import Served

pytestmark = pytest.mark.usefixtures("no_states")


def test_code_waits_for_a_person(tab: PageTab, tmp_path: Path) -> None:
    config = {"code_interpreter.require_confirmation": True}
    with page_server(tmp_path, DirectedModel(), config) as server:
        tab.open(start_address(server))
        tab.new_session()
        allow_and_deny(tab, server)
        run_as_edited(tab)
        tab.leave()


def allow_and_deny(page: PageTab, server: Served) -> None:
    """Allow the code of one question by a key, deny that of another."""
    page.ask("cell: x = 6 * 7\\nprint(x) end")
    page.shows("Run this code?", ".ask-card")
    page.shows("1 asks you", ".topbar")
    (listed,) = server.client().get("/agent/v1/sessions").json()["sessions"]
    assert listed["activity"] == "asks"
    page.until("document.activeElement.matches('.ask-card')")
    page.key("y")
    page.finished(1)
    page.press_on("#round-1 .cell-head")
    page.shows("42", ".cell-out")
    page.shows("x", ".variables")
    page.tab.view(400)
    page.ask(f"cell: y = {' + '.join(['1'] * 60)} end")
    page.shows("Always: code is not asked about again, on any branch", ".ask-card")
    page.until(  # all of the code is to be read, with nothing to scroll
        "(code => code.scrollWidth <= code.clientWidth && code.scrollHeight <= code.clientHeight)"
        "(document.querySelector('.ask-card .code'))"
    )
    page.tab.view(1280)
    page.button("Deny")
    page.finished(2)
    page.shows("not run", ".cell-head")


def run_as_edited(page: PageTab) -> None:
    """Run other code in place of the one that is asked about, with keys alone."""
    page.ask("cell: z = 'as written' end")
    page.until("document.activeElement.matches('.ask-card')")
    page.until("[...document.querySelectorAll('.ask-card button')].every((one) => !one.disabled)")
    page.key("e")
    page.until("document.activeElement.matches('.ask-card textarea')")
    page.value("document.activeElement.select()")
    page.type("z = 'as changed'\nprint(z)")
    page.key("Enter", CTRL)
    page.finished(3)
    page.press_on("#round-3 .cell-head")
    page.shows("as changed", "#round-3 .cell-out")
    page.shows("z = 'as changed'", "#round-3 .cell-code")
