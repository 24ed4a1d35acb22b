"""Rounds of whole sessions over scripted models and endpoints."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fake_endpoint import Call, serving
from live_folders import paths_below
from patience import PATIENCE_S
from support import Listener, Script, code_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.terminal.text import section
from taskweaver.memory.round import Round
from taskweaver.module.confirmation import ConfirmationRequest
from taskweaver.session.session import Session
from taskweaver.utils.files import write_yaml

Body = list[bytes] | Callable[[Call], None]
"""What an endpoint streams, or how it answers otherwise."""
RELAY: dict[str, Any] = {"session.leader_writes_code": False}
ALONE: dict[str, Any] = {"session.roles": ["code_interpreter"]}


class Played(NamedTuple):
    rounds: list[Round]
    calls: list[Call]
    listener: Listener


def keys_of(url: str, **more: Any) -> dict[str, Any]:
    return {
        "llm.api_type": "openai", "llm.api_base": url, "llm.model": "m", "llm.api_key": "k",
        "llm.max_retries": 0, **more,
    }  # fmt: skip


def answering(*bodies: Body) -> Callable[[Call], None]:
    """Return what answers with these bodies, in order."""

    def answer(call: Call) -> None:
        body = bodies[call.number]
        body(call) if callable(body) else call.stream(body)

    return answer


@contextmanager
def app_over(
    project: Path, *bodies: Body, **config: Any
) -> Iterator[tuple[TaskWeaverApp, list[Call]]]:
    """Open a project whose endpoint answers with these bodies; yield it and the calls."""
    with (
        serving(answering(*bodies)) as endpoint,
        TaskWeaverApp(project, config=keys_of(endpoint.url, **config)) as app,
    ):
        yield app, endpoint.calls


def play(project: Path, *bodies: Body, rounds: int = 1, **config: Any) -> Played:
    """Play rounds of a new session, whose endpoint answers with these bodies."""
    listener = Listener()
    with app_over(project, *bodies, **config) as (app, calls), app.get_session() as session:
        played = [session.send_message(f"go {n}", listener) for n in range(rounds)]
    return Played(played, calls, listener)


def play_script(
    project: Path, replies: Iterable[str], message: str = "go", **config: Any
) -> tuple[Round, Script, Listener]:
    """Play a round of a new session, whose model is a function that gives these replies."""
    script, listener = Script(replies), Listener()
    with TaskWeaverApp(project, model=script, config=config) as app, app.get_session() as session:
        return session.send_message(message, listener), script, listener


def run(session: Session, code: str) -> str:
    """Run a cell as a round; return its result, or its error."""
    message = session.run_code(code).post_list[-1].message
    return section(message, "Result") or section(message, "Error")


def ask(session: Session, question: str, listener: Listener | None = None) -> Round:
    """Ask a question, and wait for the summary that it made due."""
    round_ = session.send_message(question, listener)
    for thread in threading.enumerate():
        if thread.name == "compaction":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    return round_


def add_plugin(project: Path, name: str, body: str) -> Path:
    """Write the file of a plugin, without a description, into a project; return it."""
    file = project / "plugins" / f"{name}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        f"from taskweaver.plugin import Plugin, register_plugin\n\n\n@register_plugin\n{body}"
    )
    return file


def add_example(folder: Path, sender: str, receiver: str, word: str) -> None:
    post = {"message": f"example {word}", "send_from": sender, "send_to": receiver}
    rounds = [{"user_query": "q", "state": "finished", "post_list": [post]}]
    write_yaml(folder / "one.yaml", {"enabled": True, "rounds": rounds})


def cell(code: str, intent: str = "look", **more: object) -> tuple[str, object]:
    return ("run_python", {"intent": intent, "code": code, **more})


def hops(round_: Round) -> list[str]:
    """Return sender and receiver of each post, by their first letters."""
    return [f"{post.send_from[0]}{post.send_to[0]}" for post in round_.post_list]


def newest(call: Call) -> str:
    return str(call.body["messages"][-1]["content"])


def results(call: Call) -> list[str]:
    return [str(m["content"]) for m in call.body["messages"] if m["role"] == "tool"]


def shown(call: Call) -> str:
    return json.dumps(call.body["messages"], ensure_ascii=False)


def check_pairs(call: Call) -> None:
    """Check that each call of the history has its result, in order, before anything else."""
    waiting: list[str] = []
    for message in call.body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        waiting = [made["id"] for made in message.get("tool_calls", [])]
    assert not waiting


class Person:
    """A handler of confirmations with its answers ready, which keeps what it was asked."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.requests: list[ConfirmationRequest] = []

    def request_confirmation(self, request: ConfirmationRequest, timeout_s: float) -> Any:
        assert timeout_s > 0
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Written(NamedTuple):
    rounds: list[Round]
    script: Script
    listener: Listener

    @property
    def said(self) -> list[str]:
        return [round_.post_list[-1].message for round_ in self.rounds]


def write(
    project: Path, *cells: str, rounds: int = 0, handler: Any = None, **config: Any
) -> Written:
    """Have an interpreter write cells or give replies, by default each in a round of its own."""
    replies = (text if text.startswith('{"response"') else code_reply(text) for text in cells)
    script, listener = Script(replies), Listener()
    with TaskWeaverApp(project, model=script, config=ALONE | config) as app:
        session = app.get_session()
        session.event_emitter.confirmation_handler = handler
        played = [session.send_message("go", listener) for _ in range(rounds or len(cells))]
    return Written(played, script, listener)


def marks(folder: Path) -> list[Path]:
    return paths_below(folder, "mark")
