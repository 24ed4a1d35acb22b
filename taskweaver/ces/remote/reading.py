"""The events of an execution, read to their end across lost connections."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from taskweaver.ces.remote.connection import KernelServer, ServerUnreachable

_MOST_LOST = 20
"""Most connections in a row that are lost without an event."""

OnEvent = Callable[[str, Any], None]


@dataclass(slots=True)
class ExecutionReader:
    """Reads the events of one execution.

    Attributes:
        server: The server.
        path: Path of the stream.
        on_event: Called with the kind and the data of each event, each once.
    """

    server: KernelServer
    path: str
    on_event: OnEvent
    _last: int = 0
    _fields: dict[str, str] = field(default_factory=dict)

    def read(self) -> None:
        """Read until the last event.

        Raises:
            KernelError: If the server refuses, or the connection cannot be had again.
        """
        lost = 0
        while True:
            before = self._last
            try:
                if self._read_once():
                    return
            except ServerUnreachable:
                lost = lost + 1 if self._last == before else 0
                if lost >= _MOST_LOST:
                    raise
            # A small request that is repeated until the server answers: then the stream goes on.
            self.server.ask("GET", "/health")

    def _read_once(self) -> bool:
        """Read a connection to its end; return whether the last event came."""
        headers = {"Last-Event-ID": str(self._last)} if self._last else {}
        self._fields = {}
        with self.server.reading(self.path, **headers) as response:
            for line in response.iter_lines():
                if line:
                    name, _, value = line.partition(":")
                    self._fields[name] = value.removeprefix(" ")
                elif self._take():
                    return True
        return False

    def _take(self) -> bool:
        """Hand over an event that is complete; return whether it was the last."""
        fields, self._fields = self._fields, {}
        kind, number = fields.get("event", ""), fields.get("id", "")
        if not kind:
            return False  # a comment
        if number.isascii() and number.isdigit():
            self._last = int(number[:12])
        try:
            data = json.loads(fields.get("data", ""))
        except (ValueError, RecursionError):
            data = None
        self.on_event(kind, data)
        return kind == "done"
