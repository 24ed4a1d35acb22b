"""Faults of accessibility that axe finds on the main screens of the page."""

from __future__ import annotations

from importlib.resources import files

import pytest
from page_tab import PageTab
from test_page_parts import TABLE, run

pytest.importorskip("axe_core_python")
FOUND = (
    "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations"
    ".map((one) => `${one.impact}: ${one.id}: ${one.nodes.map((node) => node.html).join()}`))"
)


def check(page: PageTab, screen: str) -> None:
    """Check what is shown, light and dark: axe finds nothing, be it serious or not."""
    for mode in ("light", "dark"):
        page.tab.view(1280, mode)
        assert page.value(FOUND) == [], (screen, mode)


def ask(page: PageTab) -> None:
    """Have rounds with a table, a failure and an answer; look at each tab of the inspector."""
    run(page, TABLE.removeprefix("/run\n"), 1)
    run(page, "print('\\n'.join(map(str, range(200))))\nnone_such", 2)
    page.ask("say: The **total** is `42`.\\n\\n```python\\nx = 1\\n``` end")
    page.finished(3)
    for tab in ("Files", "Figures", "Memory", "Why", "Data"):
        page.press_on(".data-pane .tab", tab)
    page.press_on(".variable", "df")


def press(page: PageTab, *keys: str) -> None:
    """Press keys outside of fields."""
    page.value("document.activeElement.blur()")
    for key in keys:
        page.key(key)


def test_axe_finds_nothing_on_the_main_screens(page: PageTab) -> None:
    axe = (files("axe_core_python") / "axe.min.js").read_text("utf-8")
    page.value(f"{axe};0")
    try:
        check(page, "empty session")
        ask(page)
        check(page, "session")
        page.button("Show the table")
        page.shows("3 rows, 2 columns", "dialog")
        check(page, "table")
        page.press_on("dialog button", "Close")
        page.hides("dialog")
        press(page, "m", "f")
        page.shows("1 variable", ".fork-panel")
        check(page, "fork and map")
        page.press_on(".fork-panel .primary")
        page.shows("try-1", ".way")
        press(page, "c")
        page.shows("Variables", ".differences")
        check(page, "comparison")
        press(page, "?")
        page.shows("Keys", "dialog")
        check(page, "help")
        page.key("Escape")
        page.value("location.hash = '#/searches'")
        page.shows("An idea", ".runs")
        page.button("New")
        page.shows("Start a search", ".start-form")
        check(page, "searches")
        page.button("Cancel")
        page.value("location.hash = '#/'")
        page.shows("Sessions", "h1")
        check(page, "sessions")
    finally:
        page.tab.view(1280)
