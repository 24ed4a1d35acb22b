"""A client of the DevTools protocol over the browser's pipe: JSON messages that end with NUL.

One thread reads. Calls are made from one thread at a time, and events are handled in it, while it
waits for an answer: a handler may send commands, and never waits for one. Unhandled events are
kept up to a limit; beyond it the browser has to wait.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.ext_role.web_explorer.errors import (
    BrowserError,
    DeadlineExceeded,
    ExplorationInterrupted,
    ProtocolError,
)
from taskweaver.ext_role.web_explorer.process import BrowserProcess

_MAX_EVENTS = 1000
_MAX_MESSAGE_BYTES = 64 << 20
_READ_BYTES = 1 << 16
_JOIN_S = 5.0


@dataclass(frozen=True, slots=True)
class DevToolsEvent:
    """An event, e.g. ``Page.loadEventFired``, in a page's session; of the browser without one."""

    method: str
    params: Mapping[str, Any]
    session: str


class DevTools:
    """The protocol's client, and owner of the browser behind it."""

    def __init__(self, program: Path, on_event: Callable[[DevToolsEvent], None]) -> None:
        """Start a browser; `on_event` handles events, in the thread of the call that waits.

        Raises:
            BrowserError: If it cannot be started.
        """
        self._on_event = on_event
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._last_id = 0
        self._awaited: int | None = None
        self._reply: Mapping[str, Any] | None = None
        self._events: deque[DevToolsEvent] = deque()
        self._end = ""
        self._is_interrupted = False
        self._is_closed = False
        self._process = BrowserProcess(program)
        self._reader = threading.Thread(target=self._read, name="devtools-reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id of the browser."""
        return self._process.pid

    @property
    def profile(self) -> Path:
        """The browser's private folder."""
        return self._process.profile

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        session: str = "",
        within_s: float,
        is_lost: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Call a method and wait for its result, handling events meanwhile.

        Args:
            method: Name of the method.
            params: Its arguments.
            session: Id of the page's protocol session; empty for the browser itself.
            within_s: Longest wait in seconds.
            is_lost: Returns whether no answer will come, because the page is gone.

        Raises:
            ProtocolError: If the browser refuses, or the page is gone.
            DeadlineExceeded: If it does not answer in time.
            ExplorationInterrupted: If the exploration is interrupted.
            BrowserError: If it has ended.
        """
        id_ = self._send(method, params, session, is_awaited=True)
        try:
            if not self.wait(lambda: self._reply is not None or is_lost(), within_s=within_s):
                problem = f"the browser did not answer {method} within {within_s:g} s"
                raise DeadlineExceeded(problem)
            with self._changed:
                if self._is_closed:  # what the browser said while it ended is no answer
                    raise BrowserError("the browser ended: it was closed")
                reply = self._reply or self._loss()
        finally:
            with self._changed:
                self._reply, self._awaited = None, None
        if "error" in reply:
            message = str(reply["error"].get("message", "unknown error"))
            raise ProtocolError(f"{method} (call {id_}): {message}")
        result: dict[str, Any] = reply.get("result", {})
        return result

    def send(
        self, method: str, params: Mapping[str, Any] | None = None, *, session: str = ""
    ) -> None:
        """Call a method without waiting for its result.

        Raises:
            BrowserError: If the browser has ended.
        """
        self._send(method, params, session, is_awaited=False)

    def wait(self, is_done: Callable[[], bool], *, within_s: float) -> bool:
        """Handle events until a condition holds; return whether it does.

        Raises:
            ExplorationInterrupted: If the exploration is interrupted.
            BrowserError: If the browser has ended.
        """
        deadline = time.monotonic() + within_s
        while True:
            with self._changed:
                left_s = deadline - time.monotonic()
                self._changed.wait_for(
                    lambda: self._events or self._end or self._is_interrupted or is_done(),
                    max(left_s, 0),
                )
                self._check()
                event = self._events.popleft() if self._events else None
                self._changed.notify_all()
            if event is not None:
                self._on_event(event)
            if is_done():
                return True
            if left_s <= 0:
                return False

    def interrupt(self) -> None:
        """Make the call that waits, or the next one, end with `ExplorationInterrupted`."""
        with self._changed:
            self._is_interrupted = True
            self._changed.notify_all()

    def resume(self) -> None:
        """Allow calls again after an interruption."""
        with self._changed:
            self._is_interrupted = False

    def close(self) -> None:
        """End the browser with all its processes and remove its profile; safe to call again."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._end = self._end or "it was closed"
            self._changed.notify_all()
        with self._sending:
            os.close(self._process.commands)  # a browser that can still read ends by this
        try:
            self._process.end()
            self._reader.join(_JOIN_S)  # whoever could write to it has ended
        finally:
            os.close(self._process.answers)

    def _loss(self) -> Mapping[str, Any]:
        """Return the reply of a page that is gone, unless the browser went with it."""
        if self._end:
            raise BrowserError(f"the browser ended: {self._end}")
        return {"error": {"message": "the page is gone"}}

    def _check(self) -> None:
        if self._is_interrupted:
            raise ExplorationInterrupted
        if self._end and self._reply is None and not self._events:
            raise BrowserError(f"the browser ended: {self._end}")

    def _send(
        self, method: str, params: Mapping[str, Any] | None, session: str, *, is_awaited: bool
    ) -> int:
        with self._changed:
            if self._end:
                raise BrowserError(f"the browser ended: {self._end}")
            self._last_id += 1
            id_ = self._last_id
            if is_awaited:
                self._awaited = id_
        message: dict[str, Any] = {"id": id_, "method": method, "params": dict(params or {})}
        if session:
            message["sessionId"] = session
        data = memoryview(json.dumps(message).encode() + b"\0")
        with self._sending:
            if self._is_closed:
                raise BrowserError("the browser ended: it was closed")
            try:
                while data:
                    data = data[os.write(self._process.commands, data) :]
            except OSError as error:
                raise BrowserError(f"the browser ended: {self._process.exit_text()}") from error
        return id_

    def _read(self) -> None:
        """Read messages until the browser ends or the client is closed."""
        end = ""
        try:
            end = self._read_messages()
        except (OSError, ValueError) as error:
            end = f"its connection broke: {error}"
        finally:
            with self._changed:
                self._end = self._end or end or "its connection broke"
                self._changed.notify_all()

    def _read_messages(self) -> str:
        buffer = bytearray()
        while True:
            data = os.read(self._process.answers, _READ_BYTES)
            if not data:
                return self._process.exit_text()
            seen = len(buffer)
            buffer += data
            while (end := buffer.find(b"\0", seen)) >= 0:
                message = bytes(buffer[:end])
                del buffer[: end + 1]
                seen = 0
                self._take(json.loads(message))
            if len(buffer) > _MAX_MESSAGE_BYTES:
                return f"it sent a message of more than {_MAX_MESSAGE_BYTES >> 20} MiB"

    def _take(self, message: dict[str, Any]) -> None:
        with self._changed:
            if "id" in message:
                if message["id"] == self._awaited:
                    self._reply = message
            elif "method" in message:
                self._changed.wait_for(lambda: len(self._events) < _MAX_EVENTS or self._is_closed)
                session = str(message.get("sessionId", ""))
                self._events.append(
                    DevToolsEvent(message["method"], message.get("params", {}), session)
                )
            self._changed.notify_all()
