"""The responses API: a conversation goes on after the response that a request names."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from taskweaver.doors.chat_completions.answering import ChatAnswer, data_event, pieces
from taskweaver.doors.chat_completions.models import CompletionMessage, require_text_form
from taskweaver.doors.chat_completions.picture_links import PictureLinks
from taskweaver.doors.chat_completions.response_models import (
    ResponseAnswer,
    ResponseRequest,
    ResponseUsage,
)
from taskweaver.doors.chat_completions.turns import ChatPlace, ChatTurns, require_question
from taskweaver.server.agents.following import event_stream
from taskweaver.server.agents.index import OPEN_STATES
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import ApiOperation, Call, missing

_PREFIX = "resp_"


class ResponseOperations:
    """Operations of the responses API.

    Attributes:
        operations: The operations.
    """

    def __init__(self, links: PictureLinks, turns: ChatTurns) -> None:
        self._links = links
        self._sessions = links.sessions
        self._turns = turns
        self.operations = [
            ApiOperation(
                "POST",
                "/v1/responses",
                self._respond,
                "Answer a message; with `stream` the answer is server-sent events",
                body=ResponseRequest,
                answer=ResponseAnswer,
                problems=(404, 409),
            ),
            ApiOperation(
                "GET",
                "/v1/responses/{response_id}",
                self._show,
                "A response that was asked for before",
                answer=ResponseAnswer,
                problems=(404,),
            ),
        ]

    async def _respond(self, call: Call) -> Response | BaseModel:
        wanted = call.read(ResponseRequest)
        require_text_form(wanted.text.format if wanted.text is not None else None)
        await (await self._sessions.of(call.user)).check_disk(call.user)
        response_id = f"{_PREFIX}{secrets.token_hex(16)}"
        async with self._place(call, wanted) as place:
            limit = wanted.max_output_tokens
            answer = ChatAnswer(self._links, call, place, response_id, limit)
            await answer.submit()
        response = _Response(answer, wanted, response_id)
        if wanted.stream:
            return event_stream(response.events())
        return await response.whole()

    def _place(self, call: Call, wanted: ResponseRequest) -> AbstractAsyncContextManager[ChatPlace]:
        messages = wanted.chat()
        if wanted.previous_response_id is not None:
            text = require_question(messages)
            return self._turns.place_after(call.user, wanted.previous_response_id, text)
        if wanted.instructions:
            messages.insert(0, CompletionMessage(role="system", content=wanted.instructions))
        return self._turns.place(call.user, messages)

    async def _show(self, call: Call) -> BaseModel:
        wanted = call.path("response_id")
        own = await self._sessions.of(call.user)
        message = await own.index.calls.statements(partial(own.index.message, wanted))
        if message is None or not wanted.startswith(_PREFIX):
            raise missing("Response", wanted[:128])
        found = ResponseAnswer(
            id=message.id,
            created_at=int(datetime.fromisoformat(message.created_at).timestamp()),
            status="in_progress",
        )
        if message.state == "finished":
            found.status = "completed"
            found.output = [_message(message.id, await self._links.answer(call, message))]
        elif message.state not in OPEN_STATES:
            found.status = "failed" if message.state == "failed" else "cancelled"
            found.error = {"code": "server_error", "message": message.answer or message.state}
        return found


class _Response:
    """A response, as it comes."""

    def __init__(self, answer: ChatAnswer, wanted: ResponseRequest, response_id: str) -> None:
        self._answer = answer
        self._number = -1
        self._steps = ""
        self._now = ResponseAnswer(
            id=response_id,
            created_at=int(time.time()),
            status="in_progress",
            model=wanted.model,
            instructions=wanted.instructions,
            previous_response_id=wanted.previous_response_id,
        )

    async def whole(self) -> BaseModel:
        """Return the response when it is there; a client that leaves before stops it.

        Raises:
            RequestRefused: If the message was not answered.
        """
        async with self._answer.stopped_without_client():
            async for step in self._answer.progress():
                self._steps += step
        return self._completed(await self._answer.text())

    def _completed(self, text: str) -> ResponseAnswer:
        usage = self._answer.usage
        self._now.status = "completed"
        self._now.output = [self._reasoning(), _message(self._now.id, text)]
        self._now.usage = ResponseUsage(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
        )
        return self._now

    def _reasoning(self) -> dict[str, Any]:
        """Return the steps as an item."""
        summary = [{"type": "summary_text", "text": self._steps}] if self._steps else []
        return {"id": self._now.id.replace(_PREFIX, "rs_"), "type": "reasoning", "summary": summary}

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield it as server-sent events; a reader that leaves before its end stops it."""
        try:
            yield self._event("response.created", response=self._now.model_dump())
            yield self._event("response.in_progress", response=self._now.model_dump())
            steps = {"item_id": self._reasoning()["id"], "output_index": 0, "summary_index": 0}
            yield self._event("response.output_item.added", output_index=0, item=self._reasoning())
            part = {"type": "summary_text", "text": ""}
            yield self._event("response.reasoning_summary_part.added", **steps, part=part)
            async for step in self._answer.progress():
                self._steps += step
                kind = "response.reasoning_summary_text.delta"
                yield self._event(kind, **steps, delta=step)
            part = {"type": "summary_text", "text": self._steps}
            yield self._event("response.reasoning_summary_text.done", **steps, text=self._steps)
            yield self._event("response.reasoning_summary_part.done", **steps, part=part)
            yield self._event("response.output_item.done", output_index=0, item=self._reasoning())
            try:
                text = await self._answer.text()
            except RequestRefused as error:
                self._now.status = "failed"
                self._now.error = {"code": "server_error", "message": error.detail}
                yield self._event("response.failed", response=self._now.model_dump())
                return
            for event in self._message_events(text):
                yield event
            done = self._completed(text).model_dump()
            yield self._event("response.completed", response=done)
        finally:
            await self._answer.give_up()

    def _message_events(self, text: str) -> list[bytes]:
        item = _message(self._now.id, text)
        place = {"item_id": item["id"], "output_index": 1, "content_index": 0}
        begun = item | {"status": "in_progress", "content": []}
        (part,) = item["content"]
        delta = "response.output_text.delta"
        return [
            self._event("response.output_item.added", output_index=1, item=begun),
            self._event("response.content_part.added", **place, part=part | {"text": ""}),
            *(self._event(delta, **place, delta=piece, logprobs=[]) for piece in pieces(text)),
            self._event("response.output_text.done", **place, text=text, logprobs=[]),
            self._event("response.content_part.done", **place, part=part),
            self._event("response.output_item.done", output_index=1, item=item),
        ]

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        return data_event({"type": kind, "sequence_number": self._number, **fields}, kind)


def _message(response_id: str, text: str) -> dict[str, Any]:
    """Return an answer as an item."""
    return {
        "id": response_id.replace(_PREFIX, "msg_"),
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }
