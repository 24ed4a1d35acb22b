"""Chats: requests and answers of the API, and the place where a chat goes on.

A client sends its chat whole each time: the messages before the last find session, branch, round.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, Field

from taskweaver.doors.chat_completions.picture_links import without_pictures
from taskweaver.server.accounts import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused

MODEL = "taskweaver"
"""Name of the one model; others are taken as well, and mean the same."""


class ContentPart(BaseModel):
    """A part of a message."""

    type: str
    text: str = ""


class CompletionMessage(BaseModel):
    """A message of a chat; further fields are not used."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """Its text."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text)
        return self.content or ""

    @property
    def has_only_text(self) -> bool:
        """Whether it has no picture or other data."""
        parts = self.content if isinstance(self.content, list) else []
        return all(part.type == "text" for part in parts)


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


def require_text_form(form: dict[str, Any] | None) -> None:
    """Check that the answer is wanted as text; raises RequestRefused."""
    if form is not None and form.get("type") != "text":
        detail = "Answers are text: another form is not promised. Ask for it in the question."
        raise RequestRefused(422, "invalid-body", detail)


class CompletionRequest(BaseModel):
    """A request for a completion; options of sampling and limits of tokens are not used."""

    model_config = ConfigDict(extra="ignore")

    model: str = MODEL
    messages: list[CompletionMessage] = Field(min_length=1, max_length=10_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = 1
    response_format: dict[str, Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


class CompletionUsage(BaseModel):
    """Tokens of a completion: those of all calls of its round."""

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
_TITLE_CHARS = 60
_HISTORY_CHARS = 100_000
_INSTRUCTIONS = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class _Turn:
    """The end of a round that answered a chat."""

    session_id: str
    branch: str
    rounds: int


@dataclass(frozen=True, slots=True)
class ChatPlace:
    """The place where a chat goes on, and the text of the message to it."""

    conversation: UserConversation
    branch: str
    text: str


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
        """Give the place where a chat goes on, kept from other requests until the context ends.

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
                async with self._kept(conversation, known) as branch:
                    yield ChatPlace(conversation, branch, text)
                return
        title = text.strip().splitlines()[0][:_TITLE_CHARS]
        conversation = await own.create(title)
        yield ChatPlace(conversation, conversation.session.branch, with_history(messages))

    @asynccontextmanager
    async def _kept(self, conversation: UserConversation, known: _Turn) -> AsyncIterator[str]:
        """Give the branch after a turn: of two requests at once, the second has a fork."""
        lock = self._locks.setdefault(known.session_id, asyncio.Lock())
        async with lock:
            yield await self._branch(conversation, known)

    @staticmethod
    async def _branch(conversation: UserConversation, known: _Turn) -> str:
        branch = conversation.branch(known.branch)
        is_newest = len(await asyncio.to_thread(branch.rounds)) == known.rounds
        if is_newest and conversation.state(known.branch) == "idle":
            return known.branch
        return await conversation.change(
            known.branch, lambda source: source.fork(at_round=known.rounds), waits=True
        )

    def keep(
        self, user: User, messages: Sequence[CompletionMessage], place: ChatPlace, answer: str
    ) -> None:
        """Remember where a chat goes on once it has this answer."""
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
    last = messages[-1] if messages else None
    if last is None or last.role != "user" or not last.text.strip():
        detail = "The last message must be the user's, and have a text."
        raise RequestRefused(422, "invalid-body", detail)
    if not all(message.has_only_text for message in messages):
        detail = "Messages have texts only here; files go up by the agent API."
        raise RequestRefused(422, "invalid-body", detail)
    return last.text


def _key(user: User, messages: Sequence[CompletionMessage]) -> str:
    """Return a digest of a user's chat, without instructions and white space around texts."""
    said = [
        (message.role, message.text.strip())
        for message in messages
        if message.role not in _INSTRUCTIONS
    ]
    return hashlib.sha256(json.dumps([user.name, said]).encode()).hexdigest() if said else ""


def with_history(messages: Sequence[CompletionMessage]) -> str:
    """Return the last message with those before it as text, as far as there is room."""
    before = "\n\n".join(f"{item.role}: {item.text.strip()}" for item in messages[:-1])
    before = without_pictures(before)  # a model's provider is to see none
    if not before.strip():
        return messages[-1].text
    shown = before[-_HISTORY_CHARS:]
    return f"Earlier in this chat:\n\n{shown}\n\nThe question now:\n\n{messages[-1].text}"
