"""The chat completions API as a door of the server."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from starlette.responses import Response

from taskweaver.doors.chat_completions import models
from taskweaver.doors.chat_completions.answering import ChatAnswer, data_event, pieces
from taskweaver.doors.chat_completions.picture_links import PictureLinks
from taskweaver.doors.chat_completions.turns import ChatTurns
from taskweaver.server.accounts import User
from taskweaver.server.agents.following import event_stream
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import Call, Door, missing, operation


class ChatCompletions(Door):
    """The chat completions API. The agent API, whose sessions it uses, finishes and closes them."""

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self._turns = ChatTurns(sessions)
        self._links = PictureLinks(sessions)
        self.groups = (self._links,)

    @operation("GET", "/v1/models", "The models of the OpenAI-compatible routes: one")
    async def _models(self, _call: Call) -> models.OfferedModels:
        return models.OfferedModels(data=[models.OfferedModel()])

    @operation(
        "GET", "/v1/models/{model}", "A model of the OpenAI-compatible routes", problems=(404,)
    )
    async def _model(self, call: Call) -> models.OfferedModel:
        if call.path("model") != models.MODEL:
            raise missing("Model", call.path("model")[:64])
        return models.OfferedModel()

    @operation(
        "POST",
        "/v1/chat/completions",
        "Answer a chat; with `stream` the answer is server-sent events",
        problems=(409,),
    )
    async def _complete(
        self, call: Call, wanted: models.CompletionRequest
    ) -> Response | models.CompletionAnswer:
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
        completion = _Completion(self._turns, call.user, wanted, answer, completion_id)
        return event_stream(completion.chunks()) if wanted.stream else await completion.whole()


class _Completion:
    """A completion, as it comes."""

    def __init__(
        self,
        turns: ChatTurns,
        user: User,
        wanted: models.CompletionRequest,
        answer: ChatAnswer,
        completion_id: str,
    ) -> None:
        self._turns = turns
        self._user = user
        self._wanted = wanted
        self._answer = answer
        self._id = completion_id
        self._created = int(time.time())

    async def _outcome(self) -> str:
        """Return the answer, and remember where its chat goes on; raises as `ChatAnswer`."""
        text = await self._answer.text()
        self._turns.keep(self._user, self._wanted.messages, self._answer.place, text)
        return text

    async def whole(self) -> models.CompletionAnswer:
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
