"""An attempt of a search on the page, step by step as it grows, and after its search was killed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from fake_endpoint import DONE, USAGE_EVENT, Call, event, serving
from page_server import DirectedModel, page_server, start_address
from page_tab import PageTab
from patience import PATIENCE_S
from search_lab import FAST, IDEA
from served import Served

SCRIPT = """mkfifo gate
echo first line
read go < gate
echo second line
echo '{"metric": 7}' > working/result.json
"""
COMMANDS = {"name": "seven", "compile": {"commands": []}, "run": {"commands": ["sh try.sh"]}}
ATTEMPT = [
    "Look behind ",
    f"the **hill**.\n\n```file try.sh\n{SCRIPT}",
    f"```\n\n```commands\n{json.dumps(COMMANDS)}\n```\n",
]
REVIEW = [
    '```json\n{"is_bug": false, "summary": "It went\\twell \\u2014 \\"so\\""',
    ', "findings": "f", "next_steps": "n"}\n```',
]


class Writer:
    """A model that writes its replies piece by piece, as it is told."""

    def __init__(self) -> None:
        self._pieces = threading.Semaphore(0)

    def write(self, count: int) -> None:
        self._pieces.release(count)

    def play(self, call: Call) -> None:
        is_attempt = "A fence opens" in json.dumps(call.body["messages"][-1])
        call.start()
        for piece in ATTEMPT if is_attempt else REVIEW:
            if not self._pieces.acquire(timeout=PATIENCE_S):
                return
            call.send(event(piece))
        for block in (event(finish="stop"), USAGE_EVENT, DONE):
            call.send(block)
        call.end()


@contextmanager
def searching(tab: PageTab, folder: Path) -> Iterator[tuple[Writer, Served, str]]:
    """Show the first attempt of a search that runs; give its model, server and name."""
    model = Writer()
    with serving(model.play) as endpoint:
        config = FAST | {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "search.calls": "two", "search.review": True,
            "search.summaries": True, "execution.zygote": False,
        }  # fmt: skip
        with page_server(folder, DirectedModel(), config) as server:
            body = {"idea": IDEA.format("maximize"), "steps": 1}
            run = server.client().post("/agent/v1/searches", json=body).json()["name"]
            tab.open(start_address(server))
            tab.value(f"location.hash = '#/searches/{run}/n0001'")
            try:
                yield model, server, run
            finally:
                model.write(100)
                tab.leave()


def test_plan_code_output_and_review_grow(tab: PageTab, tmp_path: Path) -> None:
    with searching(tab, tmp_path) as (model, _, run):
        tab.shows("Proposal", ".attempt .status-line")
        model.write(1)
        tab.shows("Look behind", ".attempt .answer")
        model.write(1)
        tab.shows("mkfifo gate", ".attempt .answer pre")
        assert tab.value("document.querySelector('.attempt .answer strong').innerText") == "hill"
        model.write(1)
        tab.shows("Look behind the", ".attempt .plan .step")
        tab.shows("first line", ".attempt .cell .cell-out")
        tab.shows("Run", ".attempt .status-line")
        assert "second line" not in tab.value("document.querySelector('.attempt').innerText")
        tab.press_on(".attempt .cell-head")
        tab.shows("mkfifo gate", ".attempt .cell-code")
        workspace = tmp_path / "project/experiments" / run / "workspaces/branches/n0001"
        (workspace / "gate").write_text("go\n")
        tab.shows("second line", ".attempt .cell .cell-out")
        model.write(1)
        tab.shows('well \u2014 "so"', ".attempt .answer")
        assert "summary" not in tab.value("document.querySelector('.attempt').innerText")
        tab.shows("Review", ".attempt .status-line")
        model.write(1)
        tab.shows("n0001 ok: height 7.", ".attempt .answer")
        tab.shows("findings: f", ".attempt .answer")
        tab.shows("Chat with it", ".attempt .pane-head")  # it has come from the record
        grown = tab.value("document.querySelector('.attempt .round').innerText")
        tab.reopen()
        tab.press_on(".attempt .tab", "Chat")
        tab.shows("findings: f", ".attempt .answer")
        tab.press_on(".attempt .cell-head")
        tab.shows("run: ok", ".attempt .cell-out")
        tab.press_on(".attempt .cell-head")
        stored = tab.value("document.querySelector('.attempt .round').innerText")
        assert [line for line in stored.split("\n") if line not in grown] == []
        assert [text for text in tab.tab.complaints if "exception" in text.lower()] == []


def test_an_attempt_that_is_made_again_is_followed(tab: PageTab, tmp_path: Path) -> None:
    """Its worker died, and it goes on under another branch."""
    with searching(tab, tmp_path) as (model, _, _):
        model.write(3)
        tab.shows("first line", ".attempt .cell .cell-out")
        for process in psutil.Process().children():
            if "--until_input_ends" in process.cmdline():
                for worker in process.children():
                    worker.kill()
        model.write(1)
        tab.shows("Look behind", ".attempt .answer")
