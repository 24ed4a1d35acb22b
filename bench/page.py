"""The page in Chromium: its first paint, an event on screen, a long session, and a large search.

Each has a baseline of the same run: a bare document, the event's arrival in the browser, a
session of a few rounds, and an empty box that is scrolled as the tree is. Run with
``python -m bench.page``.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from bench.common import served, sized
from bench.memory_view import post
from bench.search_page import EMPTY, Browser
from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.agent_api.door import AgentApi
from taskweaver.doors.page.door import PageDoor
from taskweaver.llm.types import ChatMessage
from taskweaver.memory.post import Post
from taskweaver.server.accounts import Accounts
from taskweaver.server.agents.index import FileIndexes
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Door
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus

ROUNDS, FEW, NODES, REPEATS, FRAMES = sized((1_000, 10, 10_000, 7, 60), (4, 2, 12, 1, 2))
TREE = "document.querySelector('.tree-view')"

PAINT = """new Promise((done) => new PerformanceObserver((list) => { for (const one of
  list.getEntries()) if (one.name === 'first-contentful-paint') done(one.startTime / 1000); })
  .observe({type: 'paint', buffered: true}))"""
SHOWN = """new Promise((done) => { const look = () => %s
  ? done(performance.now() / 1000) : requestAnimationFrame(look); look(); })"""
ANSWER = """new Promise((done) => { let event = null;
  const heard = new BroadcastChannel('taskweaver.events/');
  heard.onmessage = ({data}) => { if (!event && data.name === 'post_message_update'
    && data.data.msg.includes('%(text)s')) event = [Date.parse(data.data.at), Date.now()]; };
  const look = () => { const answers = document.querySelectorAll('.answer');
    if (!event || !answers[answers.length - 1]?.textContent.includes('%(text)s'))
      return requestAnimationFrame(look);
    heard.close(); done([event[1] - event[0], Date.now() - event[0]]); };
  look(); })"""
PAN = """new Promise((done) => { const box = %s; let left = %d;
  const step = () => { box.scrollLeft = (box.scrollLeft + 97) %% (box.scrollWidth || 1);
    left -= 1; if (left > 0) requestAnimationFrame(step); else done(true); }; step(); })"""
BARE_BOX = """(() => { const box = document.createElement('div'), inner = document.createElement(
  'div'); box.id = 'bare'; box.style.overflow = 'auto'; inner.style.width = '100000px';
  inner.style.height = '300px'; box.append(inner); document.body.append(box); return true; })()"""


def _answer(messages: Sequence[ChatMessage]) -> str:
    said = str(messages[-1]["content"]).rpartition("say ")[2].split()[0]
    fields = {"plan": "1. answer", "current_plan_step": "1. answer", "stop": "Completed"}
    told = {"plan_reasoning": "", "send_to": "User", "message": f"heard {said}"}
    return json.dumps({"response": fields | told})


def _stored(app: TaskWeaverApp, rounds: int) -> str:
    """Write a session of some rounds; return its id."""
    session = app.get_session()
    for number in range(rounds):
        made = session.memory.create_round(f"question {number}: what is the total of the quarter?")
        session.memory.add_post(made, post(1))
        answer = Post.create(f"The total is **{number}**.\n\n- one\n- two\n", "Planner", "User")
        session.memory.add_post(made, answer)
        session.memory.end_round(made, "finished")
    session.stop()
    return session.session_id


def _write_search(folder: Path) -> None:
    """Write the log of a run; every fourth node fails, every third of the others is built on."""
    folder.mkdir(parents=True)
    objective = {"name": "score", "maximize": True, "unit": ""}
    entries: list[dict[str, Any]] = [
        {"t": "run", "objective": objective, "title": "Large", "at": 1.0}
    ]
    for step in range(1, NODES + 1):
        parent = f"n{(step - 2) // 3 + 1:04d}" if step > 3 else None
        kind, status = NodeKind.IMPROVE if parent else NodeKind.DRAFT, NodeStatus.BUGGY
        node = Node(f"n{step:04d}", step, kind, 1, parent=parent, status=status, plan="try")
        entries.append({"t": "node", "node": node.to_dict()})
    lines = "".join(json.dumps(entry) + "\n" for entry in entries)
    (folder / "journal.jsonl").write_text(lines)


@contextmanager
def _serving(folder: Path) -> Iterator[tuple[TaskWeaverApp, str, str]]:
    """Give an application, and the address and token of a server with its page."""
    work, searches = folder / "work", folder / "searches"
    config = {"execution.sandbox": "none", "workspace.workspace_path": str(work)}
    config["search.folder"] = str(searches)
    _write_search(searches / "large")
    with TaskWeaverApp(folder, config, model=_answer, trust=True) as app:

        def doors(accounts: Accounts) -> list[Door]:
            sessions = AgentSessions(app, accounts, folder / "agents", FileIndexes())
            return [AgentApi(sessions), PageDoor(sessions)]

        with served(folder, doors) as (url, token):
            yield app, url, token


def _first_paints(browser: Browser, url: str, bare: str) -> dict[str, float]:
    paints: dict[str, list[float]] = {"first_paint": [], "bare_paint": []}
    for _ in range(REPEATS):
        for name, address in (("first_paint", url), ("bare_paint", bare)):
            browser.open(address)
            paints[name].append(browser.value(PAINT))
    return {name: statistics.median(found) for name, found in paints.items()}


def _openings(browser: Browser, url: str, sessions: dict[str, str]) -> dict[str, float]:
    """Return the seconds from the order to open a session until its last round is drawn."""
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(REPEATS):
        for name, session in sessions.items():
            rounds = ROUNDS if name == "long_session" else FEW
            browser.open(f"{url}/#/s/{session}/main")
            times[name].append(
                browser.value(SHOWN % f"document.querySelector('#round-{rounds}.over')")
            )
    return {name: statistics.median(found) for name, found in times.items()}


def _answers(browser: Browser, url: str, http: httpx2.Client) -> dict[str, float]:
    """Return the seconds from an event's time until it is in the browser, and on screen."""
    session = http.post("/agent/v1/sessions", json={}).json()["session_id"]
    browser.open(f"{url}/#/s/{session}/main")
    times = []
    for number in range(REPEATS + 1):
        text = f"word{number}"
        body = json.dumps({"text": f"say {text}"})
        where = f"/agent/v1/sessions/{session}/messages"
        headers = "{Authorization: `Bearer ${localStorage.getItem('taskweaver.token')}`,"
        ask = f"fetch('{where}', {{method: 'POST', body: {body!r}, headers: {headers}"
        watching = ANSWER % {"text": text}
        sent = f"{ask} 'Content-Type': 'application/json'}}}})"
        times.append(
            browser.value(f"(() => {{ const seen = {watching}; {sent}; return seen; }})()")
        )
    arrived, shown = zip(*times[1:], strict=True)
    return {
        "event_in_browser": statistics.median(arrived) / 1e3,
        "event_on_screen": statistics.median(shown) / 1e3,
    }


