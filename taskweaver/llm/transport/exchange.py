"""One request and the streamed response, under deadlines that also bound blocking calls.

A thread does the blocking (name look-up, connecting, reading) and hands blocks of bytes over;
the caller waits no longer than its deadline, and returns at once when it is interrupted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from time import monotonic
from typing import Any

from taskweaver.llm.errors import ModelError
from taskweaver.llm.transport.endpoint import ConnectionPool, Sent
from taskweaver.llm.transport.failures import exchange_failure, failure
from taskweaver.utils.system.cancel import CancelToken

_QUEUED_BLOCKS = 64
_END = object()
_WAKE = object()


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Time limits of a call, in seconds.

    Attributes:
        connect_s: For a connection.
        first_token_s: For the first event of the reply.
        gap_s: For each further event.
        total_s: For the whole call.
    """

    connect_s: float = 5.0
    first_token_s: float = 120.0
    gap_s: float = 60.0
    total_s: float = 600.0


class HttpExchange:
    """One request to an endpoint, as a context manager whose `blocks` are read once.

    Attributes:
        model: Name of the model that is asked.
        deadlines: Time limits of the call.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        sent: Sent,
        deadlines: Deadlines,
        cancel: CancelToken,
    ) -> None:
        self.model = str(sent.body.get("model", ""))
        self._pool = pool
        self._connection = pool.take()
        self._sent = sent
        self.deadlines = deadlines
        self._cancel = cancel
        self._blocks: Queue[Any] = Queue(_QUEUED_BLOCKS)
        self._handing_over = threading.Lock()
        self._given_up = threading.Event()
        self._is_read = False
        self._ends = monotonic() + deadlines.total_s
        self.allow(deadlines.first_token_s, "no reply began")

    def __enter__(self) -> HttpExchange:
        threading.Thread(target=self._read, name=f"model call {self.model}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._handing_over:
            self._given_up.set()
            if not self._is_read:
                self._connection.cut()
        with suppress(Empty):  # room for what the thread is about to hand over
            while True:
                self._blocks.get_nowait()

    def allow(self, seconds: float, what: str) -> None:
        """Wait so many seconds from now for the next block. `what` happened if none comes."""
        self._wait, self._what = seconds, what
        self.extend()

    def extend(self) -> None:
        """Start the time for the next block anew."""
        self._patience = monotonic() + self._wait

    def blocks(self) -> Iterator[bytes]:
        """Yield the body, block by block.

        Raises:
            ModelError: If the call fails, takes too long or is cancelled.
        """
        with self._cancel.on_cancel(self._wake):
            while True:
                item = self._next()
                if item is _END:
                    return
                if isinstance(item, BaseException):
                    raise exchange_failure(item, self.model) from item
                if isinstance(item, bytes):
                    yield item

    def _next(self) -> Any:
        if self._cancel.cancelled:
            raise ModelError("cancelled", "the call was given up.", self.model)
        until = min(self._ends, self._patience)
        try:
            return self._blocks.get(timeout=max(until - monotonic(), 0.0))
        except Empty:
            if monotonic() >= self._ends:
                detail = f"the call took longer than {self.deadlines.total_s:g} s."
            else:
                detail = f"{self._what} for {self._wait:g} s."
            raise failure("timeout", detail, self.model) from None

    def _wake(self) -> None:
        with suppress(Full):
            self._blocks.put_nowait(_WAKE)

    def _read(self) -> None:
        outcome: Any = _END
        limits = self.deadlines
        patience = max(limits.first_token_s, limits.gap_s) + 1.0
        try:
            opened = self._connection.open(self._sent, connect_s=limits.connect_s, read_s=patience)
            with opened as blocks:
                for block in blocks:
                    self._blocks.put(block)
                    if self._given_up.is_set():
                        break
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            outcome = error
        with self._handing_over:
            self._is_read = True
            is_whole = outcome is _END and not self._given_up.is_set()
        if is_whole:
            self._pool.put_back(self._connection)
        else:
            self._connection.close()
        self._blocks.put(outcome)
