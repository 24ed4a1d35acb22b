"""A page in a real browser: what is seen of it, what can be done on it, and what goes wrong."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from browser import find_chromium, find_quick_browser
from patience import PATIENCE_S
from sizes import some
from web_site import Site, traces

from taskweaver.ces.process.homes import sweep_folders
from taskweaver.ext_role.web_explorer.browser import (
    BrowserError,
    DevTools,
    DevToolsEvent,
    NoBrowser,
    PageError,
    find_browser,
)
from taskweaver.ext_role.web_explorer.page import BrowserPage
from taskweaver.ext_role.web_explorer.tabs import MAX_TABS, Addresses

pytestmark = pytest.mark.usefixtures("nothing_left_by_file")  # browsers and their tabs are shared


@contextmanager
def new_browser(program: Path | None = None, **keys: Any) -> Iterator[BrowserPage]:
    """Give a browser, the quickest one unless it is named; nothing of it may be left."""
    made = BrowserPage(program or find_quick_browser(), **keys)
    try:
        yield made
    finally:
        made.close()
    left = traces(made.devtools.process.profile.name)
    assert not left, f"left behind by the browser: {left}"


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserPage]:
    """A patient browser, started where a key is in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM_API_KEY", "secret-of-mine")
        with new_browser(timeout_s=60) as made:
            yield made


@pytest.fixture(scope="module")
def hasty_browser() -> Iterator[BrowserPage]:
    with new_browser(timeout_s=4, allowed_hosts=["127.0.0.1"]) as made:
        yield made


def forget_all(page: BrowserPage) -> None:
    """Close all tabs; what a test sees next is as in a browser that just started."""
    while page._tabs.current is not None:
        page._tabs.forget(page._tabs.current)
    page._tabs.take_notes()


def leave_one(page: BrowserPage) -> None:
    """Close all tabs but one that works: what is opened next takes its place in its process."""
    tab = page._tabs.current
    if page._tabs.count > 1 or (tab is not None and tab.is_dead):
        forget_all(page)
    page._tabs.take_notes()


@pytest.fixture
def page(browser: BrowserPage) -> Iterator[BrowserPage]:
    """The browser the tests here share; it may show the page of the test before."""
    yield browser
    leave_one(browser)


@pytest.fixture
def empty(browser: BrowserPage) -> Iterator[BrowserPage]:
    """The browser the tests here share, with no page open."""
    forget_all(browser)
    yield browser
    leave_one(browser)


@pytest.fixture(scope="module")
def guarded() -> Iterator[BrowserPage]:
    """A patient Chromium for one host only."""
    with new_browser(find_chromium(), timeout_s=60, allowed_hosts=["127.0.0.1"]) as made:
        yield made


@pytest.fixture
def hasty(hasty_browser: BrowserPage) -> Iterator[BrowserPage]:
    """A browser with little patience, for one host only."""
    yield hasty_browser
    leave_one(hasty_browser)


def number(page: BrowserPage, label: str) -> int:
    labels = [element.label for element in page.observe().elements]
    return labels.index(label) + 1


def test_a_page_is_told_as_a_reader_sees_it(empty: BrowserPage, shop: Site) -> None:
    assert empty.observe() is None
    empty.open(shop.url)
    found = empty.observe()
    assert (found.title, found.url) == ("The shop", f"{shop.url}/")
    assert "Tea shop\nFind Search\n" in found.text
    assert "made by a script" in found.text
    assert "Tea | Price\nOolong | 12.50" in found.text
    assert "hidden words" not in found.text
    labels = [element.label for element in found.elements]
    assert "Unseen" not in labels
    assert labels[:3] == ["Find", "Search", "About us"]
    text = found.to_text()
    assert '[1] input text "Find", holds: old' in text
    assert '"About us", leads to: /about' in text
    assert "options: Small; Large" in text
    assert '"Off", disabled' in text


def test_names_and_styles_that_mislead_scripts_do_not_mislead_the_reader(
    page: BrowserPage, shop: Site
) -> None:
    page.open(f"{shop.url}/booking")
    found = page.observe()
    assert found.title == "Booking"
    for text in ("no box of its own Book", "but this", "one\ntwo", "a b", "$12.99"):
        assert text in found.text
    assert "unseen" not in found.text
    page.type(number(page, "Children"), "2")
    assert page.observe().elements[0].value == "2"
    page.click(number(page, "Book"))


