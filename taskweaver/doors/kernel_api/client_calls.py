"""Calls of functions of a client, which code in a kernel makes and the client answers."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from typing import Any

from taskweaver.doors.kernel_api.executions import Execution
from taskweaver.errors import TaskWeaverError
from taskweaver.server.operations import missing


class ClientCallFailed(TaskWeaverError):
    """A call that the client answered with an error, whose text the code gets."""


class ClientCalls:
    """Functions of a client, as the host functions of its kernel.

    A call becomes an event of the running execution. The client decides whether it may go ahead.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._execution: Execution | None = None
        self._pending: dict[str, Future[Any]] = {}

    @contextmanager
    def going_to(self, execution: Execution) -> Iterator[None]:
        """Send the calls that come in the block to the readers of an execution."""
        self._execution = execution
        try:
            yield
        finally:
            self._execution = None

    def permit(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return no refusal: the client decides when it gets the call."""
        del name, arguments
        return ""

    def call(self, name: str, arguments: Mapping[str, Any]) -> Future[Any]:
        """Send a call to the client; its answer is the result."""
        future: Future[Any] = Future()
        execution = self._execution
        if execution is None:
            future.set_exception(ClientCallFailed("it can be called only while a cell runs."))
            return future
        call_id = secrets.token_hex(8)
        with self._lock:
            self._pending[call_id] = future
        future.add_done_callback(lambda _: self._forget(call_id))
        content = {"call_id": call_id, "name": name, "arguments": dict(arguments)}
        execution.on_call(json.dumps(content))
        return future

    def _forget(self, call_id: str) -> None:
        with self._lock:
            self._pending.pop(call_id, None)

    def answer(self, call_id: str, value: Any, error: str | None) -> None:
        """Give a call its answer.

        Raises:
            RequestRefused: If there is no such call, or it was broken off.
        """
        with self._lock:
            future = self._pending.get(call_id)
        if future is None:
            raise missing("Call", call_id[:64])
        with suppress(InvalidStateError):  # it was broken off in this moment
            if error is not None:
                future.set_exception(ClientCallFailed(error))
            else:
                future.set_result(value)
