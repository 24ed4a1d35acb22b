"""The page as a person uses it, in a real browser."""

from __future__ import annotations

from markdown_payloads import PAYLOADS
from page_axe import check, load_axe
from page_server import DirectedModel, start_address
from page_tab import ALT, SHIFT, PageTab, drop_file
from served import Served

TABLE = "/run\nimport pandas as pd\ndf = pd.DataFrame({'a': [3, 1, 2], 'b': ['x', 'y', 'z']})\ndf"


def run(page: PageTab, code: str, number: int) -> None:
    page.ask(f"/run\n{code}")
    page.finished(number)


def test_the_token_leaves_address_and_history(page: PageTab, server: Served) -> None:
    token = server.token.text
    page.open(start_address(server))
    assert page.value("localStorage.getItem('taskweaver.token')") == token
    assert token not in page.value("location.href")
    assert not [one for one in page.tab.requests if token in one and "#token" not in one]
    page.value("localStorage.removeItem('taskweaver.token')")
    page.open(f"{server.url}/")
    page.shows("Token")
    page.type("wrong", "input[name=token]")
    page.key("Enter")
    page.shows("not valid any more")
    page.type(token, "input[name=token]")
    page.key("Enter")
    page.shows("What do you want to know?")


def test_an_answer_has_its_plan_and_its_text(page: PageTab) -> None:
    page.ask("say: The total is **42** in `df`. end")
    page.finished(1)
    page.shows("The total is 42", ".answer")
    assert page.value("document.querySelector('.answer strong').textContent") == "42"
    assert page.value("document.querySelectorAll('.plan .step.done').length") == 3
    assert page.value("document.querySelector('.tree-row.here .number').textContent") == "1"
    assert "say: The total" in page.value("document.title")


def test_output_is_watched_and_the_answer_stopped(page: PageTab) -> None:
    page.ask("/run\nimport time\nfor n in range(600):\n    print('tick', n)\n    time.sleep(0.1)")
    page.shows("tick 1", ".output.live")
    page.shows("1 running", ".topbar")
    page.ask("say: later end")
    page.shows("Waits for its turn")
    page.button("Withdraw")
    page.hides(".round.queued")
    page.button("Stop")
    page.finished(1)
    page.hides(".state-button.is-running")


def test_files_are_dropped_named_and_read(page: PageTab) -> None:
    drop_file(page, "prices.csv", "price\n1\n2\n")
    page.shows("prices.csv", ".chip.there")
    page.type("see @pri", ".composer textarea")
    page.shows("prices.csv", ".completion")
    page.key("Enter")
    assert page.value("document.querySelector('.composer textarea').value") == "see prices.csv "
    page.button("Files")
    page.press_on(".files .variable", "prices.csv")
    page.shows("price", ".variable-more")


def test_a_table_of_the_kernel_is_paged_sorted_and_filtered(page: PageTab) -> None:
    """It has 500 columns and foreign text, in its names as well."""
    name = "<img src=x onerror=alert(1)>"
    columns = f"'n': range(110), {name!r}: ['<b>odd</b>' if n % 2 else None for n in range(110)]"
    more = "**{f'c{n}': range(n, n + 110) for n in range(498)}"
    run(page, f"import pandas as pd\nframe = pd.DataFrame({{{columns}, {more}}})", 1)
    page.press_on(".variable", "frame")
    page.button("Show the table")
    page.shows("110 rows, 500 columns", "dialog .row")
    page.shows(name, "dialog thead")
    page.press_on("dialog th button", "n")
    first = "document.querySelector('dialog tbody td').innerText"
    page.until(f"{first} === '109'")
    page.button("Next rows")
    page.until(f"{first} === '9'")
    choose(page, "Column", "1")
    page.type("<B>ODD", "dialog input")
    page.key("Enter")
    page.shows("55 of 110 rows", "dialog .row")
    second = "document.querySelector('dialog tbody td:nth-of-type(2)').innerText"
    assert page.value(second) == "<b>odd</b>"
    page.button("Next columns")  # the filter form has those that are shown; order and filter stay
    page.shows("Columns 51 to 100", "dialog .row")
    assert page.value(first) == str(109 + 48)
    choose(page, "Comparison", "lt")
    page.press_on("dialog input")
    page.value("document.activeElement.select()")
    page.type("60")
    page.key("Enter")
    page.shows("12 of 110 rows", "dialog .row")
    page.press_on("dialog th button", "c49")
    page.until(f"{first} === '59'")
    page.value(
        "(() => { const real = URL.createObjectURL; URL.createObjectURL = (blob) => {"
        " URL.createObjectURL = real; blob.text().then((text) => { window.saved = text; });"
        " return real.call(URL, blob); }; })()"
    )
    page.press_on("dialog button", "Save as CSV")
    rows = str(page.until("window.saved")).splitlines()
    assert ([row.count(",") for row in rows], rows[1][:14]) == ([499] * 13, "11,<b>odd</b>,")
    page.button("Close")
    page.hides("dialog")


