"""The chat completions API as a door of the server."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from taskweaver.doors.chat_completions import models
from taskweaver.doors.chat_completions.turns import ChatPlace, ChatTurns
from taskweaver.server.agents.following import KEEP_ALIVE, StreamEnd, event_stream
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import ApiOperation, Call, missing
from taskweaver.session.errors import LimitReached, SessionError
from taskweaver.utils.redact import redact_known

_ANSWER_CHARS = 400
"""Size of the pieces in which an answer is streamed."""


class ChatCompletions:
    """The chat completions API. The agent API, whose sessions it uses, finishes and closes them.

    Attributes:
        operations: Its operations.
        statuses: Status of the response for each class of errors.
    """

    statuses: Mapping[type[Exception], int] = MappingProxyType(
        {LimitReached: 403, SessionError: 409}
    )

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self._turns = ChatTurns(sessions)
        self.operations = [
            ApiOperation(
                "GET",
                "/v1/models",
                self._models,
                "The models of the OpenAI-compatible routes: one",
                answer=models.OfferedModels,
            ),
            ApiOperation(
                "GET",
                "/v1/models/{model}",
                self._model,
                "A model of the OpenAI-compatible routes",
                answer=models.OfferedModel,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                "/v1/chat/completions",
                self._complete,
                "Answer a chat; with `stream` the answer is server-sent events",
                body=models.CompletionRequest,
                answer=models.CompletionAnswer,
                problems=(409,),
            ),
        ]

    async def finish(self, grace_s: float) -> None:
        """Do nothing: the sessions are finished by the agent API."""

    async def close(self) -> None:
        """Do nothing: the sessions are closed by the agent API."""

    async def _models(self, _call: Call) -> BaseModel:
        return models.OfferedModels(data=[models.OfferedModel()])

    async def _model(self, call: Call) -> BaseModel:
        if call.path("model") != models.MODEL:
            raise missing("Model", call.path("model")[:64])
        return models.OfferedModel()

    async def _complete(self, call: Call) -> Response | BaseModel:
        wanted = call.read(models.CompletionRequest)
        if wanted.n != 1:
            raise RequestRefused(422, "invalid-body", "n must be 1: there is one answer.")
        own = self._sessions.of(call.user)
        await own.check_disk(call.user)
        place = await self._turns.place(call.user, wanted.messages)
        await own.check_kernels(call.user, place.conversation, place.branch)
        after = place.conversation.session.events.last
        session_id = place.conversation.session.session_id
        completion_id = f"chatcmpl-{secrets.token_hex(12)}"
        message = IndexedMessage(completion_id, session_id, place.branch, "ask", place.text)
        await place.conversation.submit(call.user, message)
        answer = _Answer(self._sessions, self._turns, call, place, completion_id, after)
        return event_stream(answer.chunks()) if wanted.stream else await answer.whole()


class _Answer:
    """The answer to a chat, as it comes."""

    def __init__(
        self,
        sessions: AgentSessions,
        turns: ChatTurns,
        call: Call,
        place: ChatPlace,
        completion_id: str,
        after: int,
    ) -> None:
        self._readers = sessions.readers
        self._turns = turns
        self._call = call
        self._wanted = call.read(models.CompletionRequest)
        self._place = place
        self._id = completion_id
        self._after = after
        self._created = int(time.time())

    def _is_done(self) -> bool:
        return self._place.conversation.is_done(self._id)

    async def _progress(self) -> AsyncIterator[str]:
        """Yield what is under way, a line each; nothing at times, to keep the connection."""
        log, end = (
            self._place.conversation.session.events,
            StreamEnd(self._is_done, self._place.conversation.index),
        )
        async for events in self._readers.follow({"": log}, {"": self._after}, end):
            if not events:
                yield ""
            for _, event in events:
                fields = json.loads(event.data)
                is_status = event.kind == "post_status_update"
                if is_status and fields["branch"] == self._place.branch and fields["msg"]:
                    yield f"{redact_known(fields['msg'])}\n"

    def _outcome(self) -> IndexedMessage:
        """Return the message once it is answered, and remember where its chat goes on.

        Raises:
            RequestRefused: If it was not answered; its text is the reason.
        """
        ended = self._place.conversation.message(self._id)
        if ended.state != "finished":
            raise RequestRefused(422, "not-answered", ended.answer or f"It was {ended.state}.")
        self._turns.keep(self._call.user, self._wanted.messages, self._place, ended.answer)
        return ended

    async def whole(self) -> BaseModel:
        """Return the answer when it is there."""
        async for _ in self._progress():
            pass
        message = {"role": "assistant", "content": self._outcome().answer}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return models.CompletionAnswer(
            id=self._id,
            created=self._created,
            model=self._wanted.model,
            choices=[choice],
            usage=self._usage(),
        )

    def _usage(self) -> models.CompletionUsage:
        usage = self._place.conversation.branch(self._place.branch).round_usage
        return models.CompletionUsage(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
        )

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the answer as server-sent events; a reader that leaves before its end stops it."""
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for line in self._progress():
                yield self._chunk({"reasoning_content": line}) if line else KEEP_ALIVE
            try:
                answer = self._outcome().answer
            except RequestRefused as error:
                problem = {"message": str(error), "type": error.kind, "code": error.kind}
                yield _event({"error": problem})
                return
            for start in range(0, len(answer), _ANSWER_CHARS):
                yield self._chunk({"content": answer[start : start + _ANSWER_CHARS]})
            yield self._chunk({}, finish_reason="stop")
            options = self._wanted.stream_options
            if options is not None and options.include_usage:
                yield self._chunk(None, usage=self._usage().model_dump())
            yield b"data: [DONE]\n\n"
        finally:
            if not self._is_done():
                self._place.conversation.give_up(self._id)

    def _chunk(
        self, delta: Mapping[str, str] | None, *, finish_reason: str | None = None, **more: Any
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event(
            {
                "id": self._id,
                "object": "chat.completion.chunk",
                "created": self._created,
                "model": self._wanted.model,
                "choices": [] if delta is None else [choice],
                **more,
            }
        )


def _event(content: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(content)}\n\n".encode()
