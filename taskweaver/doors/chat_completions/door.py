"""The chat completions API as a door of the server.

A client sends its chat whole each time: the messages before the last find session, branch, round.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

from pydantic import BaseModel, Field
from starlette.responses import Response

from taskweaver.doors.chat_completions.chat_files import ChatFiles, FilePart
from taskweaver.doors.chat_completions.picture_links import PictureLinks, without_pictures
from taskweaver.memory.round import QUESTION_NOW
from taskweaver.server.admission import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.following import event_stream, until_left
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import PROGRESS, AgentSessions, SilentMessage
from taskweaver.server.agents.user_sessions import UserSessions
from taskweaver.server.errors import RequestRefused, invalid_body
from taskweaver.server.operations import Call, Door, missing, operation, view
from taskweaver.utils.redact import redact_known

MODEL = "taskweaver"
"""Name of the one model; others are taken as well, and mean the same."""


class ContentPart(BaseModel):
    """A part of a message: a text or a file."""

    type: str
    text: str = ""
    file: FilePart | None = None


class CompletionMessage(BaseModel):
    """A message of a chat. Further fields are not used."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """Parts of the message."""
        if isinstance(self.content, list):
            return self.content
        return [ContentPart(type="text", text=self.content or "")]

    @property
    def text(self) -> str:
        """Text of the message."""
        return "\n".join(part.text for part in self.parts if part.text)

    @property
    def files(self) -> list[FilePart]:
        """Files of the message."""
        return [part.file for part in self.parts if part.file]


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class CompletionRequest(BaseModel):
    """A request for a completion. Options of sampling and limits of tokens are not used."""

    model: str = MODEL
    messages: list[CompletionMessage] = Field(min_length=1, max_length=10_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = 1
    response_format: dict[str, Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


class CompletionUsage(BaseModel):
    """Tokens of a completion: the sum over all calls of the round."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class CompletionAnswer(BaseModel):
    """A completion."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: CompletionUsage


class OfferedModel(BaseModel):
    """A model that can be asked."""

    id: str = MODEL
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = MODEL


class OfferedModels(BaseModel):
    """The models that can be asked."""

    object: Literal["list"] = "list"
    data: list[OfferedModel]


_MOST_KEPT = 10_000
_HISTORY_CHARS = 100_000
_INSTRUCTIONS = frozenset({"system", "developer"})


class _Turn(NamedTuple):
    """The end of a round that answered a chat."""

    session_id: str
    branch: str
    rounds: int


class ChatPlace(NamedTuple):
    """The place where a chat goes on, and text and new files of the next message."""

    conversation: UserConversation
    branch: str
    text: str
    files: list[FilePart]


class ChatTurns:
    """Finds the session that a chat belongs to by the messages before the last."""

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self._known: OrderedDict[str, _Turn] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def place(
        self, user: User, messages: Sequence[CompletionMessage]
    ) -> AsyncIterator[ChatPlace]:
        """Give the place where a chat goes on, locked for this request until the context ends.

        A chat whose beginning was answered here goes on in its session; where another message
        followed then, on a fork. One that is not known begins a session, with its history as text.

        Raises:
            RequestRefused: If the last message is not the user's, or has more than text.
        """
        text = _question(messages)
        own = await self._sessions.of(user)
        known = self._known.get(_key(user, messages[:-1]))
        if known is not None:
            try:
                conversation = await own.conversation(known.session_id)
            except RequestRefused as error:
                if error.status != 404:
                    raise
            else:
                async with self._kept(own, conversation, known) as branch:
                    yield ChatPlace(conversation, branch, text, messages[-1].files)
                return
        async with own.asked("", text) as conversation:
            files = [file for message in messages for file in message.files]
            branch = conversation.session.branch
            yield ChatPlace(conversation, branch, with_history(messages), files)

    @asynccontextmanager
    async def _kept(
        self, own: UserSessions, conversation: UserConversation, known: _Turn
    ) -> AsyncIterator[str]:
        """Give the branch after a turn: of two requests at once, the second has a fork."""
        name, lock = known.branch, self._locks.setdefault(known.session_id, asyncio.Lock())
        async with lock:
            rounds = await asyncio.to_thread(conversation.branch(name).rounds)
            if len(rounds) != known.rounds or conversation.state(name) != "idle":
                name = await own.fork(conversation, name, at_round=known.rounds, waits=True)
            yield name

    def keep(
        self, user: User, messages: Sequence[CompletionMessage], place: ChatPlace, answer: str
    ) -> None:
        """Remember where a chat goes on after this answer."""
        branch = place.conversation.branch(place.branch)
        rounds = len(branch.rounds())
        said = CompletionMessage(role="assistant", content=answer)
        turn = _Turn(place.conversation.session.session_id, place.branch, rounds)
        self._known[_key(user, [*messages, said])] = turn
        while len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)


def _question(messages: Sequence[CompletionMessage]) -> str:
    """Return the text of the last message, which is the question.

    Raises:
        RequestRefused: If it is not the user's, or messages have more than text.
    """
    last = messages[-1]
    if last.role != "user" or not last.text.strip():
        detail = "The last message must be the user's, and have a text."
        raise invalid_body(detail)
    parts = [part for message in messages for part in message.parts]
    if any(part.type != ("file" if part.file else "text") for part in parts):
        detail = "The parts of messages are texts and files here; send a picture as a file."
        raise invalid_body(detail)
    return last.text


def _key(user: User, messages: Sequence[CompletionMessage]) -> str:
    """Return a digest of a user's chat, without instructions and white space around texts."""
    said = [
        (message.role, message.text.strip(), [file.model_dump() for file in message.files])
        for message in messages
        if message.role not in _INSTRUCTIONS
    ]
    return hashlib.sha256(json.dumps([user.name, said]).encode()).hexdigest() if said else ""


