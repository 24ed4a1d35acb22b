"""Event streams: numbered events of several sources, followed as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from typing import NamedTuple, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from taskweaver.server.databases.statements import DatabaseLost, LoopCalls
from taskweaver.server.errors import RequestRefused, conflict
from taskweaver.server.operations import EVENTS_TYPE
from taskweaver.session.errors import EventsGone, EventsToCome, SessionClosed, SessionError
from taskweaver.session.storage.event_log import NumberedEvent
from taskweaver.utils.redact import redact_known

_KEEP_ALIVE_S = 15.0
"""Most time without a byte on a stream, and without a look at its sources."""
_AT_ONCE = 200
_GATHERED_S = 0.016  # a frame of a screen
_KEEP_ALIVE = b": keepalive\n\n"


class Listenable(Protocol):
    """A thing that calls functions after changes."""

    def listen(self, on_event: Callable[[], None]) -> None:
        """Call a function after each event, from any thread."""

    def unlisten(self, on_event: Callable[[], None]) -> None:
        """Call a function no longer."""


NamedEvents = list[tuple[str, NumberedEvent]]


class EventSource(Listenable, Protocol):
    """A source of numbered events."""

    def read(self, after: int, limit: int) -> Sequence[NumberedEvent]:
        """Return the events after one, oldest first."""


class StreamEnd(NamedTuple):
    """End of a stream.

    Attributes:
        is_reached: Whether the stream ends now.
        source: Changes of this may be the end.
    """

    is_reached: Callable[[], bool]
    source: Listenable


class Alarm:
    """Wakes a reader in the event loop, from any thread.

    The reader calls `reset` before it looks for what is new, and then waits or looks again: what
    rings meanwhile ends the wait at once.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._has_rung = False
        self._rung, self._urgent = asyncio.Event(), asyncio.Event()

    def ring(self) -> None:
        """Wake a reader that waits. A reader that pauses looks after the pause."""
        if not self._has_rung:  # of many rings between two looks, the loop hears of one
            self._has_rung = True
            self._tell(self._rung)

    def ring_at_once(self) -> None:
        """Wake a reader that waits or pauses."""
        self._tell(self._urgent)
        self.ring()

    def _tell(self, event: asyncio.Event) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody reads any more
            self._loop.call_soon_threadsafe(event.set)

    def reset(self) -> None:
        """Forget what rang so far."""
        self._rung.clear()
        self._urgent.clear()
        self._has_rung = False  # a ring before this is of what the reader looks for next

    async def wait(self) -> bool:
        """Wait for a ring. Return False after `_KEEP_ALIVE_S` without a ring."""
        return await _is_set(self._rung, _KEEP_ALIVE_S)

    async def pause(self) -> None:
        """Let events gather for a moment, except after an urgent ring."""
        await _is_set(self._urgent, _GATHERED_S)


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
    return event.is_set()


class StreamReaders:
    """The readers of event streams, which all end when the server stops."""

    def __init__(self) -> None:
        self._alarms: set[Alarm] = set()
        self.is_stopping = False

    def stop(self) -> None:
        """End all streams after the events that are there."""
        self.is_stopping = True
        for alarm in tuple(self._alarms):
            alarm.ring_at_once()

    async def follow(
        self,
        sources: Mapping[str, EventSource],
        positions: Mapping[str, int],
        end: StreamEnd | None = None,
        calls: LoopCalls | None = None,
    ) -> AsyncIterator[Sequence[tuple[str, NumberedEvent]]]:
        """Yield events of sources after given positions, each with the source's name.

        The stream ends at its `end`, and when the server stops, once all that came before is
        yielded; and when a reader is so slow that events are no longer kept, or no source is left.
        Sources are read up to the last that changed, and all in a silence: a database that comes
        last, and is read by its `calls`, holds up nothing as long as it does not change.
        """
        now, left, changed = dict(positions), dict(sources), set(sources)
        with self._heard(sources, end, changed) as alarm:
            while True:
                alarm.reset()
                will_end = self.is_stopping or (end is not None and end.is_reached())
                names = list(left)
                while names and names[-1] not in changed:
                    names.pop()
                changed.difference_update(names)  # first: they are read again if they ring now
                try:
                    read = partial(_new_events, left, now)
                    if calls is not None and len(names) == len(left):
                        events = await _read_all(calls, read, names)
                    else:
                        events = read(names)
                except SessionError:  # the reader asks anew, and is told what it missed
                    return
                now |= {name: event.number for name, event in events}
                if events:
                    yield events
                    if len(events) >= _AT_ONCE:
                        changed.update(names)  # they may have more
                        await asyncio.sleep(0)  # others have their turn
                    elif not will_end:
                        await alarm.pause()  # of a live answer, the next events go in one piece
                elif will_end or not left:
                    return
                elif not await alarm.wait():
                    changed.update(left)

    @contextmanager
    def _heard(
        self, sources: Mapping[str, EventSource], end: StreamEnd | None, changed: set[str]
    ) -> Iterator[Alarm]:
        """Give an alarm that sources and an end ring, as does the stop of the server.

        The names of sources that rang are added to `changed`.
        """
        alarm = Alarm()

        def ring(name: str) -> None:
            changed.add(name)
            alarm.ring()

        rings: list[tuple[Listenable, Callable[[], None]]]
        rings = [(source, partial(ring, name)) for name, source in sources.items()]
        if end is not None:
            rings.append((end.source, alarm.ring_at_once))
        self._alarms.add(alarm)
        for source, on_event in rings:
            source.listen(on_event)
        try:
            yield alarm
        finally:
            self._alarms.discard(alarm)
            for source, on_event in rings:
                source.unlisten(on_event)


