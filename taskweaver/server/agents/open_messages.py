"""Messages of a session that are not answered yet, and the streams that wait for their ends."""

from __future__ import annotations

from collections.abc import Callable

from taskweaver.server.agents.following import StreamEnd


class OpenMessages:
    """Ids of open messages. Listeners are called after each end; thread-safe."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._listeners: list[Callable[[], None]] = []

    def __contains__(self, message_id: str) -> bool:
        """Return whether a message is open."""
        return message_id in self._ids

    def add(self, message_id: str) -> None:
        """Add a message."""
        self._ids.add(message_id)

    def discard(self, message_id: str) -> None:
        """Leave out a message that was refused."""
        self._ids.discard(message_id)

    def end(self, message_id: str) -> None:
        """Let streams of a message's answer end, now that its outcome is written."""
        self._ids.discard(message_id)
        for listener in tuple(self._listeners):
            listener()

    def end_of(self, message_id: str) -> StreamEnd:
        """Return the end of a stream that lasts as long as a message is open."""
        return StreamEnd(lambda: message_id not in self._ids, self)

    def listen(self, on_end: Callable[[], None]) -> None:
        """Call a function after each end of a message, in the thread where it happens."""
        self._listeners.append(on_end)

    def unlisten(self, on_end: Callable[[], None]) -> None:
        """Call a function no longer."""
        self._listeners.remove(on_end)
