"""Marks the rounds of a session: a span for each, and the place of its calls in the prompt log."""

from __future__ import annotations

import json
from contextlib import ExitStack

from taskweaver.logging.spans import INPUT, OUTPUT, Span, Value, workflow
from taskweaver.logging.tracing import Tracing
from taskweaver.module.event_emitter import RoundEventType, TaskWeaverEvent
from taskweaver.session.session import Session

ROUND = "round"
"""Name of the workflow that a round is."""


class RoundMarks:
    """Listens to a session. Events of a round come in the thread that plays it."""

    def __init__(self, session: Session, tracing: Tracing) -> None:
        self._session = session
        self._tracing = tracing
        self._open: dict[str, tuple[ExitStack, Span]] = {}

    def handle(self, event: TaskWeaverEvent) -> None:
        """Handle an event."""
        match event.t:
            case RoundEventType.round_start:
                self._begin(event)
            case RoundEventType.round_error:
                self._open[event.round_id or ""][1].fail("round_failed", event.msg)
            case RoundEventType.round_end:
                self._end(event)

    def _begin(self, event: TaskWeaverEvent) -> None:
        session = self._session
        round_id = event.round_id or ""
        session.prompts.round_id = round_id
        ids: dict[str, Value] = {"taskweaver.round": round_id, "taskweaver.branch": event.branch}
        stack = ExitStack()
        stack.enter_context(self._tracing.conversation(session.session_id))
        span = stack.enter_context(self._tracing.running(workflow(ROUND, ids)))
        span.content(INPUT, lambda: _message("user", event.msg))
        self._open[round_id] = stack, span

    def _end(self, event: TaskWeaverEvent) -> None:
        session, branch = self._session, self._session.at(event.branch)
        rounds = branch.memory.conversation.rounds[-1:]
        texts = [post.message for round_ in rounds for post in round_.post_list[-1:]]
        stack, span = self._open.pop(event.round_id or "")
        span.content(OUTPUT, lambda: _message("assistant", "".join(texts)))
        stack.close()
        problem, session.prompts.problem = session.prompts.problem, ""
        for text in filter(None, [problem, branch.long_memory.take_problem()]):
            session.event_emitter.warn(text)


def _message(role: str, text: str) -> str:
    parts = [{"type": "text", "content": text}]
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)
