"""The page by its keys alone, and faults of accessibility that axe finds on all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents import API
from page_axe import check, load_axe
from page_tab import CTRL, PageTab
from served import Served
from sizes import some
from test_page_parts import TABLE, run

HAS_ALL = len(some(("some", "all"), 1)) == 2
"""Whether axe looks at all settings, as with `make long`, or at those that a word finds."""
MOST_STEPS = 120
"""Most presses of Tab until an element has the focus."""
SETTING = "[aria-label='limits.round_tokens']"


@pytest.fixture
def checked(page: PageTab) -> Iterator[PageTab]:
    if page.value("typeof axe") == "undefined":
        load_axe(page)
    yield page
    page.tab.view(1280)


def step_to(page: PageTab, text: str) -> None:
    """Press Tab until an element whose name begins with a text has the focus."""
    said = "((one) => one.ariaLabel ?? one.innerText ?? '')(document.activeElement)"
    for _ in range(MOST_STEPS):
        page.key("Tab")
        if page.value(f"{said}.startsWith({json.dumps(text)})"):
            return
    raise AssertionError(f"{text} is not reached; the focus is on {page.value(said)}")


def test_questions_and_panes_are_reached_without_a_mouse(page: PageTab) -> None:
    page.press("/")
    page.until("document.activeElement.matches('.composer textarea')")
    page.type("say: by keys end")
    page.key("Enter")
    page.finished(1)
    page.type("/run\nimport time\nfor n in range(600):\n    print('tick', n)\n    time.sleep(0.1)")
    page.key("Enter")
    page.shows("tick 1", ".output.live")
    page.key("Escape")
    page.key("Escape")
    page.finished(2)
    page.key("Escape")
    for key, selector in (("t", ".tree-pane"), ("d", ".data-pane")):
        page.press(key)
        page.hides(selector)
        page.key(key)
        page.until(f"document.querySelector('{selector}').offsetParent")
    page.key("m")
    page.shows("Map", ".map")
    page.key("Escape")
    page.hides(".map")
    page.key("?")
    page.shows("fork at the round", "dialog")
    page.key("Escape")
    page.hides("dialog")


def test_branches_and_attempts_are_reached_without_a_mouse(page: PageTab) -> None:
    run(page, "x = 1", 1)
    run(page, "x = 2", 2)
    page.key("Escape")
    page.press("k")
    page.shows("main, round 1, as it was.")
    page.key("f")
    page.until("document.activeElement.matches('.fork-panel input')")
    page.type("by-keys")
    page.key("Enter")
    page.shows("by-keys", ".way")
    page.press("c")
    page.shows("is common to both")
    step_to(page, "Merge...")
    page.key("Enter")
    page.shows("There is nothing to take over", ".merge")
    page.key("k", CTRL)
    page.until("document.activeElement.matches('dialog input')")
    page.type("searches")
    page.key("Enter")
    page.until("document.querySelector('.search-tree .node')")
    step_to(page, "Attempt 1,")
    page.key("Enter")
    page.shows("Attempt 1", ".attempt")


def test_axe_finds_nothing_in_a_session(checked: PageTab) -> None:
    page = checked
    check(page, "empty session")
    run(page, TABLE.removeprefix("/run\n"), 1)
    run(page, "from PIL import Image\nImage.new('L', (2000, 900), 90).save('grey.png')", 2)
    run(page, "print('\\n'.join(map(str, range(200))))\nnone_such", 3)
    page.ask("say: The **total** is `42`.\\n\\n```python\\nx = 1\\n``` end")
    page.finished(4)
    tabs = {
        "Files": "grey.png",
        "Figures": "grey.png",
        "Memory": "Remember",
        "Why": "",
        "Data": "df",
    }
    for tab, shown in tabs.items():
        page.press_on(".data-pane .tab", tab)
        page.shows(shown, ".tab-panel")
        check(page, f"inspector, {tab}", ".data-pane")
    page.press_on(".variable", "df")
    page.button("Show the table")
    page.shows("3 rows, 2 columns", "dialog")
    check(page, "table", "dialog")
    page.press("Escape")
    page.hides("dialog")
    page.press_on(".conversation .open-picture")
    page.until("document.querySelector('dialog img').naturalWidth === 2000")
    check(page, "picture", "dialog")
    page.press("Escape")
    page.hides("dialog")
    page.press("k")
    page.shows("as it was", ".moment-bar")
    page.press("m", "f")
    page.shows("1 variable", ".fork-panel")
    check(page, "past moment with fork and map")
    page.key("Escape")
    page.hides(".fork-panel")
    page.press("Escape", "Escape", "F2")
    page.until("document.activeElement.matches('.rename-field')")
    check(page, "branch that is renamed", ".tree-pane")
    page.key("Escape")
    page.type("see @", ".composer textarea")
    page.shows("round 4", ".completion")
    check(page, "names in the composer", ".composer")
    page.key("Escape")
    page.press("u")
    page.shows("without round 4", ".notice")
    check(page, "notice", ".notice")


def test_axe_finds_nothing_elsewhere(checked: PageTab) -> None:
    page = checked
    for command, shown in {"Settings": "Limits", "Help": "Keys"}.items():
        page.look_for(command)
        if command == "Settings":
            check(page, "palette", ".palette")
        page.press_on(".palette [role=option]", command)
        page.shows(shown, "dialog:not(.palette)")
        if command == "Settings" and not HAS_ALL:
            page.type("answers.", "dialog.project input[type=search]")
            page.hides(f"dialog.project {SETTING}")
        check(page, command, "dialog:not(.palette)")
        page.press("Escape")  # in a field for a search it would empty that at first
        page.hides("dialog")
    page.value("location.hash = '#/searches'")
    page.press_on(".search-tree .node", "Attempt 1,")
    page.shows("Attempt 1", ".attempt")
    check(page, "searches")
    page.press("l")
    page.shows("Attempt 2", ".tree-list")
    check(page, "searches as a list", ".tree-list")
    page.button("New")
    page.shows("What should get better?", ".start-form")
    page.press_on(".idea-cards button", "Start from my code")
    check(page, "start of a search", ".start-form")
    page.button("Cancel")
    page.value("location.hash = '#/'")
    page.shows("What do you want to know?", "h1")
    page.until("document.querySelector('.session-row')")
    check(page, "start")
    page.press_on(".session-row .menu button")
    page.press_on("[role=menuitem]", "Rename")
    page.until("document.activeElement.matches('.session-list input')")
    check(page, "session that is renamed", ".session-list")


def test_the_page_fits_a_phone_and_axe_finds_nothing(checked: PageTab, server: Served) -> None:
    page = checked
    run(page, TABLE.removeprefix("/run\n"), 1)
    session = f"{API}/sessions/{page.address().split('/')[2]}"
    server.client().post(f"{session}/branches", json={"name": "second"})
    page.shows("second", ".tree-row.branch")
    panes = {"Chat": "", "Data": ".data-pane", "Branches": ".tree-pane"}
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
