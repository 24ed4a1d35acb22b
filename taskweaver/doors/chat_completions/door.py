"""The chat completions API as a door of the server."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from taskweaver.doors.chat_completions import models
from taskweaver.doors.chat_completions.answering import ChatAnswer, data_event, pieces
from taskweaver.doors.chat_completions.picture_links import PictureLinks
from taskweaver.doors.chat_completions.turns import ChatPlace, ChatTurns
from taskweaver.server.agents.following import event_stream
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import ApiOperation, Call, missing
from taskweaver.session.errors import LimitReached, SessionError


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
        self._links = PictureLinks(sessions)
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
            self._links.operation,
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
        models.require_text_form(wanted.response_format)
        own = await self._sessions.of(call.user)
        await own.check_disk(call.user)
        completion_id = f"chatcmpl-{secrets.token_hex(12)}"
        async with self._turns.place(call.user, wanted.messages) as place:
            limit = wanted.max_completion_tokens or wanted.max_tokens
            answer = ChatAnswer(self._links, call, place, completion_id, limit)
            await answer.submit()
        completion = _Completion(self._turns, call, place, answer, completion_id)
        return event_stream(completion.chunks()) if wanted.stream else await completion.whole()


class _Completion:
    """A completion, as it comes."""

    def __init__(
        self, turns: ChatTurns, call: Call, place: ChatPlace, answer: ChatAnswer, completion_id: str
    ) -> None:
        self._turns = turns
        self._user = call.user
        self._wanted = call.read(models.CompletionRequest)
        self._place = place
        self._answer = answer
        self._id = completion_id
        self._created = int(time.time())

    async def _outcome(self) -> str:
        """Return the answer, and remember where its chat goes on; raises as `ChatAnswer`."""
        text = await self._answer.text()
        self._turns.keep(self._user, self._wanted.messages, self._place, text)
        return text

    async def whole(self) -> BaseModel:
        """Return the answer when it is there; a client that leaves before stops it."""
        async with self._answer.stopped_without_client():
            steps = "".join([step async for step in self._answer.progress()])
        message = {"role": "assistant", "content": await self._outcome()}
        if steps:
            message["reasoning_content"] = steps
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return models.CompletionAnswer(
            id=self._id,
            created=self._created,
            model=self._wanted.model,
            choices=[choice],
            usage=self._usage(),
        )

    def _usage(self) -> models.CompletionUsage:
        usage = self._answer.usage
        return models.CompletionUsage(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
        )

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the answer as server-sent events; a reader that leaves before its end stops it."""
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for line in self._answer.progress():
                yield self._chunk({"reasoning_content": line})
            try:
                answer = await self._outcome()
            except RequestRefused as error:
                problem = {"message": str(error), "type": error.kind, "code": error.kind}
                yield data_event({"error": problem})
                return
            for piece in pieces(answer):
                yield self._chunk({"content": piece})
            yield self._chunk({}, finish_reason="stop")
            options = self._wanted.stream_options
            if options is not None and options.include_usage:
                yield self._chunk(None, usage=self._usage().model_dump())
            yield b"data: [DONE]\n\n"
        finally:
            await self._answer.give_up()

    def _chunk(
        self, delta: Mapping[str, str] | None, *, finish_reason: str | None = None, **more: Any
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return data_event(
            {
                "id": self._id,
                "object": "chat.completion.chunk",
                "created": self._created,
                "model": self._wanted.model,
                "choices": [] if delta is None else [choice],
                **more,
            }
        )
