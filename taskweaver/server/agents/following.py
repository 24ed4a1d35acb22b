"""Event streams: numbered events of several sources, followed as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.responses import StreamingResponse

from taskweaver.server.errors import RequestRefused, conflict
from taskweaver.server.operations import EVENTS_TYPE
from taskweaver.session.errors import EventsGone, EventsToCome, SessionClosed, SessionError
from taskweaver.utils.redact import redact_known

_KEEP_ALIVE_S = 15.0
_AT_ONCE = 200
_GATHERED_S = 0.004
KEEP_ALIVE = b": keepalive\n\n"


class SourceEvent(Protocol):
    """An event with a number, a kind, and its fields as JSON."""

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def data(self) -> str:
        """Its fields, as JSON."""


class Listenable(Protocol):
    """A thing that calls functions when it changes."""

    def listen(self, on_event: Callable[[], None]) -> None:
        """Call a function after each event, from any thread."""

    def unlisten(self, on_event: Callable[[], None]) -> None:
        """Call a function no longer."""


class EventSource(Listenable, Protocol):
    """A source of numbered events."""

    def read(self, after: int, limit: int) -> Sequence[SourceEvent]:
        """Return the events after one, oldest first."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """End of a stream.

    Attributes:
        is_reached: Whether the stream ends now.
        source: Changes of this may be the end.
    """

    is_reached: Callable[[], bool]
    source: Listenable


class Alarm:
    """Wakes a reader in the event loop, from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._is_ringing = False

    def ring(self) -> None:
        """Wake the reader, unless it is about to wake."""
        if not self._is_ringing:
            self._is_ringing = True
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> bool:
        """Wait for the next ring; return False when none came for a while."""
        try:
            async with asyncio.timeout(_KEEP_ALIVE_S):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        self._is_ringing = False
        return True


class StreamReaders:
    """The readers of event streams, which all end when the server stops."""

    def __init__(self) -> None:
        self._alarms: set[Alarm] = set()
        self.is_stopping = False

    def stop(self) -> None:
        """End all streams, once they have passed on what is there."""
        self.is_stopping = True
        for alarm in tuple(self._alarms):
            alarm.ring()

    async def follow(
        self,
        sources: Mapping[str, EventSource],
        positions: Mapping[str, int],
        end: StreamEnd | None = None,
    ) -> AsyncIterator[Sequence[tuple[str, SourceEvent]]]:
        """Yield events of sources after some, each with its source's name; none to keep alive.

        The stream ends at its `end`, and when the server stops, once all that came before is
        yielded; and when a reader is so slow that events are no longer kept, or no source is left.
        """
        alarm, now, left = Alarm(), dict(positions), dict(sources)
        self._alarms.add(alarm)
        heard = [*sources.values(), *([end.source] if end else [])]
        for source in heard:
            source.listen(alarm.ring)
        try:
            while True:
                will_end = self.is_stopping or (end is not None and end.is_reached())
                try:
                    events = _new_events(left, now)
                except SessionError:  # the reader asks anew, and is told what it missed
                    return
                now |= {name: event.number for name, event in events}
                if events:
                    yield events
                    # Others have their turn; of a live answer, the next events go in one piece.
                    await asyncio.sleep(0 if len(events) >= _AT_ONCE else _GATHERED_S)
                elif will_end or not left:
                    return
                elif not await alarm.wait():
                    yield ()
        finally:
            self._alarms.discard(alarm)
            for source in heard:
                source.unlisten(alarm.ring)


def _new_events(
    sources: dict[str, EventSource], positions: Mapping[str, int]
) -> list[tuple[str, SourceEvent]]:
    """Return the next events of all sources; one that was closed is left out from now on."""
    found: list[tuple[str, SourceEvent]] = []
    for name, source in list(sources.items()):
        try:
            found += [(name, event) for event in source.read(positions[name], _AT_ONCE)]
        except SessionClosed:
            del sources[name]
    return found


def check_position(source: EventSource, after: int) -> int:
    """Return the number after which a reader goes on, if the source has the events after it.

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
    """Return the number of the last event that a client saw; an empty text is none.

    Raises:
        RequestRefused: If it is no number.
    """
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise RequestRefused(400, "event-id", "The number of an event has at most 18 digits.")
    return int(text)


def encoded_event(event_id: str, kind: str, data: str) -> bytes:
    """Return a server-sent event; known secrets in it are masked."""
    return f"id: {event_id}\nevent: {kind}\ndata: {redact_known(data)}\n\n".encode()


def event_stream(content: AsyncIterator[bytes]) -> StreamingResponse:
    """Return a response with server-sent events."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(content, 200, headers, EVENTS_TYPE)
