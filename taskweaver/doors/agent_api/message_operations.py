"""Operations on messages: send, watch, withdraw, stop, confirm."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator

from starlette.responses import Response

from taskweaver.doors.agent_api import models
from taskweaver.doors.agent_api.routes import ONE, AgentOperations, last_seen
from taskweaver.module.confirmation import Confirmation, ConfirmationReply, EditedContent
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.following import (
    check_position,
    encoded_event,
    event_number,
    event_stream,
)
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import EVENTS_TYPE, Call, missing, operation, plain_name, view

_ONE_MESSAGE = f"{ONE}/messages/{{message_id}}"


class MessageOperations(AgentOperations):
    """Operations on the messages of sessions."""

    @operation(
        "POST",
        f"{ONE}/messages",
        "Send a message to a branch; with `stream` the answer is that of .../events",
        status=202,
    )
    async def _send(
        self, call: Call, wanted: models.NewMessage
    ) -> Response | models.AcceptedMessage:
        conversation = await self._found(call)
        own = await self._own(call)
        message_id = wanted.message_id or f"message-{secrets.token_hex(8)}"
        after = conversation.session.events.last
        message = IndexedMessage(
            plain_name(message_id, "a message"),
            conversation.session.session_id,
            wanted.branch,
            wanted.kind,
            wanted.text,
        )
        share = await own.reserve(conversation, wanted.branch)
        accepted = await conversation.accept(call.user, message, share)
        if wanted.stream:
            return event_stream(self._events(conversation, accepted, after))
        return models.AcceptedMessage(message=message_view(accepted), after=after)

    @operation("GET", f"{ONE}/messages", "The messages of a session")
    async def _list(self, call: Call) -> models.MessageList:
        messages = await (await self._own(call)).messages(call.path("session_id"))
        return models.MessageList(messages=[message_view(item) for item in messages])

    @operation("GET", _ONE_MESSAGE, "A message and its answer")
    async def _show(self, call: Call) -> models.MessageView:
        index, names = (await self._own(call)).index, map(call.path, ("session_id", "message_id"))
        return message_view(await index.calls.in_thread(index.message_of, *names))

    @operation(
        "GET",
        f"{_ONE_MESSAGE}/events",
        "Events of the message's branch until it is answered; Last-Event-ID resumes",
        query={"after": "Number of the last event that was seen"},
        answer_type=EVENTS_TYPE,
    )
    async def _follow(self, call: Call) -> Response:
        conversation = await self._found(call)
        in_thread = conversation.index.calls.in_thread
        message = await in_thread(conversation.message, call.path("message_id"))
        after = check_position(conversation.session.events, event_number(last_seen(call)))
        return event_stream(self._events(conversation, message, after))

    async def _events(
        self, conversation: UserConversation, message: IndexedMessage, after: int
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of a branch until a message is done, then the message as it is."""
        log = conversation.session.events
        sources, positions = {"": log}, {"": after}
        end = conversation.open_messages.end_of(message.id)
        async for events in self._sessions.readers.follow(sources, positions, end):
            own = [one for _, one in events if json.loads(one.data)["branch"] == message.branch]
            after = own[-1].number if own else after
            parts = [encoded_event(str(one.number), one.kind, one.data) for one in own]
            if parts:
                yield b"".join(parts)
        index = conversation.index
        ended = await index.calls.in_thread(index.message, message.id)
        if ended is not None:
            data = message_view(ended).model_dump_json()
            yield encoded_event(str(after), "message", data)

    @operation("DELETE", _ONE_MESSAGE, "Withdraw a message that waits for its turn")
    async def _withdraw(self, call: Call) -> models.MessageView:
        conversation = await self._found(call)
        return message_view(await conversation.withdraw(call.path("message_id")))

    @operation("POST", f"{ONE}/stop", "Stop the answer that is under way on a branch", is_end=True)
    async def _stop(self, call: Call, wanted: models.BranchWanted) -> models.StoppedRound:
        own = await self._own(call)
        was_running = await own.stop(call.path("session_id"), wanted.branch)
        return models.StoppedRound(was_running=was_running)

    @operation("GET", f"{ONE}/confirmations", "Requests for confirmation that wait")
    async def _confirmations(self, call: Call) -> models.WaitingConfirmations:
        conversation = await self._found(call)
        waiting = [
            view(
                models.WaitingConfirmation,
                request,
                confirmation_id=request.id,
                branch=branch,
                kinds=sorted(request.kinds),
                diff=request.diff(),
            )
            for branch, request in conversation.confirmations.waiting()
        ]
        return models.WaitingConfirmations(confirmations=waiting)

    @operation(
        "POST", f"{ONE}/confirmations/{{confirmation_id}}", "Answer a request for confirmation"
    )
    async def _confirm(self, call: Call, given: models.ConfirmationAnswer) -> None:
        conversation = await self._found(call)
        wanted = call.path("confirmation_id")
        answer: ConfirmationReply = Confirmation[given.answer]
        if given.code is not None:
            answer = EditedContent(given.code)
        try:
            was_open = conversation.confirmations.provide_confirmation(wanted, answer)
        except ValueError as error:
            raise RequestRefused(422, "not-editable", str(error)) from error
        if not was_open:
            raise missing("Request for confirmation", wanted[:128])


def message_view(message: IndexedMessage) -> models.MessageView:
    """Return a message as clients see it."""
    return view(models.MessageView, message, message_id=message.id)
