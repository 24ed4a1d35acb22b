"""The outline, the list of sessions and the merge of the page, beside a second client."""

from __future__ import annotations

import json

import pytest
from agents import API, ask
from page_tab import PageTab
from served import Served
from sizes import some
from test_agent_moments import set_core
from test_agent_stops import await_output
from test_page_parts import run

pytestmark = pytest.mark.usefixtures("no_states")
INSIDE = (
    "(([button, pane]) => button.bottom <= pane.bottom && button.top >= pane.top)("
    "['.merge .primary', '.differences .tab-panel']"
    ".map((one) => document.querySelector(one).getBoundingClientRect()))"
)
"""The button that merges is in view."""
LATE_WANT = """
const { addEventListener: listen, postMessage: post } = BroadcastChannel.prototype;
const late = [];
BroadcastChannel.prototype.addEventListener = function (kind, heard) {
  listen.call(this, kind, (event) => {
    if (event.data.kind === 'want') late.push(() => heard(event)); else heard(event);
  });
};
BroadcastChannel.prototype.postMessage = function (message) {
  post.call(this, message);
  if (message.kind === 'event' && message.data.round_id)
    for (const one of late.splice(0)) setTimeout(one);
};
"""
"""The tab that reads the stream hears what another one wants only after its next event."""


def session_of(page: PageTab) -> str:
    return f"{API}/sessions/{page.address().split('/')[2]}"


def test_a_branch_whose_cell_failed_is_marked(page: PageTab) -> None:
    run(page, "none_such", 1)
    page.until("document.querySelector('.tree-row .failed-sign')")
    page.shows("failed", ".tree-row.branch")
    page.shows("1 failed", ".topbar .state-button")
    assert page.value("document.querySelectorAll('.fork-here').length") == 1
    page.press("m")
    page.until("document.querySelector('.map-state.failed text')?.textContent === 'failed'")
    page.key("m")


def test_a_folded_branch_and_the_list_say_what_failed(page: PageTab, server: Served) -> None:
    client, session = server.client(), session_of(page)
    run(page, "x = 1", 1)
    for name, code in (("good", "x = 2"), ("bad", "1 / 0")):
        assert client.post(f"{session}/branches", json={"name": name}).status_code == 201
        ask(client, session, code, kind="code", branch=name)
    assert client.post(f"{session}/branches", json={"name": "new"}).status_code == 201
    page.reopen()
    page.until("document.querySelector('[data-row=\"b:new\"] circle.hollow')")
    page.until("document.querySelector('[data-row=\"b:good\"] rect')")
    assert page.value("document.querySelector('[data-row=\"b:new\"] rect')") is None
    for name, tags in (("good", 0), ("bad", 1)):
        row = f"document.querySelector('[data-row=\"b:{name}\"]')"
        page.until(f"{row}?.ariaExpanded === 'false'")
        assert page.value(f"{row}.querySelectorAll('.state.failed').length") == tags
    loaded = [one for one in page.tab.requests if "/branches/bad/" in one]
    assert loaded == []
    page.press_on(".topbar .state-button", "1 failed")
    page.until("location.hash.endsWith('/bad')")
    page.value("location.hash = '#/'")
    address = json.dumps(f"#/s/{session.rpartition('/')[2]}")
    row = f"document.querySelector(`.session-row:has([href^=${{CSS.escape({address})}}])`)"
    page.until(f"{row}?.innerText.includes('4 branches')")
    assert page.value(f"{row}.querySelector('.state').innerText") == "failed"
    code = "import time\nfor n in range(600):\n    print(n, flush=True)\n    time.sleep(0.1)"
    body = {"text": code, "kind": "code", "message_id": "long"}
    assert client.post(f"{session}/messages", json=body).status_code == 202
    page.until(f"{row}.querySelector('.state.running')")
    await_output(client, session, "0", "long")  # a cell that has not begun does not fail
    client.post(f"{session}/stop", json={})
    page.until(f"{row}.querySelector('.state.stopped')")