def test_fields_of_all_kinds_are_set_and_sent_by_key_or_by_button(
    page: BrowserPage, shop: Site
) -> None:
    page.open(shop.url)
    page.type(number(page, "Find"), "green tea", submit=True)
    assert "Found for green tea" in page.observe().text
    page.back()
    page.type(number(page, "Find"), "träd ü 茶")
    page.click(number(page, "Search"))
    assert "Found for träd ü 茶" in page.observe().text
    page.open(shop.url)
    page.select(number(page, "Size"), "large")
    page.type(number(page, "Day"), "2024-02-29")
    page.type(number(page, "Secret"), "letmein")
    page.type(number(page, "Find"), "")
    values = {element.label: element.value for element in page.observe().elements}
    assert (values["Size"], values["Day"]) == ("Large", "2024-02-29")
    assert values["Secret"] == "(hidden)"
    assert not values["Find"]


def test_what_cannot_be_done_is_told_with_its_reason(empty: BrowserPage, shop: Site) -> None:
    refused: dict[str, Callable[[], None]] = {
        "no element 99": lambda: empty.click(99),
        "is disabled": lambda: empty.click(number(empty, "Off")),
        "takes no text": lambda: empty.type(number(empty, "Search"), "x"),
        "does not take soon": lambda: empty.type(number(empty, "Day"), "soon"),
        "it has: Small; Large": lambda: empty.select(number(empty, "Size"), "Huge"),
        "no list": lambda: empty.select(number(empty, "Find"), "x"),
        "top of the page": lambda: empty.scroll("up"),
        "no page to go back to": empty.back,
    }
    empty.open(shop.url)
    before = empty.observe()
    for reason, work in refused.items():
        with pytest.raises(PageError, match=reason):
            work()
        assert empty.observe() == before, reason


def test_numbers_of_a_page_that_is_gone_are_refused(empty: BrowserPage, shop: Site) -> None:
    with pytest.raises(PageError, match="no page is open"):
        empty.click(1)
    empty.open(shop.url)
    with pytest.raises(PageError, match="no element 1 in the list"):
        empty.click(1)
    empty.observe()
    empty.open(f"{shop.url}/about")
    with pytest.raises(PageError, match="no element 1 in the list"):
        empty.click(1)


def test_a_cover_is_named_and_elements_inside_web_components_work(
    page: BrowserPage, shop: Site
) -> None:
    page.open(f"{shop.url}/covered")
    with pytest.raises(PageError, match=r"covered by something else .We use cookies"):
        page.click(number(page, "Below"))
    page.open(f"{shop.url}/shadow")
    assert "inside" in page.observe().text
    page.click(number(page, "Press"))
    assert page.observe().title == "pressed"


def test_dialogs_are_dismissed_and_downloads_denied_and_both_told(
    page: BrowserPage, shop: Site
) -> None:
    page.open(shop.url)
    page.click(number(page, "Ring"))
    assert "'mind the gap'" in page.observe().notes[0]
    page.click(number(page, "Ask"))
    found = page.observe()
    assert found.title == "no"
    assert "(confirm)" in found.notes[0]
    assert not page.observe().notes
    page.open(shop.url)
    page.click(number(page, "Download"))
    found = page.observe()
    assert "tea.bin" in found.notes[0]
    assert found.title == "The shop"
    assert not [path for path in page.devtools.process.profile.rglob("*") if "tea" in path.name]


def test_a_new_tab_is_followed_and_going_back_closes_it(page: BrowserPage, shop: Site) -> None:
    page.open(shop.url)
    page.click(number(page, "In a new tab"))
    found = page.observe()
    assert found.title == "About"
    assert "new tab" in found.notes[0]
    page.back()
    assert page.observe().title == "The shop"
    page.open(f"{shop.url}/self-closing")  # leaves the one before
    page.click(number(page, "Go"))
    assert page.observe().title == "Opener"


