"""A search on the page: started, watched, stopped, gone on with, and a chat with an attempt."""

from __future__ import annotations

import json
from pathlib import Path

from page_server import DirectedModel, page_server, start_address
from page_tab import PageTab
from search_lab import IDEA
from test_agent_searches import MANY, Hills, hilly

MEASURE = """print('{"metric": 7}')"""
PROGRAM = "print('rows: 12')\nprint('height = 3')"


def test_a_search_is_started_stopped_and_gone_on_with(tab: PageTab, tmp_path: Path) -> None:
    cold = {"execution.zygote": False}  # no kernel runs
    with (
        hilly() as (model, config),
        page_server(tmp_path, DirectedModel(), config | cold) as server,
    ):
        tab.open(start_address(server))
        tab.value("location.hash = '#/searches'")
        start(tab, model)
        tab.button("Stop")
        tab.shows("stopped", ".run .pane-head")
        model.let_go(MANY)
        go_on(tab)
        tab.leave()


def start(tab: PageTab, model: Hills) -> None:
    """Start a search, at first without its evaluator; its second attempt is held up."""
    tab.shows("No searches yet", ".runs")
    tab.press_on(".idea-cards button", "Fit a better classifier")
    tab.shows("evaluate_tabular.py", ".start-form .chip")
    tab.press_on(".idea-cards button", "Start from my code")
    add(tab, "my fit.py", PROGRAM)
    tab.shows("Rename my fit.py", ".start-form .failed-text")
    add(tab, "rows.csv", "caf\ufffd")
    tab.shows("rows.csv is no text in UTF-8", ".start-form .failed-text")
    add(tab, "fit.py", PROGRAM)
    tab.shows("and printed height: 3. That is the score to beat.", ".start-form")
    tab.until("document.querySelector('.limits select').value === 'height'")
    tab.button("Show as Markdown")
    tab.until("document.activeElement.matches('.start-form textarea')")
    tab.until("document.activeElement.value.includes(\"print('height = 3')\\n```\")")
    tab.value("document.activeElement.select()")
    tab.type(f"{IDEA.format('maximize')}\nEvaluate: measure.py\n")
    tab.press_on(".start-form button[type=submit]", "Start")
    tab.shows("names the evaluator measure.py, which is no file", ".start-form")
    model.let_go(1)
    add(tab, "measure.py", MEASURE)
    tab.shows("measure.py", ".start-form .chip")
    tab.press_on(".start-form button[type=submit]", "Start")
    model.await_held()
    tab.until("document.querySelectorAll('.search-tree .node').length === 2")
    tab.shows("2 of 10", ".budgets")


def add(tab: PageTab, name: str, text: str) -> None:
    tab.value(
        "(() => { const data = new DataTransfer();"
        f" data.items.add(new File([{json.dumps(text)}], {json.dumps(name)}));"
        " const field = document.querySelector('.start-form input[type=file]');"
        " field.files = data.files; field.dispatchEvent(new Event('change')); })()"
    )


def go_on(tab: PageTab) -> None:
    """Go on until a limit, look at an attempt, and chat with it."""
    tab.button("Go on...")
    tab.type("2", ".limits input")
    tab.key("Enter")
    tab.shows("at the limit of the run: 2 attempts", ".run")
    tab.shows("finished", ".run .pane-head")
    tab.shows("2 of 2", ".budgets")
    tab.press_on(".search-tree .node", "Attempt 2,")
    tab.shows("Attempt 2", ".attempt")
    tab.press_on(".attempt .tab", "Plan")
    tab.shows("against its parent, attempt 1", ".attempt")
    tab.press_on(".attempt .tab", "Diff")
    tab.shows("+++ try.sh", ".attempt")
    tab.press_on(".attempt .tab", "Code")
    tab.shows("sh try.sh", ".attempt")
    tab.press_on(".attempt .tab", "Log")
    tab.shows("exit_code=0", ".attempt")
    run = tab.value("location.hash.split('/')[2]")
    tab.button("Chat with it")
    tab.until("document.querySelector('.composer textarea')")
    assert tab.value("location.hash") == f"#/s/{run}/n0002-chat"
    tab.shows("n0002-chat", ".tree-pane")
    tab.ask("say: gone on with end")
    tab.finished(3)