def test_a_branch_is_renamed_by_key_by_menu_and_by_another_client(
    page: PageTab, server: Served
) -> None:
    client, session = server.client(), session_of(page)
    run(page, "x = 1", 1)
    assert client.post(f"{session}/branches", json={"name": "try-1"}).status_code == 201
    page.until("document.querySelector('[data-row=\"b:try-1\"]')")
    page.value("document.querySelector('[data-row=\"b:try-1\"]').focus()")
    page.key("F2")
    page.until("document.activeElement.matches('.rename-field')")
    page.type("main")
    page.key("Enter")
    page.shows("'main' is taken", ".notice")
    page.until("document.activeElement.matches('.rename-field')")
    page.value("document.activeElement.select()")
    page.type("holiday-check")
    page.key("Enter")
    page.shows("holiday-check", ".branch-name")
    page.until("document.activeElement.dataset.row === 'b:try-1'")
    page.press_on("[data-row='b:main']")
    page.value("document.querySelector('[data-row=\"b:main\"]').focus()")
    page.press_on("[data-row='b:main'] .rename")
    page.until("document.activeElement.matches('.rename-field')")
    page.type("given up")
    page.key("Escape")
    page.hides(".rename-field")
    page.until("document.activeElement.dataset.row === 'b:main'")
    page.key("F2")  # left by a click, the focus is where that was
    page.until("document.activeElement.matches('.rename-field')")
    page.press_on(".composer textarea")
    page.hides(".rename-field")
    page.is_drawn()
    assert page.value("document.activeElement.matches('.composer textarea')")
    client.patch(f"{session}/branches/main", json={"title": "base"})
    page.shows("base", ".way")
    page.value("location.hash = location.hash.replace('/main', '/try-1')")
    page.shows("holiday-check", ".composer option:checked")
    page.reopen()
    page.shows("holiday-check", ".way")


@pytest.mark.parametrize("choice", some(["theirs", "ours"], 1))
def test_a_conflict_of_a_merge_is_listed_and_chosen(
    page: PageTab, server: Served, choice: str
) -> None:
    client, session = server.client(), session_of(page)
    run(page, "x = 1", 1)
    assert client.post(f"{session}/branches", json={"name": "b"}).status_code == 201
    ask(client, session, "x = 2", kind="code", branch="b")
    set_core(server, session, {"main": {"goal": "fewer"}, "b": {"goal": "more", "unit": "EUR"}})
    page.value(f"location.hash = '#/c/{session.rpartition('/')[2]}/main/b'")
    page.shows("goal", ".differences")
    page.button("Merge...")
    page.shows("1 key and 0 records are taken over", ".merge")
    page.shows("goal", ".conflict legend")
    page.shows("main: fewer", ".conflict")
    page.shows("b: more", ".conflict")
    assert page.value("document.querySelectorAll('.conflict input:checked').length") == 0
    assert page.value("document.querySelector('.merge .primary').disabled") is True
    page.shows("Merge: choose 1 more", ".merge .primary")
    assert page.value("getComputedStyle(document.querySelector('.merge .primary')).opacity") == "1"
    page.until(INSIDE)
    page.press_on(f".conflict input[value={choice}]")
    page.press_on(".merge .primary", "Merge")
    page.shows("Merged: ", ".notice")
    core = client.get(f"{session}/memory").json()["core"]
    assert core["goal"] == {"ours": "fewer", "theirs": "more"}[choice]
    assert core["unit"] == "EUR"
    assert client.get(f"{session}/memory", params={"branch": "b"}).json()["core"]["goal"] == "more"


def test_a_second_tab_has_the_code_and_output_of_a_round_that_prints(
    page: PageTab, server: Served
) -> None:
    script = page.tab.call("Page.addScriptToEvaluateOnNewDocument", source=LATE_WANT)["identifier"]
    try:
        page.open(page.value("location.href"))
        page.ask(
            "/run\nimport time\nfor n in range(600):\n    print('tick', n)\n    time.sleep(0.1)"
        )
        page.shows("tick 3", ".output.live")
        opened = "window.second = window.open(location.href)"
        page.tab.call("Runtime.evaluate", expression=opened, userGesture=True)
        round_one = "window.second.document.querySelector('#round-1')"
        page.until(f"{round_one}?.querySelector('.output.live')?.textContent.includes('tick')")
        page.until(f"{round_one}.querySelector('.cell').textContent.includes('4 lines')")
        server.client().post(f"{session_of(page)}/stop", json={})
        page.until("window.second.document.querySelector('#round-1.over')")
    finally:
        page.value("window.second?.close()")
        page.tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