def test_a_long_page_is_bounded_and_scrolling_shows_what_is_further_down(
    page: BrowserPage, shop: Site
) -> None:
    page.open(shop.url)
    assert page.observe().screens_above == 0
    page.scroll("down")
    page.scroll("down")
    found = page.observe()
    assert found.screens_above > 1
    assert "Tea shop" not in found.text
    assert "the end" in found.text
    page.scroll("up")
    assert page.observe().screens_above < found.screens_above
    page.open(f"{shop.url}/long")
    found = page.observe()
    assert found.is_cut
    assert found.elements_left_out > 1000
    assert len(found.to_text()) < 20_000
    assert "scroll to see them" in found.to_text()


def test_a_page_that_breaks_its_own_scripts_is_read_all_the_same(
    page: BrowserPage, shop: Site
) -> None:
    page.open(f"{shop.url}/hostile")
    for _ in range(8):
        found = page.observe()
        if found.title == "still read":
            break
        page.back()
    assert found.title == "still read"
    assert "fine" in found.text
    page.click(1)
    assert page.observe().title == "About"


def test_tabs_beyond_the_most_get_no_page(empty: BrowserPage, shop: Site) -> None:
    if "shell" not in find_quick_browser().name:
        pytest.skip("Chromium lets a page open no tab by itself")
    empty.open(f"{shop.url}/opens")
    assert any("opened a further tab; it was closed" in note for note in empty.observe().notes)
    empty.open(f"{shop.url}/about")
    opened = [path for path in shop.asked if path.startswith("/opened")]
    assert len(opened) < MAX_TABS


def test_a_page_that_never_answers_or_moves_on_forever_is_given_up(
    hasty: BrowserPage, shop: Site
) -> None:
    with contextlib.suppress(PageError):
        hasty.open(f"{shop.url}/hops")
        hasty.observe()
    hasty.open(f"{shop.url}/about")
    assert hasty.observe().title == "About"
    with pytest.raises(PageError, match="did not answer within 4 s"):
        hasty.open(f"{shop.url}/never")
    hasty.open(f"{shop.url}/half")
    found = hasty.observe()
    assert "the first half" in found.text
    assert "still loading after 4 s" in found.notes[0]


@pytest.mark.parametrize("path", some(["/nagging", "/blocked", "/busy", "/alerts"], 1))
def test_a_page_whose_scripts_never_return_is_given_up_and_another_opens(
    hasty: BrowserPage, shop: Site, path: str
) -> None:
    with pytest.raises(PageError, match="does not answer"):
        hasty.open(f"{shop.url}{path}")
    with pytest.raises(PageError, match="open another page"):
        hasty.observe()
    hasty.open(f"{shop.url}/about")
    assert hasty.observe().title == "About"


def test_a_page_that_crashes_is_told_and_another_opens(page: BrowserPage, shop: Site) -> None:
    page.open(shop.url)
    tab = page._tabs.current
    page.devtools.send("Page.crash", session=tab.session)
    assert page.devtools.wait(lambda: tab.is_dead, within_s=60)
    with pytest.raises(PageError, match="crashed"):
        page.observe()
    page.open(f"{shop.url}/about")
    found = page.observe()
    assert found.title == "About"
    assert "The page crashed." in found.notes


def test_addresses_that_may_not_be_opened_are_refused() -> None:
    """Hosts are allowed with all below them."""
    refused = {
        "file:///etc/passwd": "only http and https",
        "chrome://version": "only http and https",
        "javascript:alert(1)": "is no address",
        "": "names no host",
        "http://[": "is no address",
        "localhost:80/about": "localhost is not allowed",
        "http://127.0.0.1.evil.example/": "is not allowed",
        "http://127.0.0.1@evil.example/": "evil.example is not allowed",
    }
    for address, reason in refused.items():
        with pytest.raises(PageError, match=reason):
            Addresses(["127.0.0.1"]).checked(address)
    some = Addresses(["Example.com"])
    assert some.checked("www.example.com/a") == "https://www.example.com/a"
    assert not some.problem("https://example.com./")
    assert some.problem("https://badexample.com/")
    assert Addresses([]).checked("x.org") == "https://x.org"


def test_redirects_and_frames_leave_the_allowed_hosts_neither(
    guarded: BrowserPage, shop: Site
) -> None:
    guarded.open(shop.url)
    guarded.click(number(guarded, "Leave"))
    found = guarded.observe()
    assert any("localhost is not allowed" in note for note in found.notes)
    with pytest.raises(PageError, match="localhost is not allowed"):
        guarded.open(f"{shop.url}/elsewhere")
    guarded.open(f"{shop.url}/frame")
    assert "around" in guarded.observe().text
    assert "/about?elsewhere" not in shop.asked
    assert "/about?framed" not in shop.asked


