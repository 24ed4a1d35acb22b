"""Faults of accessibility that axe finds on the screens, dialogs and panels of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agents import API, ask
from page_axe import check, load_axe
from page_tab import CTRL, PageTab
from served import Served
from sizes import some
from test_agent_moments import set_core
from test_page_parts import TABLE, run

HAS_ALL = len(some(("some", "all"), 1)) == 2
"""Whether axe looks at all settings, as with `make long`, or at those that a word finds."""
SETTING = "[aria-label='limits.round_tokens']"


@pytest.fixture
def checked(page: PageTab) -> Iterator[PageTab]:
    """Give a page with axe in it."""
    if page.value("typeof axe") == "undefined":
        load_axe(page)
    yield page
    page.tab.view(1280)


def press(page: PageTab, *keys: str) -> None:
    """Press keys outside of fields."""
    page.value("document.activeElement.blur()")
    for key in keys:
        page.key(key)


def close_dialog(page: PageTab) -> None:
    press(page, "Escape")  # in a field for a search it would empty that at first
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
        check(page, f"inspector, {tab}", ".data-pane")
    page.press_on(".variable", "df")
    page.button("Show the table")
    page.shows("3 rows, 2 columns", "dialog")
    check(page, "table", "dialog")
    close_dialog(page)
    page.press_on(".conversation .open-picture")
    page.until("document.querySelector('dialog img').naturalWidth === 2000")
    check(page, "picture", "dialog")
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
    check(page, "branch that is renamed", ".tree-pane")
    page.key("Escape")
    page.type("see @", ".composer textarea")
    page.shows("round 4", ".completion")
    check(page, "names in the composer", ".composer")
    page.key("Escape")
    press(page, "u")
    page.shows("Round 4 is undone", ".notice")
    check(page, "notice", ".notice")


@pytest.mark.long
def test_axe_finds_nothing_in_a_comparison_and_a_merge(checked: PageTab, server: Served) -> None:
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
    check(page, "merge", ".differences")
    for tab, part in {"main": "", "b": ".side", "Differences": ".differences"}.items():
        page.tab.view(400)
        page.press_on(".compare-tabs .tab", tab)
        check(page, f"comparison on a phone, {tab}", part, width=400)


def test_axe_finds_nothing_elsewhere(checked: PageTab) -> None:
    page = checked
    for command, shown in {"Settings": "limits", "Help": "Keys"}.items():
        page.key("k", CTRL)
        page.until("document.activeElement.matches('.palette input')")
        page.type(command)
        page.shows(command, ".palette [role=option]")
        if command == "Settings":
            check(page, "palette", ".palette")
        page.press_on(".palette [role=option]", command)
        page.shows(shown, "dialog:not(.palette)")
        if command == "Settings" and not HAS_ALL:
            page.type("answers.", "dialog.project input[type=search]")
            page.hides(f"dialog.project {SETTING}")
        check(page, command, "dialog:not(.palette)")
        close_dialog(page)
    page.value("location.hash = '#/searches'")
    page.press_on(".search-tree .node", "Attempt 1,")
    page.shows("Attempt 1", ".attempt")
    check(page, "searches")
    press(page, "l")
    page.shows("Attempt 2", ".tree-list")
    check(page, "searches as a list", ".tree-list")
    page.button("New")
    page.shows("Start a search", ".start-form")
    check(page, "start of a search", ".start-form")
    page.button("Cancel")
    page.value("location.hash = '#/'")
    page.shows("Sessions", "h1")
    check(page, "sessions")
    page.press_on(".session-row button", "Rename")
    page.until("document.activeElement.matches('.session-list input')")
    check(page, "session that is renamed", ".session-list")


def test_the_page_fits_a_phone_and_axe_finds_nothing(checked: PageTab) -> None:
    page = checked
    run(page, TABLE.removeprefix("/run\n"), 1)
    panes = {"Chat": "", "Data": ".data-pane", "Memory": ".data-pane", "Tree": ".tree-pane"}
    for pane, part in panes.items():
        page.tab.view(400)
        page.press_on(".phone-bar button", pane)
        check(page, f"phone, {pane}", part, width=400)
        assert page.value("document.documentElement.scrollWidth <= innerWidth")
    page.press_on(".tree-pane .pane-head button", "Map")
    page.until("document.querySelector('.map').offsetParent")
    page.shows("round 1", ".conversation")
    page.press_on(".map button", "Close")


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
