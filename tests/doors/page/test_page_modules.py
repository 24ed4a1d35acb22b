"""Modules of the page by themselves, in the page that a server gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from page_tab import PageTab
from test_outline_page import session_of
from test_page_parts import run

pytestmark = pytest.mark.usefixtures("no_states")


def given(page: PageTab, path: str, body: str) -> Any:
    """Return what a function body gives that has a module of the page as `found`."""
    address = "document.querySelector('script[type=module]').src.replace('app.js', {})"
    where = address.format(json.dumps(path))
    return page.value(f"import({where}).then(async (found) => {{ {body} }})")


def test_a_round_that_begins_and_ends_while_the_rounds_are_read_stays(page: PageTab) -> None:
    run(page, "x = 1", 1)
    id_ = session_of(page).rpartition("/")[2]
    body = (
        f"const model = new found.SessionModel({id_!r}); await model.load({{branch: 'main'}});"
        " const ask = fetch; let answer; const later = new Promise((go) => { answer = go; });"
        " window.fetch = async (where, more) => {"
        " const reply = await ask(where, more); await later; return reply; };"
        " const reading = model.reload(); window.fetch = ask;"
        " model.begin({round_id: 'new', branch: 'main', msg: 'a second one', at: 0});"
        " model.rounds.get('new').state = 'finished'; answer(); await reading;"
        " return model.path('main').map((one) => one.number);"
    )
    assert given(page, "session/model.js", body) == [1, 2]


def test_a_list_that_is_read_is_read_once_more_for_all_who_ask_meanwhile(page: PageTab) -> None:
    page.value("location.hash = '#/'")
    page.shows("Recent sessions")
    body = (
        "await found.readSessions(); const ask = fetch; let reads = 0;"
        " window.fetch = (where, more) => { reads += /sessions[?]/.test(where);"
        " return ask(where, more); };"
        " try { await Promise.all(Array.from({length: 9}, () => found.readSessions())); }"
        " finally { window.fetch = ask; } return reads;"
    )
    assert given(page, "sessions/list.js", body) == 2


ROUNDS = """
const session = new found.SessionModel('none');
const entry = (id, number, state) =>
  ({round_id: id, branch: 'main', number, title: id, state, forks: []});
session.setIndex([entry('over', 1, 'finished'), entry('runs', 2, 'created')]);
const main = {name: 'main', parent: null, is_current: true, state: 'idle'};
session.setView({title: '', branches: [main]});
session.asking = [{confirmation_id: 'c', branch: 'main'}];
const at = '2026-01-01T10:00:00.000+00:00';
const send = (id, type) =>
  session.handleRound({round_id: id, branch: 'main', type, msg: id, at, extra: {}});
const stored = {id: 'over', state: 'finished', isStored: false, posts: [], question: 'kept'};
session.rounds.set('over', stored);
for (const type of ['round_start', 'round_end']) send('over', type);
send('runs', 'round_start');
session.index.find((one) => one.round_id === 'runs').state = 'finished';
const before = session.asking.length;
send('runs', 'round_end');
const isKept = session.rounds.get('over') === stored;
return [isKept, before, session.rounds.get('runs').state, session.asking.length];
"""
"""A round that is over is read again after a gap; one that runs ends after the index said so."""


def test_a_round_that_is_over_is_not_played_again(page: PageTab) -> None:
    assert given(page, "session/model.js", ROUNDS) == [True, 1, "finished", 0]


def test_copy_works_without_the_clipboard_that_browsers_keep_from_plain_http(page: PageTab) -> None:
    page.ask("say: Ünï < 3\\n\\nsecond line end")
    page.finished(1)
    page.value(
        "(() => { Object.defineProperty(navigator, 'clipboard', {value: undefined});"
        " addEventListener('copy', () => { window.copied = String(getSelection()); }); })()"
    )
    page.press_on(".answer-tools button", "Copy")
    page.until("window.copied === 'Ünï < 3\\n\\nsecond line'")
    page.until("document.getElementById('live').textContent === 'Copied.'")
    assert page.value("document.querySelectorAll('body > textarea').length") == 0
