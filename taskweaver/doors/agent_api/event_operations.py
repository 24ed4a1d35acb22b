"""Event streams: of one session, and of several and of searches with the changes of the index."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from starlette.responses import Response

from taskweaver.doors.agent_api.routes import ONE, PREFIX, AgentOperations, last_seen
from taskweaver.server.agents.following import (
    EventSource,
    check_position,
    encoded_event,
    event_number,
    event_stream,
)
from taskweaver.server.databases.statements import LoopCalls
from taskweaver.server.errors import invalid_query
from taskweaver.server.operations import EVENTS_TYPE, Call, operation, require_admin
from taskweaver.session.storage.event_log import NumberedEvent, read_events
from taskweaver.treesearch.service import find_run

_INDEX = "changes"
_MOST_SESSIONS = 32
_LOOK_S = 0.25


class SearchEvents:
    """Events of one branch of a run or of all branches, from a file that the search writes.

    The search is another process and cannot notify listeners, so they look at the file regularly.
    """

    def __init__(self, folder: Path, branch: str) -> None:
        self._folder, self._branch = folder, branch
        self._looked = 0
        self._ringing: asyncio.Task[None] | None = None

    def read(self, after: int, limit: int) -> list[NumberedEvent]:
        """Return the events after one; raises as `read_events`."""
        after = max(after, self._looked)
        found, newest = read_events(self._folder, self._branch, after, limit)
        if not found:  # those of other branches are not looked at again
            self._looked = newest
        return found

    def listen(self, on_event: Callable[[], None]) -> None:
        """Call a function every `_LOOK_S` seconds."""

        async def ring() -> None:
            while True:
                await asyncio.sleep(_LOOK_S)
                on_event()

        self._ringing = asyncio.ensure_future(ring())

    def unlisten(self, _on_event: Callable[[], None]) -> None:
        """Stop the calls of `listen`."""
        if self._ringing is not None:
            self._ringing.cancel()


class EventOperations(AgentOperations):
    """Event streams."""

    @operation(
        "GET",
        f"{ONE}/events",
        "Events of a session, on all branches; Last-Event-ID resumes",
        query={"after": "Number of the last event that was seen"},
        answer_type=EVENTS_TYPE,
    )
    async def _of_one(self, call: Call) -> Response:
        conversation = await self._found(call)
        log = conversation.session.events
        after = check_position(log, event_number(last_seen(call)))

        async def content() -> AsyncGenerator[bytes, None]:
            with conversation.confirmations.watched():
                async for events in self._sessions.readers.follow({"": log}, {"": after}):
                    yield b"".join(
                        encoded_event(str(one.number), one.kind, one.data) for _, one in events
                    )

        return event_stream(content())

    @operation(
        "GET",
        f"{PREFIX}/events",
        "Events of several sessions and searches, and changes of the list, in one stream",
        query={
            "sessions": "Ids of sessions, and RUN/BRANCH for an attempt of a search, RUN/ for all"
            " attempts, joined by commas",
            "after": "Id of the last event that was seen; Last-Event-ID goes before it",
        },
        answer_type=EVENTS_TYPE,
    )
    async def _of_many(self, call: Call) -> Response:
        own = await self._own(call)
        wanted = list(dict.fromkeys(filter(None, call.query("sessions").split(","))))
        if len(wanted) > _MOST_SESSIONS:
            detail = f"A stream has at most {_MOST_SESSIONS} sessions."
            raise invalid_query(detail)
        runs = {name: await self._of_run(call, name) for name in wanted if "/" in name}
        conversations = {name: await own.conversation(name) for name in wanted if "/" not in name}
        logs = {name: one.session.events for name, one in conversations.items()}
        # The index comes last: who hears of an outcome has heard the events before it.
        sources: dict[str, EventSource] = {**runs, **logs, _INDEX: own.index}
        seen = _positions(last_seen(call))

        def begin() -> dict[str, int]:
            now = dict.fromkeys(runs, 0) | {name: log.last for name, log in logs.items()}
            now[_INDEX] = own.index.last_change
            now |= {name: number for name, number in seen.items() if name in sources}
            for name, source in sources.items():
                check_position(source, now[name])
            return now

        positions = await own.index.calls.in_thread(begin)
        watched = [one.confirmations.watched() for one in conversations.values()]
        return event_stream(self._joined(sources, positions, own.index.calls, watched))

    async def _of_run(self, call: Call, name: str) -> SearchEvents:
        require_admin(call.user, "Searches")
        run, _, branch = name.partition("/")
        places = await asyncio.to_thread(find_run, self._sessions.app, run)
        return SearchEvents(places.logs, branch)

    async def _joined(
        self,
        sources: Mapping[str, EventSource],
        positions: dict[str, int],
        calls: LoopCalls,
        watched: Sequence[AbstractContextManager[None]],
    ) -> AsyncGenerator[bytes, None]:
        """Yield the positions to begin with, then the events of all sources."""
        now = dict(positions)
        with ExitStack() as watching:
            for one in watched:
                watching.enter_context(one)
            yield encoded_event(_event_id(now), "position", json.dumps(now))
            async for events in self._sessions.readers.follow(sources, positions, calls=calls):
                parts = []
                for name, event in events:
                    now[name] = event.number
                    fields = {"number": event.number, **json.loads(event.data)}
                    if name != _INDEX:
                        fields["session_id"] = name
                    parts.append(encoded_event(_event_id(now), event.kind, json.dumps(fields)))
                yield b"".join(parts)


def _event_id(positions: Mapping[str, int]) -> str:
    return ",".join(f"{name}:{number}" for name, number in positions.items())


def _positions(text: str) -> dict[str, int]:
    """Return the positions in the id of an event; raises RequestRefused for another form."""
    parts = (part.partition(":") for part in filter(None, text.split(",")))
    return {name: event_number(number) for name, _, number in parts}
