"""Faults of accessibility that axe finds on the screens, dialogs and panels of the page."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from agents import API, ask
from page_tab import CTRL, PageTab
from served import Served
from test_agent_moments import set_core
from test_page_parts import TABLE, run

pytest.importorskip("axe_core_python")
ALL = "{resultTypes: ['violations']}"
COLOURS = "{runOnly: {type: 'rule', values: ['color-contrast']}}"
"""The rule whose outcome another theme may change."""
FOUND = (
    "axe.run(document, RULES).then(({violations}) => violations"
    ".map((one) => `${one.impact}: ${one.id}: ${one.nodes.map((node) => node.html).join()}`))"
)


def load_axe(page: PageTab) -> None:
    axe = (files("axe_core_python") / "axe.min.js").read_text("utf-8")
    page.value(f"{axe};0")


@pytest.fixture
def checked(page: PageTab) -> Iterator[PageTab]:
    """Give a page with axe in it."""
    load_axe(page)
    yield page
    page.tab.view(1280)


def check(page: PageTab, screen: str, width: int = 1280) -> None:
    """Check what is shown in both themes: axe finds nothing, be it serious or not.

    On a phone the main part may be the pane that is not shown.
    """
    for mode, rules in (("dark", ALL), ("light", COLOURS)):
        page.tab.view(width, mode)
        faults = page.value(FOUND.replace("RULES", rules))
        found = [one for one in faults if width > 400 or "landmark-one-main" not in one]
        assert found == [], (screen, mode)


def press(page: PageTab, *keys: str) -> None:
    """Press keys outside of fields."""
    page.value("document.activeElement.blur()")
    for key in keys:
        page.key(key)


def close_dialog(page: PageTab) -> None:
    page.key("Escape")
    page.hides("dialog")


def have_rounds(page: PageTab) -> None:
    """Have rounds with a table, a picture, a failure and an answer."""
    run(page, TABLE.removeprefix("/run\n"), 1)
    run(page, "from PIL import Image\nImage.new('L', (2000, 900), 90).save('grey.png')", 2)
    run(page, "print('\\n'.join(map(str, range(200))))\nnone_such", 3)
    page.ask("say: The **total** is `42`.\\n\\n```python\\nx = 1\\n``` end")
    page.finished(4)


def test_axe_finds_nothing_in_a_session(checked: PageTab) -> None:
    page = checked
    check(page, "empty session")
    have_rounds(page)
    for tab, shown in (
        ("Files", "grey.png"),
        ("Figures", "grey.png"),
        ("Memory", "Remember"),
        ("Why", ""),
        ("Data", "df"),
    ):
        page.press_on(".data-pane .tab", tab)
        page.shows(shown, ".tab-panel")
        check(page, f"inspector, {tab}")
    page.press_on(".variable", "df")
    page.button("Show the table")
    page.shows("3 rows, 2 columns", "dialog")
    check(page, "table")
    close_dialog(page)
    page.press_on(".conversation .open-picture")
    page.until("document.querySelector('dialog img').naturalWidth === 2000")
    check(page, "picture")
    close_dialog(page)
    press(page, "k")
    page.shows("as it was", ".moment-bar")
    press(page, "m", "f")
    page.shows("1 variable", ".fork-panel")
    check(page, "past moment with fork and map")
    page.key("Escape")
    page.hides(".fork-panel")
    press(page, "Escape", "Escape", "F2")
    page.until("document.activeElement.matches('.rename-field')")
    check(page, "branch that is renamed")
    page.key("Escape")
    page.type("see @", ".composer textarea")
    page.shows("round 4", ".completion")
    check(page, "names in the composer")
    page.key("Escape")
    press(page, "u")
    page.shows("Round 4 is undone", ".notice")
    check(page, "notice")


def test_axe_finds_nothing_in_a_comparison(checked: PageTab, server: Served) -> None:
    page, client = checked, server.client()
    name = page.address().split("/")[2]
    session = f"{API}/sessions/{name}"
    run(page, "x = 1", 1)
    client.post(f"{session}/branches", json={"name": "b"})
    ask(client, session, "x = 2", kind="code", branch="b")
    set_core(server, session, {"main": {"goal": "fewer"}, "b": {"goal": "more"}})
    page.value(f"location.hash = '#/c/{name}/main/b'")
    page.shows("goal", ".differences")
    press(page, "b")
    page.until("document.activeElement.matches('.ask-both textarea')")
    check(page, "comparison")
    page.button("Merge...")
    page.shows("goal", ".conflict legend")
    check(page, "merge")
    for tab in ("main", "b", "Differences"):
        page.tab.view(400)
        page.press_on(".compare-tabs .tab", tab)
        check(page, f"comparison on a phone, {tab}", 400)


def test_axe_finds_nothing_elsewhere(checked: PageTab) -> None:
    page = checked
    opened = {"Settings": "limits", "Check what works": "kernel", "Help": "Keys"}
    for command, shown in opened.items():
        page.key("k", CTRL)
        page.until("document.activeElement.matches('.palette input')")
        page.type(command)
        page.shows(command, ".palette [role=option]")
        check(page, "palette")
        page.press_on(".palette [role=option]", command)
        page.shows(shown, "dialog:not(.palette)")
        check(page, command)
        close_dialog(page)
    page.value("location.hash = '#/searches'")
    page.press_on(".search-tree .node", "Attempt 1,")
    page.shows("Attempt 1", ".attempt")
    check(page, "searches")
    press(page, "l")
    page.shows("Attempt 2", ".tree-list")
    check(page, "searches as a list")
    page.button("New")
    page.shows("Start a search", ".start-form")
    check(page, "start of a search")
    page.button("Cancel")
    page.value("location.hash = '#/'")
    page.shows("Sessions", "h1")
    check(page, "sessions")
    page.press_on(".session-row button", "Rename")
    page.until("document.activeElement.matches('.session-list input')")
    check(page, "session that is renamed")


def test_axe_finds_nothing_on_a_phone(checked: PageTab) -> None:
    page = checked
    run(page, TABLE.removeprefix("/run\n"), 1)
    for pane in ("Tree", "Chat", "Data", "Memory"):
        page.tab.view(400)
        page.press_on(".phone-bar button", pane)
        check(page, f"phone, {pane}", 400)


def test_axe_finds_nothing_in_a_saved_page_and_at_the_sign_in(
    checked: PageTab, server: Served, tmp_path: Path
) -> None:
    page = checked
    run(page, TABLE.removeprefix("/run\n"), 1)
    session = f"{API}/sessions/{page.address().split('/')[2]}"
    saved = server.client().get(f"{session}/branches/main/page")
    page.value("localStorage.removeItem('taskweaver.token')")
    page.open(f"{server.url}/")
    page.shows("Token")
    load_axe(page)
    check(page, "sign-in")
    (tmp_path / "saved.html").write_text(saved.text, "utf-8")
    page.tab.load(tmp_path / "saved.html")
    page.until("document.body.dataset.ready === 'yes'")
    load_axe(page)
    check(page, "saved page")
    page.tab.requests.clear()
