"""The answer to a message of a chat, as it comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from taskweaver.doors.chat_completions.picture_links import PictureLinks
from taskweaver.doors.chat_completions.turns import ChatPlace
from taskweaver.llm.types import Usage
from taskweaver.server.agents.confirming import progress_line
from taskweaver.server.agents.following import until_left
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import Call
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