def _panning(browser: Browser, url: str) -> dict[str, float]:
    """Return the seconds of script, style and layout for each frame while a tree is panned."""
    browser.open(f"{url}/#/searches/large")
    browser.value(SHOWN % f"{TREE}?.firstElementChild")
    browser.value(BARE_BOX)
    figures = {}
    for name, box in (("pan_frame", TREE), ("bare_frame", "document.querySelector('#bare')")):
        browser.value(PAN % (box, 2))
        before = browser.busy()
        browser.value(PAN % (box, FRAMES))
        figures[name] = (browser.busy() - before) / FRAMES
    return figures


def run() -> dict[str, float]:
    """Return medians in seconds, each measurement beside its baseline."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        app, url, token = stack.enter_context(_serving(folder))
        sessions = {"long_session": _stored(app, ROUNDS), "short_session": _stored(app, FEW)}
        http = httpx2.Client(base_url=url, headers={"X-API-Key": token}, timeout=100)
        stack.enter_context(closing(http))
        bare = folder / "bare.html"
        bare.write_text(EMPTY + "text")
        browser = stack.enter_context(closing(Browser()))
        browser.open(f"{url}/#token={token}")
        figures = _first_paints(browser, url, bare.as_uri())
        figures |= _openings(browser, url, sessions)
        figures |= _answers(browser, url, http)
        figures |= _panning(browser, url)
        browser.open(bare.as_uri())
    return figures


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    rows = (
        ("first paint", "first_paint", "bare_paint", "a bare document", 300),
        (f"{ROUNDS} rounds", "long_session", "short_session", f"{FEW} rounds", 500),
        ("event on screen", "event_on_screen", "event_in_browser", "in the browser", 50),
        (f"a frame of {NODES} nodes", "pan_frame", "bare_frame", "an empty box", 8),
    )
    for label, name, base, baseline, goal in rows:
        print(
            f"{label:<24}{figures[name] * 1e3:>9.2f} ms  {baseline}: {figures[base] * 1e3:.2f} ms"
            f"  goal <= {goal} ms"
        )


if __name__ == "__main__":
    show(run())
