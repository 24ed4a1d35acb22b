"""The chat completions API as a door of the server."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from starlette.responses import Response

from taskweaver.doors.chat_completions.chats import (
    MODEL,
    ChatPlace,
    ChatTurns,
    CompletionAnswer,
    CompletionRequest,
    CompletionUsage,
    OfferedModel,
    OfferedModels,
    require_text_form,
)
from taskweaver.doors.chat_completions.picture_links import PictureLinks
from taskweaver.server.agents.following import event_stream, until_left
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import PROGRESS, AgentSessions, SilentMessage
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import Call, Door, missing, operation, view
from taskweaver.utils.redact import redact_known

_PIECE_CHARS = 400
_UNBOUND = "A limit of tokens is not used here: the keys limits.* of the project bound an answer.\n"


class ChatCompletions(Door):
    """The chat completions API. The agent API, whose sessions it uses, finishes and closes them."""

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self._turns = ChatTurns(sessions)
        self._links = PictureLinks(sessions)
        self.groups = (self._links,)

    @operation("GET", "/v1/models", "The models of the OpenAI-compatible routes: one")
    async def _models(self, _call: Call) -> OfferedModels:
        return OfferedModels(data=[OfferedModel()])

    @operation(
        "GET", "/v1/models/{model}", "A model of the OpenAI-compatible routes", problems=(404,)
    )
    async def _model(self, call: Call) -> OfferedModel:
        if call.path("model") != MODEL:
            raise missing("Model", call.path("model")[:64])
        return OfferedModel()

    @operation(
        "POST",
        "/v1/chat/completions",
        "Answer a chat; with `stream` the answer is server-sent events",
        problems=(409,),
    )
    async def _complete(self, call: Call, wanted: CompletionRequest) -> Response | CompletionAnswer:
        if wanted.n != 1:
            raise RequestRefused(422, "invalid-body", "n must be 1: there is one answer.")
        require_text_form(wanted.response_format)
        own = await self._sessions.of(call.user)
        await own.check_disk(call.user)
        completion_id = f"chatcmpl-{secrets.token_hex(12)}"
        async with self._turns.place(call.user, wanted.messages) as place:
            session_id = place.conversation.session.session_id
            message = IndexedMessage(completion_id, session_id, place.branch, "ask", place.text)
            sent = SilentMessage(self._sessions, call.user, place.conversation, message)
            await sent.submit()
        completion = _Completion(self._turns, self._links, call, wanted, place, sent)
        return event_stream(completion.chunks()) if wanted.stream else await completion.whole()


class _Completion:
    """A completion, as it comes."""

    def __init__(
        self,
        turns: ChatTurns,
        links: PictureLinks,
        call: Call,
        wanted: CompletionRequest,
        place: ChatPlace,
        message: SilentMessage,
    ) -> None:
        self._turns = turns
        self._links = links
        self._call = call
        self._wanted = wanted
        self._place = place
        self._message = message
        self._created = int(time.time())

    async def _steps(self) -> AsyncIterator[str]:
        """Yield what is under way, a line each."""
        limit = self._wanted.max_completion_tokens or self._wanted.max_tokens
        if limit is not None:
            yield _UNBOUND
        async for kind, text in self._message.events():
            if kind in PROGRESS:
                yield f"{redact_known(text)}\n"

    async def _outcome(self) -> str:
        """Return the answer with its pictures, and remember where its chat goes on.

        Raises:
            RequestRefused: If there is none; its text is the reason.
        """
        conversation = self._place.conversation
        ended = await conversation.index.calls.in_thread(conversation.message, self._message.id)
        if ended.state != "finished":
            raise RequestRefused(422, "not-answered", ended.answer or f"It was {ended.state}.")
        text = await self._links.answer(self._call, ended)
        self._turns.keep(self._call.user, self._wanted.messages, self._place, text)
        return text

    async def whole(self) -> CompletionAnswer:
        """Return the answer when it is there; a client that leaves before stops it."""
        leaving = asyncio.ensure_future(self._give_up_without_client())
        try:
            steps = "".join([step async for step in self._steps()])
        finally:
            leaving.cancel()
            await asyncio.wait({leaving})
        message = {"role": "assistant", "content": await self._outcome()}
        if steps:
            message["reasoning_content"] = steps
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return CompletionAnswer(
            id=self._message.id,
            created=self._created,
            model=self._wanted.model,
            choices=[choice],
            usage=self._usage(),
        )

    async def _give_up_without_client(self) -> None:
        await until_left(self._call.request.receive)
        await self._message.give_up()

    def _usage(self) -> CompletionUsage:
        branch = self._place.conversation.branch(self._place.branch)
        return view(CompletionUsage, branch.round_usage)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the answer as server-sent events; a reader that leaves before its end stops it."""
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for line in self._steps():
                yield self._chunk({"reasoning_content": line})
            try:
                answer = await self._outcome()
            except RequestRefused as error:
                problem = {"message": str(error), "type": error.kind, "code": error.kind}
                yield _data_event({"error": problem})
                return
            for start in range(0, len(answer), _PIECE_CHARS):
                yield self._chunk({"content": answer[start : start + _PIECE_CHARS]})
            yield self._chunk({}, finish_reason="stop")
            options = self._wanted.stream_options
            if options is not None and options.include_usage:
                yield self._chunk(None, usage=self._usage().model_dump())
            yield b"data: [DONE]\n\n"
        finally:
            await self._message.give_up()

    def _chunk(
        self, delta: Mapping[str, str] | None, *, finish_reason: str | None = None, **more: Any
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _data_event(
            {
                "id": self._message.id,
                "object": "chat.completion.chunk",
                "created": self._created,
                "model": self._wanted.model,
                "choices": [] if delta is None else [choice],
                **more,
            }
        )


def _data_event(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a server-sent event with JSON."""
    return f"data: {json.dumps(content)}\n\n".encode()
