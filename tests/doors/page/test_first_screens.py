"""The first screens: start, files that are added, results of answers, the choice of a model."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest
from page_axe import check, load_axe
from page_server import DirectedModel, page_server, start_address
from page_tab import CTRL, PageTab, drop_file
from support import make_project

pytestmark = pytest.mark.usefixtures("no_states")

PRICES = "day,shop,price\n2025-01-01,a,1\n2025-01-02,b,2\n2025-01-03,a,3\n"
CHART = (
    "import pandas as pd\\nfrom PIL import Image\\n"
    "Image.new('L', (90, 60)).save('bar_chart.png')\\n"
    "pd.DataFrame({'sum of price': [4000.0, 2000.0, 3500.0]},"
    " index=pd.Index(['a', 'b', 'c'], name='shop'))"
)
COVERED = """(() => {
  const notice = document.querySelector('.notice').getBoundingClientRect();
  return [...document.querySelectorAll('button, textarea, select')].filter((one) => {
    const box = one.getBoundingClientRect();
    return !one.closest('.notice') && box.bottom > notice.top + 1 && box.top < notice.bottom - 1
      && box.right > notice.left && box.left < notice.right && box.height;
  }).map((one) => one.innerText);
})()"""
"""Names of controls that the notice lies over."""
MODELS = """(() => {
  const row = (id, is_answering, more) => ({ id, name: id, provider: 'ollama', label: 'Ollama',
    address: '', size_bytes: 5.2e9, is_local: true, is_free: true, key_from: '', is_answering,
    ...more });
  const rows = [row('small:1b', false, {}), row('No model', true, { id: 'offline',
    provider: 'offline', label: 'Built-in analyst', size_bytes: null })];
  const now = () => ({ model: rows.find((one) => one.is_answering), answers: true, note: '',
    may_change: true, why_fixed: '', can_undo: true, problem: '' });
  const providers = [{ name: 'other', label: 'Other', model: '', needs_key: false,
    needs_address: true }];
  const answers = {
    'GET model': now,
    'GET models': () => ({ now: now(), models: rows, scopes: ['project', 'user'], providers,
      may_enter_key: false, local_help: null }),
    'POST models/test': ({ id }) => window.cancelled
      ? { id, state: 'works', detail: 'Right answer in 1.9 s.' } : new Promise(() => {}),
    'DELETE models/test?id=small%3A1b': () => { window.cancelled = true; return null; },
    'PUT model': ({ id }) => {
      for (const one of rows) one.is_answering = one.id === id;
      return now();
    },
  };
  const ask = window.fetch;
  window.fetch = async (where, more = {}) => {
    const path = `${more.method ?? 'GET'} ${String(where).split('/agent/v1/')[1]}`;
    const json = (data) => new Response(JSON.stringify(data));
    if (path in answers) return json(await answers[path](JSON.parse(more.body ?? 'null')));
    const reply = await ask(where, more);
    if (!String(where).endsWith('openapi.json')) return reply;
    const described = await reply.json();
    for (const one of ['model', 'models']) described.paths[`/agent/v1/${one}`] = { get: {} };
    return json(described);
  };
})();"""
"""Operations on the models, as a server answers them."""


def test_a_question_a_number_and_a_file_begin_a_session(tab: PageTab, tmp_path: Path) -> None:
    make_project(tmp_path / "project", {"execution.zygote": True})
    (tmp_path / "project" / "data" / "prices.csv").write_text(PRICES, "utf-8")
    with page_server(tmp_path, DirectedModel()) as server:
        tab.open(start_address(server))
        tab.shows("3 rows · 3 columns · 60 B", ".file-card")
        tab.until("document.activeElement.matches('.start-composer textarea')")
        load_axe(tab)
        check(tab, "start")
        check(tab, "start on a phone", width=400)
        tab.tab.view(1280)
        tab.type("say: **hello** end")
        tab.key("Enter")
        tab.finished(1)
        tab.shows("hello", ".answer")
        tab.value("location.hash = '#/'")
        tab.press_on(".file-card", "prices.csv")
        tab.shows("What is in prices.csv?", ".question")
        tab.value("location.hash = '#/'")
        tab.shows("say: **hello**", ".session-row")
        tab.until("document.querySelector('.choices')")
        tab.value("document.activeElement.blur()")
        tab.key("1")
        tab.until("location.hash.startsWith('#/s/')")
        tab.shows("price", ".question")
        tab.leave()


def test_a_touch_screen_leaves_the_start_without_a_focus_and_shows_all_files(
    tab: PageTab, tmp_path: Path
) -> None:
    make_project(tmp_path / "project", {"execution.zygote": True})
    for name in ("one", "two", "three", "four"):
        (tmp_path / "project" / "data" / f"{name}.csv").write_text(PRICES, "utf-8")
    with page_server(tmp_path, DirectedModel()) as server:
        tab.tab.call("Emulation.setTouchEmulationEnabled", enabled=True)
        tab.tab.view(400)
        try:
            tab.open(start_address(server))
            tab.until("document.querySelectorAll('.file-card').length === 5")
            tab.until("[...document.querySelectorAll('.file-card')].every((o) => o.offsetParent)")
            assert tab.value("matchMedia('(pointer: coarse)').matches")
            assert tab.value("document.activeElement === document.body")
            tab.type("say: **hello** end", ".start-composer textarea")
            tab.key("Enter")
            tab.shows("hello", ".answer")
            assert [one for one in tab.tab.complaints if "exception" in one.lower()] == []
        finally:
            tab.tab.call("Emulation.setTouchEmulationEnabled", enabled=False)
            tab.tab.view(1280)
        tab.leave()


def test_a_dropped_file_shows_its_rows_and_questions(page: PageTab) -> None:
    page.value("location.hash = '#/'")
    page.shows("There are no data files in this folder.")
    drop_file(page, "prices.csv", PRICES, ".start")
    page.shows("2025-01-02", ".added-card td")
    page.shows("2 words", ".added-card th")
    page.shows("1 to 3", ".added-card th")
    page.until("document.querySelectorAll('.added-card .bars rect').length === 8")
    page.shows("prices.csv", ".session-name")
    load_axe(page)
    check(page, "added file", ".cards")
    page.tab.view(1280)
    page.type("1", ".composer textarea")
    page.key("Enter")
    page.shows("What is in prices.csv?", ".question")
    page.finished(1)
    page.hides(".chip")
    drop_file(page, "prices.csv", "day,price\n2026-01-01,9\n")
    page.shows("is there already.", ".chip")
    page.press_on(".chip button", "Keep both")
    page.shows("prices-2.csv", ".added-card")
    drop_file(page, "prices.csv", "day,price\n2026-01-01,9\n")
    page.press_on(".chip button", "Replace")
    page.shows("1 row ·", ".added-card")
    page.value(
        "(() => { const real = window.fetch; window.fetch = (where, more) => more?.method === 'PUT'"
        " ? (window.fetch = real, Promise.reject(new TypeError('cut'))) : real(where, more); })()"
    )
    drop_file(page, "late.csv", "n\n1\n2\n")
    page.shows("the connection was lost", ".chip")
    page.press_on(".chip button", "Send again")
    page.shows("late.csv", ".added-card")


def test_an_answer_has_one_result(page: PageTab) -> None:
    page.ask(f"cell: {CHART} end")
    page.finished(1)
    page.hides("#round-1 .cell-out")
    page.until("document.querySelector('#round-1 .chart').ariaLabel.includes('highest a 4,000')")
    page.press_on("#round-1 .switch label", "Table")
    cells = "[...document.querySelectorAll('#round-1 td')].map((one) => one.innerText).join()"
    page.until(f"{cells} === 'a,4,000,b,2,000,c,3,500'")
    page.value(
        "(() => { const real = URL.createObjectURL; window.saved = [];"
        " URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) => {"
        " const text = new TextDecoder().decode(bytes);"
        " if (text.startsWith('PK')) window.workbook = [...new Uint8Array(bytes)];"
        " window.saved.push(text); }); return real.call(URL, blob); }; })()"
    )
    page.button("Save as CSV")
    page.shows("3 rows", ".notice")
    assert page.value("document.documentElement.scrollHeight === innerHeight")
    assert page.value(COVERED) == []
    page.until("window.saved.includes('shop,sum of price\\na,4000\\nb,2000\\nc,3500\\n')")
    page.press_on(".split .menu button", "")
    page.press_on(".menu-list button", "Save as Excel")
    page.until("window.workbook")
    content = bytes(page.value("window.workbook"))
    found = pd.read_excel(io.BytesIO(content))
    assert found.to_dict("list") == {"shop": ["a", "b", "c"], "sum of price": [4000, 2000, 3500]}
    page.press_on("#round-1 .answer-tools button", "Fork here")
    page.shows("Fork main at round 1", ".fork-panel")


def test_names_with_brackets_stay_in_the_reading_of_an_answer(page: PageTab) -> None:
    note = "Sum of `amount (NOK)` per `shop` (3 rows, 1 of `amount (NOK)` missing, other (a))"
    page.ask(f"say: {note}\\n\\nA is highest. end")
    page.finished(1)
    page.shows("missing, other (a))", ".answer > .reading")
    page.shows("A is highest.", ".answer > .block")


def test_words_of_people_find_commands(page: PageTab) -> None:
    commands = {"download": "Export as page", "diff": "Compare two branches", "key": "Settings"}
    for words, command in commands.items():
        page.key("k", CTRL)
        page.until("document.activeElement.matches('.palette input')")
        page.type(words)
        page.shows(command, ".palette [role=option]")
        page.key("Escape")
        page.key("Escape")
        page.hides("dialog")
    page.look_for("Temperature")
    page.key("Enter")
    page.until("document.activeElement.ariaLabel === 'llm.temperature'")
    page.key("Escape")
    page.hides("dialog")


def test_the_model_is_chosen_by_keys_alone(page: PageTab) -> None:
    script = page.tab.call("Page.addScriptToEvaluateOnNewDocument", source=MODELS)["identifier"]
    try:
        page.reopen()
        page.shows("No model", ".model-chip")
        page.value("document.querySelector('.model-chip').focus()")
        page.key("Enter")
        page.until("document.activeElement.matches('.model-row input')")
        page.key("ArrowUp")
        page.press_on(".test-line button", "Cancel")
        page.until("window.cancelled")
        page.press_on(".test-line button", "Test")
        page.shows("small:1b works. Right answer in 1.9 s.", ".test-line")
        page.shows("Keys can be entered on this machine or over https only.", ".models")
        load_axe(page)
        check(page, "models", ".models")
        page.tab.view(1280)
        page.button("Use small:1b")
        page.shows("small:1b answers from now on.", ".notice")
        page.shows("on this machine", ".model-chip")
        page.until("document.activeElement.matches('.model-chip')")
    finally:
        page.tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        page.reopen()