def test_large_picture_is_loaded_once_and_scaled_until_it_is_opened(page: PageTab) -> None:
    run(page, "from PIL import Image\nImage.new('L', (2000, 1500), 90).save('large.png')", 1)
    page.button("Figures")
    for place in (".conversation .paper", ".thumb"):
        image = f"document.querySelector('{place} img')"
        page.until(f"{image}.naturalWidth === 2000 && {image}.width < 1600")
    page.press_on(".conversation .open-picture")
    page.until("document.querySelector('dialog img').width === 2000")
    assert len([one for one in page.tab.requests if "/large.png" in one]) == 1
    page.key("Escape")
    page.hides("dialog")


def choose(page: PageTab, label: str, value: str) -> None:
    page.value(
        f"(() => {{ const one = document.querySelector('dialog [aria-label={label}]');"
        f" one.value = '{value}'; one.dispatchEvent(new Event('change')); }})()"
    )


def test_a_round_is_undone_and_a_past_moment_is_as_it_was_and_forks(page: PageTab) -> None:
    run(page, "x = 1\nimport pandas as pd\nolder = pd.DataFrame({'n': [7, 8]})", 1)
    run(page, "x = 2\nolder.loc[0, 'n'] = 9", 2)
    run(page, "x = 3", 3)
    page.press("u")
    page.shows("without round 3; main keeps it.", ".notice")
    x = "[...document.querySelectorAll('.variable')].some((one) => one.textContent === 'x{}')"
    page.until(x.format(2))
    page.hides("#round-3")
    page.button("Redo")
    page.until("document.querySelector('#round-3')")
    page.value("document.querySelector('.tree-row.is-round').focus()")
    page.until("document.querySelector('.tree-row.is-round .fork-here').offsetParent")
    page.press_on(".tree-row[role=treeitem]", "1\nx = 1")
    page.shows("main, round 1, as it was.")
    page.shows("x = 1", ".moment-bar")
    page.hides(".composer")
    page.until(x.format(1))
    table_is_as_it_was(page)
    page.key("f")
    page.shows("2 variables", ".fork-panel")
    page.shows("x", ".carried-names")
    page.type("main")
    page.key("Enter")
    page.shows("'main' is taken.", ".fork-panel [role=alert]")
    page.until("document.activeElement.matches('.fork-panel [aria-invalid]')")
    page.value("document.activeElement.select()")
    page.type("lost orders")
    page.type("say: hello from the fork end", ".fork-panel textarea")
    page.button("Fork and ask")
    page.shows("hello from the fork", ".answer")
    page.shows("lost orders", ".way")
    page.until("document.activeElement.ariaLabel === 'Ask lost orders'")
    page.key("Escape")
    assert page.value("document.activeElement === document.body")
    assert page.address().endswith("/lost-orders")
    page.value("history.back()")
    page.shows("main, round 1, as it was.")
    page.key("Escape")
    page.hides(".moment-bar")


def table_is_as_it_was(page: PageTab) -> None:
    page.press_on(".variable", "older")
    page.button("Show the table")
    page.shows("as it was at round 1: 2 rows, 1 columns", "dialog")
    assert page.value("document.querySelector('dialog tbody td').innerText") == "7"
    page.button("Close")
    page.hides("dialog")


def test_two_branches_are_compared_asked_and_merged(page: PageTab, server: Served) -> None:
    run(page, "x = 1", 1)
    page.type("say: on the fork end", ".composer textarea")
    page.key("Enter", ALT)
    page.shows("1 variable", ".fork-panel")
    page.button("Fork and ask")
    page.shows("on the fork", ".answer")
    page.press_on(".tree-row.branch", "main", SHIFT)
    page.shows("round 1 of main is common to both")
    page.shows("Variables", ".differences")
    page.key("b")
    page.until("document.activeElement.matches('.ask-both textarea')")
    page.type("say: for both end")
    page.key("Enter")
    page.until("document.querySelectorAll('.side .answer').length >= 3")
    sides = page.value("[...document.querySelectorAll('.side')].map((one) => one.innerText)")
    assert all("for both" in side for side in sides)
    page.shows("Variables", ".differences")
    page.shows("Merge main into", ".merge")
    load_axe(page)
    check(page, "comparison")
    page.tab.view(400)
    page.press_on(".compare-tabs .tab", "Differences")
    check(page, "merge on a phone", ".differences", width=400)
    page.tab.view(1280, height=420)
    page.reopen()
    page.until("document.querySelectorAll('.side .round.over').length === 3")
    page.until("document.querySelector('.side .to-end')")
    ats = page.value(
        "[...document.querySelectorAll('.side .conversation')].map((o) => o.scrollTop)"
    )
    assert ats == [0, 0], "sides begin at their first round"
    page.tab.view(1280)
    page.hides(".side .pane-head .state")
    session = page.address().split("/")[2]
    merge = f"/agent/v1/sessions/{session}/branches/main/merge"
    assert server.client().post(merge, json={"source": "try-1"}).json()["is_applied"]
    page.value(f"location.hash = '#/s/{session}/main'")
    page.shows("Merged try-1", ".tree-row.is-merge")
    page.press("m")
    page.until("document.querySelector('.map .map-merge')")
    page.key("m")
    page.hides(".map")