def with_history(messages: Sequence[CompletionMessage]) -> str:
    """Return the last message with the earlier messages as text, as far as there is room."""
    before = "\n\n".join(f"{item.role}: {item.text.strip()}" for item in messages[:-1])
    before = without_pictures(before)  # a model's provider is to see none
    if not before.strip():
        return messages[-1].text
    shown = before[-_HISTORY_CHARS:]
    return f"Earlier in this chat:\n\n{shown}\n\n{QUESTION_NOW}\n\n{messages[-1].text}"


_PIECE_CHARS = 400
_MOST_BODY_BYTES = 16 << 20  # files in messages; larger ones are uploaded
_UNBOUND = "A limit of tokens is not used here: the keys limits.* of the project bound an answer.\n"


class ChatCompletions(Door):
    """The chat completions API. The agent API finishes and closes the sessions."""

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self._turns = ChatTurns(sessions)
        self._links = PictureLinks(sessions)
        self._files = ChatFiles(sessions)
        self.groups = (self._links, self._files)

    @operation("GET", "/v1/models", "The models of the OpenAI-compatible routes: one")
    async def _models(self, _call: Call) -> OfferedModels:
        return OfferedModels(data=[OfferedModel()])

    @operation("GET", "/v1/models/{model}", "A model of the OpenAI-compatible routes")
    async def _model(self, call: Call) -> OfferedModel:
        if call.path("model") != MODEL:
            raise missing("Model", call.path("model")[:64])
        return OfferedModel()

    @operation(
        "POST",
        "/v1/chat/completions",
        "Answer a chat; with `stream` the answer is server-sent events",
        body_limit=_MOST_BODY_BYTES,
    )
    async def _complete(self, call: Call, wanted: CompletionRequest) -> Response | CompletionAnswer:
        if wanted.n != 1:
            raise invalid_body("n must be 1: there is one answer.")
        if (wanted.response_format or {"type": "text"}).get("type") != "text":
            detail = "Answers are text: another form is not promised. Ask for it in the question."
            raise invalid_body(detail)
        completion_id = f"chatcmpl-{secrets.token_hex(12)}"
        async with self._turns.place(call.user, wanted.messages) as place:
            conversation, branch = place.conversation, place.branch
            notes = await self._files.bring(call.user, conversation, branch, place.files)
            text, session_id = "\n".join([*notes, place.text]), conversation.session.session_id
            message = IndexedMessage(completion_id, session_id, branch, "ask", text)
            sent = SilentMessage(self._sessions, call.user, conversation, message)
            await sent.submit()
        began = int(time.time())
        completion = _Completion(self._turns, self._links, call, wanted, place, sent, began)
        return event_stream(completion.chunks()) if wanted.stream else await completion.whole()


@dataclass(frozen=True, slots=True)
class _Completion:
    """A completion that is being answered."""

    turns: ChatTurns
    links: PictureLinks
    call: Call
    wanted: CompletionRequest
    place: ChatPlace
    sent: SilentMessage
    created: int

    async def _steps(self) -> AsyncIterator[str]:
        """Yield what is under way, a line each."""
        limit = self.wanted.max_completion_tokens or self.wanted.max_tokens
        if limit is not None:
            yield _UNBOUND
        async for kind, text in self.sent.events():
            if kind in PROGRESS:
                yield f"{redact_known(text).rstrip()}\n"

    async def _outcome(self) -> str:
        """Return the answer with the pictures, and remember where the chat goes on.

        Raises:
            RequestRefused: If there is none; its text is the reason.
        """
        conversation = self.place.conversation
        ended = await conversation.index.calls.in_thread(conversation.message, self.sent.message.id)
        if ended.state != "finished":
            raise RequestRefused(422, "not-answered", ended.answer or f"It was {ended.state}.")
        text = await self.links.answer(self.call, ended)
        self.turns.keep(self.call.user, self.wanted.messages, self.place, text)
        return text

    async def whole(self) -> CompletionAnswer:
        """Return the whole answer. A client that leaves early stops the answer."""
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
            id=self.sent.message.id,
            created=self.created,
            model=self.wanted.model,
            choices=[choice],
            usage=self._usage(),
        )

    async def _give_up_without_client(self) -> None:
        await until_left(self.call.request.receive)
        await self.sent.give_up()

    def _usage(self) -> CompletionUsage:
        branch = self.place.conversation.branch(self.place.branch)
        return view(CompletionUsage, branch.round_usage)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the answer as server-sent events. A reader that leaves early stops the answer."""
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
            options = self.wanted.stream_options
            if options is not None and options.include_usage:
                yield self._chunk(None, usage=self._usage().model_dump())
            yield b"data: [DONE]\n\n"
        finally:
            await self.sent.give_up()

    def _chunk(
        self, delta: Mapping[str, str] | None, *, finish_reason: str | None = None, **more: Any
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _data_event(
            {
                "id": self.sent.message.id,
                "object": "chat.completion.chunk",
                "created": self.created,
                "model": self.wanted.model,
                "choices": [] if delta is None else [choice],
                **more,
            }
        )


def _data_event(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a server-sent event with JSON."""
    return f"data: {json.dumps(content)}\n\n".encode()
