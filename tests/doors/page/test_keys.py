"""The page by its keys alone: nothing is clicked."""

from __future__ import annotations

import json

from page_tab import CTRL, PageTab

MOST_STEPS = 120


def step_to(page: PageTab, text: str) -> None:
    """Press Tab until an element whose name begins with a text has the focus."""
    said = "((one) => one.ariaLabel ?? one.innerText ?? '')(document.activeElement)"
    for _ in range(MOST_STEPS):
        page.key("Tab")
        if page.value(f"{said}.startsWith({json.dumps(text)})"):
            return
    raise AssertionError(f"{text} is not reached; the focus is on {page.value(said)}")


def test_all_is_reached_without_a_mouse(page: PageTab) -> None:
    ask_and_stop(page)
    fork_compare_and_merge(page)
    open_an_attempt(page)


def ask_and_stop(page: PageTab) -> None:
    page.value("document.activeElement.blur()")
    page.key("/")
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


def fork_compare_and_merge(page: PageTab) -> None:
    page.key("Escape")
    page.value("document.activeElement.blur()")
    page.key("k")
    page.shows("main, round 1, as it was.")
    page.key("f")
    page.until("document.activeElement.matches('.fork-panel input')")
    page.type("by-keys")
    page.key("Enter")
    page.shows("by-keys", ".way")
    page.value("document.activeElement.blur()")
    page.key("c")
    page.shows("is common to both")
    step_to(page, "Merge...")
    page.key("Enter")
    page.shows("There is nothing to take over", ".merge")


def open_an_attempt(page: PageTab) -> None:
    page.key("k", CTRL)
    page.until("document.activeElement.matches('dialog input')")
    page.type("searches")
    page.key("Enter")
    page.until("document.querySelector('.search-tree .node')")
    step_to(page, "Attempt 1,")
    page.key("Enter")
    page.shows("Attempt 1", ".attempt")
