"""The chat completions API as a door of the server."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
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
from taskweaver.llm.types import Usage
from taskweaver.server.accounts import User
from taskweaver.server.agents.confirming import progress_line
from taskweaver.server.agents.following import event_stream, until_left
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import Call, Door, missing, operation
from taskweaver.utils.redact import redact_known

_PIECE_CHARS = 400
_UNBOUND = "A limit of tokens is not used here: the keys limits.* of the project bound an answer.\n"


class ChatAnswer:
    """The answer to a message.

    Attributes:
        place: The place of the message.
    """

    def __init__(
        self,
        links: PictureLinks,
        call: Call,
        place: ChatPlace,
        message_id: str,
        limit: int | None = None,
    ) -> None:
        """Prepare for the answer to a message that `submit` sends to a place.

        Args:
            links: Addresses of its pictures.
            call: The request.
            place: The place.
            message_id: Id of the message.
            limit: Limit of its tokens; one that is set is said to be unused.
        """
        self._links = links
        self._sessions = links.sessions
        self._call = call
        self.place = place
        self._id = message_id
        self._note = "" if limit is None else _UNBOUND
        self._after = place.conversation.session.events.last

    async def submit(self) -> None:
        """Send the message.

        Raises:
            RequestRefused: If the user may have no further kernel, money or message.
        """
        place, user = self.place, self._call.user
        own = await self._sessions.of(user)
        await own.check_kernels(user, place.conversation, place.branch)
        session_id = place.conversation.session.session_id
        message = IndexedMessage(self._id, session_id, place.branch, "ask", place.text)
        await place.conversation.submit(user, message)

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._id not in self.place.conversation.open_messages

    async def progress(self) -> AsyncIterator[str]:
        """Yield what is under way, a line each."""
        if self._note:
            yield self._note
        conversation = self.place.conversation
        session_id = conversation.session.session_id
        log, end = conversation.session.events, conversation.open_messages.end_of(self._id)
        async for events in self._sessions.readers.follow({"": log}, {"": self._after}, end):
            for _, event in events:
                fields = json.loads(event.data)
                if fields["branch"] == self.place.branch and fields["msg"]:
                    line = progress_line(event.kind, fields["msg"], session_id)
                    if line:
                        yield f"{redact_known(line)}\n"

    @asynccontextmanager
    async def stopped_without_client(self) -> AsyncIterator[None]:
        """Stop the answer if the client leaves before the end of the block."""
        leaving = asyncio.ensure_future(self._stop_without_client())
        try:
            yield
        finally:
            leaving.cancel()
            await asyncio.wait({leaving})

    async def _stop_without_client(self) -> None:
        await until_left(self._call.request.receive)
        await self.give_up()

    async def text(self) -> str:
        """Return its text once it is there, with the addresses of its pictures.

        Raises:
            RequestRefused: If it was not answered; its text is the reason.
        """
        conversation = self.place.conversation
        ended = await conversation.index.calls.in_thread(partial(conversation.message, self._id))
        if ended.state != "finished":
            raise RequestRefused(422, "not-answered", ended.answer or f"It was {ended.state}.")
        return await self._links.answer(self._call, ended)

    @property
    def usage(self) -> Usage:
        """Consumption of its round."""
        return self.place.conversation.branch(self.place.branch).round_usage

    async def give_up(self) -> None:
        """Stop it unless it has ended."""
        if not self.is_done:
            await self.place.conversation.give_up(self._id)


def pieces(text: str) -> list[str]:
    """Return a text in the pieces in which it is streamed."""
    return [text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS)]


def data_event(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a server-sent event with JSON."""
    return f"data: {json.dumps(content)}\n\n".encode()


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
        wanted: CompletionRequest,
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

    async def whole(self) -> CompletionAnswer:
        """Return the answer when it is there; a client that leaves before stops it."""
        async with self._answer.stopped_without_client():
            steps = "".join([step async for step in self._answer.progress()])
        message = {"role": "assistant", "content": await self._outcome()}
        if steps:
            message["reasoning_content"] = steps
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return CompletionAnswer(
            id=self._id,
            created=self._created,
            model=self._wanted.model,
            choices=[choice],
            usage=self._usage(),
        )

    def _usage(self) -> CompletionUsage:
        usage = self._answer.usage
        return CompletionUsage(
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