def test_frames_are_loaded_where_all_hosts_are_allowed_and_a_closed_port_is_told(
    page: BrowserPage, shop: Site
) -> None:
    page.open(f"{shop.url}/frame")
    assert "/about?framed" in shop.asked
    with pytest.raises(PageError, match="ERR_"):
        page.open("http://127.0.0.1:1025/")


def test_a_browser_that_is_killed_is_an_error_and_nothing_is_left(
    guarded: BrowserPage, shop: Site
) -> None:
    """It stands after the other test of this browser, which is ended."""
    guarded.open(shop.url)
    os.kill(guarded.devtools.process.pid, signal.SIGKILL)
    with pytest.raises(BrowserError, match="SIGKILL"):
        guarded.open(f"{shop.url}/about")
    guarded.close()
    with pytest.raises(BrowserError, match="ended"):
        guarded.observe()
    left = traces(guarded.devtools.process.profile.name)
    assert not left, f"left behind by the browser: {left}"


def test_a_browser_does_not_outlive_its_owner() -> None:
    owner = (
        "import sys; from pathlib import Path\n"
        "from taskweaver.ext_role.web_explorer.page import BrowserPage\n"
        "page = BrowserPage(Path(sys.argv[1]))\n"
        "browser = page.devtools.process\n"
        "print(browser.pid, browser.profile, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", owner, str(find_chromium())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        number_, profile = process.stdout.readline().split()
        started = psutil.Process(int(number_))
        process.kill()
    gone, alive = psutil.wait_procs([started], timeout=PATIENCE_S)
    assert (len(gone), alive) == (1, [])
    sweep_folders()
    assert not Path(profile).exists()


def script(folder: Path, text: str) -> Path:
    file = folder / "browser"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_a_page_that_goes_with_the_closed_browser_is_not_the_cause(tmp_path: Path) -> None:
    first, last = (f'{{"method": "{name}"}}\\0' for name in ("first", "detached"))
    browser = script(tmp_path, f"printf '{first}' >&4; cat <&3 >/dev/null; printf '{last}' >&4")
    seen: list[str] = []

    def handle(event: DevToolsEvent) -> None:
        seen.append(event.method)
        if event.method == "first":
            other = threading.Thread(target=devtools.close)
            other.start()
            other.join()

    devtools = DevTools(browser, handle)
    with pytest.raises(BrowserError, match="closed"):
        devtools.call("Page.navigate", within_s=60, is_lost=lambda: "detached" in seen)


@pytest.mark.parametrize(
    ("text", "reason", "timeout_s"),
    [
        ("echo no display >&2; exit 7", "exit status 7: no display", 60),
        ("printf 'nonsense\\0' >&4; exec sleep 600", "connection broke", 60),
        ("exec sleep 600", "did not answer", 1),
    ],
)
def test_a_program_that_is_no_browser_is_told_and_ended(
    tmp_path: Path, text: str, reason: str, timeout_s: float
) -> None:
    with pytest.raises(BrowserError, match=reason):
        BrowserPage(script(tmp_path, text), timeout_s=timeout_s)


def test_no_browser_is_told_with_what_to_do_and_one_of_any_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoBrowser, match=r"web_explorer\.browser_path"):
        find_browser(str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoBrowser, match="apt-get install chromium"):
        find_browser()
    assert find_browser(str(script(tmp_path, "exit"))) == tmp_path / "browser"
    shell = (tmp_path / "browser").rename(tmp_path / "chromium-headless-shell")
    assert find_browser() == shell


def test_the_browser_is_given_no_keys(page: BrowserPage) -> None:
    environment = Path(f"/proc/{page.devtools.process.pid}/environ").read_bytes()
    assert b"secret-of-mine" not in environment
    assert b"HOME=" in environment


def test_closing_from_another_thread_ends_a_wait(browser: BrowserPage, shop: Site) -> None:
    """It stands last: the shared browser is ended."""
    other = shop.when_reached(browser.close)
    with pytest.raises(BrowserError, match="closed"):
        browser.open(f"{shop.url}/never")
    other.join()
