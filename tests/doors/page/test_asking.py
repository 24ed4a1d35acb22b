"""Code that waits for a person, on the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_server import DirectedModel, page_server, start_address
from page_tab import CTRL, PageTab

pytestmark = pytest.mark.usefixtures("no_states")


def test_code_waits_for_a_person(tab: PageTab, tmp_path: Path) -> None:
    config = {"code_interpreter.require_confirmation": True}
    with page_server(tmp_path, DirectedModel(), config) as server:
        tab.open(start_address(server))
        tab.new_session()
        tab.ask("cell: x = 6 * 7\\nprint(x) end")
        tab.shows("Run this code?", ".ask-card")
        tab.shows("1 asks you", ".topbar")
        (listed,) = server.client().get("/agent/v1/sessions").json()["sessions"]
        assert listed["activity"] == "asks"
        tab.until("document.activeElement.matches('.ask-card')")
        tab.key("y")
        tab.finished(1)
        tab.press_on("#round-1 .cell-head")
        tab.shows("42", ".cell-out")
        tab.shows("x", ".variables")
        tab.tab.view(400)
        tab.ask(f"cell: y = {' + '.join(['1'] * 60)} end")
        tab.shows("Always: code is not asked about again, on any branch", ".ask-card")
        tab.until(  # all of the code is to be read, with nothing to scroll
            "(one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight)"
            "(document.querySelector('.ask-card .code'))"
        )
        tab.tab.view(1280)
        tab.button("Deny")
        tab.finished(2)
        tab.shows("not run", ".cell-head")
        tab.ask("cell: z = 'as written' end")
        tab.until("document.activeElement.matches('.ask-card')")
        tab.until("[...document.querySelectorAll('.ask-card button')].every((o) => !o.disabled)")
        tab.key("e")
        tab.until("document.activeElement.matches('.ask-card textarea')")
        tab.value("document.activeElement.select()")
        tab.type("z = 'as changed'\nprint(z)")
        tab.key("Enter", CTRL)
        tab.finished(3)
        tab.press_on("#round-3 .cell-head")
        tab.shows("as changed", "#round-3 .cell-out")
        tab.shows("z = 'as changed'", "#round-3 .cell-code")
        tab.leave()
