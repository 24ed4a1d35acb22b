"""The page behind a proxy that has a login and serves it below a path."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from login_proxy import PATH, LoginProxy, login_proxy
from page_tab import PageTab
from served import Served

pytestmark = pytest.mark.usefixtures("no_states")
LONG = "print('tick', flush=True)\nimport time\ntime.sleep(600)"


@pytest.fixture(scope="module")
def proxy(tab: PageTab, server: Served) -> Iterator[LoginProxy]:
    with login_proxy(server) as running:
        yield running
        tab.leave()


@pytest.fixture(autouse=True)
def _as_at_first(tab: PageTab, proxy: LoginProxy) -> Iterator[None]:
    yield
    proxy.is_logged_in = True
    proxy.passes.set()
    tab.value("localStorage.clear()")


def test_the_page_works_below_a_path_with_the_token_of_a_proxy(
    tab: PageTab, proxy: LoginProxy
) -> None:
    tab.open(proxy.address)
    tab.new_session()
    tab.ask("cell: open('chart.html', 'w').write('<h1>hello</h1>') end")
    tab.finished(1)
    tab.button("Run this figure")
    tab.until("document.querySelector('iframe')")
    tab.ask(f"/run\n{LONG}")
    tab.shows("tick", "#round-2")
    tab.button("Stop")
    tab.finished(2)
    tab.until("document.activeElement.matches('.composer textarea')")
    tab.key("Escape")
    tab.key("?")
    tab.shows("Keys", "dialog")
    assert "Sign out" not in tab.value("document.querySelector('dialog').innerText")
    tab.key("Escape")
    assert proxy.sent_away == []
    proxy.is_logged_in = False
    tab.ask("say: never end")
    tab.shows("The login in front of this server has ended: load the page again.")
    tab.leave()
    assert [path for path in proxy.paths if not path.startswith(PATH)] == []
    assert [path for path in proxy.paths if "/agent/v1/links/" in path]


def test_a_token_is_kept_for_the_path_it_was_given_at(tab: PageTab, proxy: LoginProxy) -> None:
    tab.open(f"{proxy.address}#token=one")
    names = "Object.keys(localStorage).filter((name) => name.includes('token'))"
    assert tab.value(names) == [f"taskweaver.token{PATH}"]


def test_a_connection_that_is_quiet_for_too_long_is_lost(tab: PageTab, proxy: LoginProxy) -> None:
    tab.open(proxy.address)
    tab.value(
        "(() => { const later = setTimeout; window.setTimeout = (act, ms) =>"
        " later(act, ms === 40000 ? 1000 : ms); })()"
    )
    proxy.passes.clear()
    tab.new_session()
    tab.shows("Connection lost.")
    tab.ask("say: here again end")
    proxy.passes.set()
    tab.finished(1)
    tab.shows("here again", "#round-1 .answer")