def test_facts_are_kept_changed_and_forgotten(page: PageTab) -> None:
    run(page, "x = 1", 1)
    page.button("Memory")
    page.type("Revenue is net of tax", ".remember input")
    page.button("Remember")
    page.shows("Revenue is net of tax", ".fact")
    page.press_on(".fact button", "Edit")
    page.until("document.activeElement.matches('.fact-editor textarea')")
    page.value("document.querySelector('.fact-editor textarea').select()")
    page.type("Revenue is gross")
    page.press_on(".fact-editor button", "Save")
    page.shows("Revenue is gross", ".fact")
    page.press_on(".fact button", "Forget")
    page.hides(".fact")


def test_a_proposed_fact_is_asked_for_and_accepted(page: PageTab) -> None:
    page.ask("note: short answers are liked end")
    page.finished(1)
    page.shows("Use this in other sessions too?", ".facts-note")
    page.press_on(".facts-note button", "No")
    page.finished(2)
    page.shows("stays in this session", ".answer")
    page.until("!document.querySelector('.facts-note button')")
    page.button("Memory")
    page.shows("declined, by model", ".fact")
    page.press_on(".fact button", "Use in all sessions")
    page.shows("accepted by the user", ".fact")


def test_sessions_are_found_renamed_and_deleted_in_another_tab(
    page: PageTab, server: Served
) -> None:
    page.ask("say: the zebra crossing end")
    page.finished(1)
    session = page.address().split("/")[2]
    page.key("Escape")
    page.press("r")
    page.until("document.activeElement.matches('.rename-bar input')")
    page.type("Animals")
    page.key("Enter")
    page.shows("Animals", ".topbar")
    page.value("location.hash = '#/'")
    page.shows("Animals", ".session-list")
    page.type("zebra", ".find-field")
    page.shows("zebra crossing", ".passage")
    page.press_on(".passage a", "Animals")
    page.shows("zebra crossing", ".conversation")
    assert server.client().delete(f"/agent/v1/sessions/{session}").status_code == 204
    page.shows("This session was deleted")


def test_a_change_before_the_stream_begins_is_not_missed(page: PageTab, server: Served) -> None:
    held = (
        "const ask = window.fetch; window.fetch = (where, more) => where.includes('/events')"
        " ? new Promise((go, no) => { window.begin = () => go(ask(where, more));"
        " more.signal.onabort = () => no(new DOMException('', 'AbortError')); })"
        " : ask(where, more);"
    )
    session, address = page.address().split("/")[2], page.value("location.href")
    script = page.tab.call("Page.addScriptToEvaluateOnNewDocument", source=held)["identifier"]
    try:
        page.open(address)
        page.until("Boolean(window.begin)")
        path = f"/agent/v1/sessions/{session}"
        server.client().patch(path, json={"title": "Renamed meanwhile"})
        page.value("window.begin() && 0")
        page.shows("Renamed meanwhile", ".topbar")
    finally:
        page.tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_text_of_others_is_shown_and_never_run(page: PageTab, server: Served) -> None:
    page.value("window.before = document.querySelectorAll('script').length")
    hostile = "".join(PAYLOADS)[:20_000]
    session = f"/agent/v1/sessions/{page.address().split('/')[2]}"
    client = server.client()
    client.patch(session, json={"title": "<img src=x onerror=alert(1)>"})
    name, octets = "%3Cimg src=x onerror=alert(1)%3E.csv", "application/octet-stream"
    client.put(f"{session}/files/{name}", content=b"a\n1\n", headers={"Content-Type": octets})
    text = hostile.replace("\\", " ").replace(" end", " ")
    run(page, f"bad = {text!r}\nprint(bad)\nbad", 1)
    client.post(f"{session}/messages", json={"text": f"say: {text} end"})
    page.finished(2)
    page.button("Files")
    page.shows("onerror", ".files")
    assert "RUN" not in page.value("document.title")
    assert page.value("document.querySelectorAll('script').length === window.before")
    inside = "document.querySelectorAll('.conversation :is(script, iframe, object, embed, form, "
    assert page.value(inside + "base, meta, link, style, video, audio)').length") == 0
    assert [one for one in page.tab.complaints if "dialog" in one.lower()] == []


def test_nothing_moves_while_an_answer_streams(page: PageTab, model: DirectedModel) -> None:
    run(page, "print('first')", 1)
    words = " ".join(f"word{number}" for number in range(400))
    page.ask(f"say: # wait go\\n\\n{words}\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\\n{words} end")
    page.until("document.querySelector('#round-2')")
    model.await_question("go")
    page.value(
        "window.shift = 0; new PerformanceObserver((list) => { for (const one of list.getEntries())"
        " window.shift += one.value; }).observe({type: 'layout-shift', buffered: false}); 0"
    )
    model.let_go("go")
    page.finished(2)
    page.shows("word399", ".answer")
    assert page.value("window.shift") == 0
