"""A model behind a local server that replies in odd forms, and whole rounds with it."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.odd.variants import CODE, NUMBER, Meant, Reply, Variant, good
from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.round import Round

QUESTION = "What is the sum of the squares from 0 to 60?"
ANSWER = f'The total is {NUMBER}.\nThe cell printed "total: {NUMBER}".'
_LEFT_OVERS = ("send_to", '"message"', "&quot;", "```", "Final Answer", "tool_call", "</")


@dataclass(slots=True)
class OddModel:
    """A model that means well: a cell, and when its outcome is there, the answer.

    Attributes:
        variant: The form of its odd replies.
        form: The form that it is asked to keep.
        is_stubborn: Whether each reply is odd, and not the first cell and the first answer alone.
        calls: Number of its replies.
    """

    variant: Variant
    form: str
    is_stubborn: bool
    calls: int = 0
    _seen: set[bool] = field(default_factory=set)

    def reply(self, messages: Sequence[dict[str, Any]]) -> Reply:
        """Return the next reply."""
        self.calls += 1
        asked = max(at for at, said in enumerate(messages) if QUESTION in str(said["content"]))
        is_known = any(NUMBER in str(said["content"]) for said in messages[asked:])
        meant = Meant(self.form, ANSWER) if is_known else Meant(self.form, "add the squares", CODE)
        is_odd = self.is_stubborn or is_known not in self._seen
        self._seen.add(is_known)
        way = self.variant.answer if is_known else self.variant.cell
        return way(meant) if is_odd else good(meant)


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of a round.

    Attributes:
        variant: The odd form.
        round: The round.
        runs: Number of times that the cell ran.
        calls: Number of replies of the model.
    """

    variant: Variant
    round: Round
    runs: int
    calls: int

    @property
    def is_right(self) -> bool:
        """Whether the user has the answer, and the cell ran as often as it was meant to."""
        most = self.variant.runs
        return self.round.state == "finished" and self._has_answer and 1 <= self.runs <= most

    @property
    def _has_answer(self) -> bool:
        text = self.round.post_list[-1].message
        if self.variant.runs > 1:
            return NUMBER in text
        return text.startswith(f"The total is {NUMBER}.") and not any(
            left in text for left in _LEFT_OVERS
        )

    @property
    def is_honest(self) -> bool:
        """Whether a round without the answer ended within bounds, and says nothing untrue."""
        text = self.round.post_list[-1].message
        is_failed = self.round.state == "failed" or NUMBER in text or not self.round.is_answered
        return self.runs <= self.variant.runs and is_failed


@dataclass(slots=True)
class _Server:
    """The server, and the model that answers now."""

    url: str
    model: OddModel | None = None


@contextmanager
def serving() -> Iterator[_Server]:
    """Run an endpoint on loopback; its owner sets its model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length))
            assert endpoint.model is not None
            data = _stream(endpoint.model.reply(body["messages"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint = _Server(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _stream(reply: Reply) -> bytes:
    message = {"content": reply} if isinstance(reply, str) else dict(reply)
    calls = message.get("tool_calls")
    finish = message.pop("finish_reason", "tool_calls" if calls else "stop")
    choices = [
        {"index": 0, "delta": message, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": finish},
    ]
    events = [json.dumps({"choices": [choice]}) for choice in choices]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()


def play(chosen: Sequence[Variant], form: str, *, is_stubborn: bool) -> Iterator[Played]:
    """Play a round with each variant, in a session of its own with a real kernel.

    Args:
        chosen: The variants.
        form: The form that the model is asked to keep.
        is_stubborn: Whether each of its replies is odd.
    """
    with tempfile.TemporaryDirectory() as folder, serving() as endpoint:
        (Path(folder) / "taskweaver_config.json").write_text("{}")
        config = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "llm.form": "auto" if form == "tools" else form,
            "llm.max_retries": 0,
        }  # fmt: skip
        for variant in chosen:
            endpoint.model = OddModel(variant, form, is_stubborn)
            with TaskWeaverApp(folder, config=config) as app, app.get_session() as session:
                round_ = session.send_message(QUESTION)
                marks = session.execution_cwd / "runs.txt"
                runs = len(marks.read_text().splitlines()) if marks.exists() else 0
            yield Played(variant, round_, runs, endpoint.model.calls)