async def _read_all(
    calls: LoopCalls, read: Callable[[Sequence[str]], NamedEvents], names: list[str]
) -> NamedEvents:
    """Return the new events of all sources, of which the last is a database that may be away."""
    try:
        return await calls.in_thread(read, names)
    except DatabaseLost:  # it rings when it is there again, and is read after a silence
        return read(names[:-1])


def _new_events(
    sources: dict[str, EventSource], positions: Mapping[str, int], names: Sequence[str]
) -> NamedEvents:
    """Return the next events of some sources. A closed source is left out from now on.

    What a source tells comes after what the sources before it had told by then: the last one is
    read first, and waits while one before it has more.
    """
    read: dict[str, Sequence[NumberedEvent]] = {}
    for name in reversed(names):
        try:
            read[name] = source_events = sources[name].read(positions[name], _AT_ONCE)
        except SessionClosed:
            del sources[name]
            continue
        if len(source_events) >= _AT_ONCE:
            read = {name: source_events}
    return [(name, event) for name in reversed(read) for event in read[name]]


def check_position(source: EventSource, after: int) -> int:
    """Return the number after which a reader goes on, if the source has the next events.

    Raises:
        RequestRefused: If it has them no longer (410), or not yet (409).
    """
    try:
        source.read(after, 1)
    except EventsGone as error:
        raise RequestRefused(410, "events-gone", str(error)) from error
    except EventsToCome as error:
        raise conflict(str(error)) from error
    return after


def event_number(text: str) -> int:
    """Return the number of the last event that a client saw, or 0 for an empty text.

    Raises:
        RequestRefused: If it is no number.
    """
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise RequestRefused(400, "event-id", "The number of an event has at most 18 digits.")
    return int(text)


def encoded_event(event_id: str, kind: str, data: str) -> bytes:
    """Return a server-sent event, with known secrets masked."""
    return f"id: {event_id}\nevent: {kind}\ndata: {redact_known(data)}\n\n".encode()


class _EventStream(Response):
    """A response whose content is sent piece by piece, and closed when the client leaves."""

    def __init__(self, content: AsyncGenerator[bytes, None], headers: Mapping[str, str]) -> None:
        super().__init__(None, 200, headers, EVENTS_TYPE)
        self._content = content
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the response."""
        sending = asyncio.ensure_future(self._send_content(send))
        leaving = asyncio.ensure_future(until_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()  # of no effect when all was sent
        await asyncio.wait((sending,))
        if not sending.cancelled():
            sending.result()

    async def _send_content(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        keeping = asyncio.ensure_future(_keep_alive(send))
        try:
            async with aclosing(self._content) as content:
                async for chunk in content:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            keeping.cancel()  # before the last part: nothing may be sent after that
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _keep_alive(send: Send) -> None:
    """Send comments for ever, whatever else a stream sends: a silent one looks dead to clients."""
    while True:
        await asyncio.sleep(_KEEP_ALIVE_S)
        await send({"type": "http.response.body", "body": _KEEP_ALIVE, "more_body": True})


async def until_left(receive: Receive) -> None:
    """Wait until the client of a request has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def event_stream(content: AsyncGenerator[bytes, None]) -> Response:
    """Return a response with server-sent events. A chunk never ends inside of an event."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return _EventStream(content, headers)
