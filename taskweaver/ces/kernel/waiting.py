"""Waiting for the end of a request, within its deadline, and with the interrupts that come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from taskweaver.ces.bounds.guard import SLICE_S, CellWatch
from taskweaver.ces.common import CellStatus
from taskweaver.ces.hostcalls import HostCalls
from taskweaver.ces.kernel.channel import KernelReply, Request
from taskweaver.ces.kernel.interrupts import Interrupts
from taskweaver.ces.kernel.outcome import status_of
from taskweaver.ces.kernel.running import RunningKernel

_SECOND_INTERRUPT_S, _KILL_S = 2.0, 5.0


@dataclass(frozen=True, slots=True)
class RequestWait:
    """Wait for the end of a request.

    `calls` is None if the kernel has no host functions, `watch` for a request that is no cell.
    """

    running: RunningKernel
    calls: HostCalls | None
    interrupts: Interrupts
    is_closed: Callable[[], bool]
    watch: CellWatch | None

    def give_up(self, waiting: Request, deadline: float, discard: Callable[[], None]) -> None:
        """Interrupt a request whose caller was interrupted, and wait for its end.

        `discard` ends the kernel if the request goes on, or the wait is interrupted too.
        """
        waiting.on_output = None
        self.interrupts.sent_at = time.monotonic()
        self.running.process.interrupt()
        try:
            status, _ = self.until(waiting, deadline)
        except BaseException:
            discard()
            raise
        if status in {"died", "timeout"} or not self.running.process.is_alive:
            discard()

    def until(self, waiting: Request, deadline: float) -> tuple[CellStatus, KernelReply]:
        """Await a request's end; past the deadline interrupt it, then kill the kernel.

        Returns:
            How it ended, and the output.
        """
        running, interrupts = self.running, self.interrupts
        is_late, is_repeated = False, False
        while True:
            questions = self.calls.waiting_fd if self.calls else None
            until = time.monotonic() + (self.watch.slice_s if self.watch else SLICE_S)
            began = time.monotonic()
            exchange = running.channel.wait(waiting, until, questions)
            if running.channel.foreign.running and not waiting.has_begun:
                deadline += time.monotonic() - began  # another client's cell runs before it
            if self.calls is not None and exchange.ending == "deadline":
                is_open = interrupts.sent_at is None
                deadline += self.calls.settle(is_open=is_open)  # a person's time is free
            if exchange.ending == "died":
                was_asked = interrupts.sent_at is not None
                return ("timeout" if is_late else "interrupted" if was_asked else "died"), exchange
            if exchange.ending == "reply":
                status = status_of(exchange, was_interrupted=interrupts.sent_at is not None)
                return ("timeout" if is_late else status), exchange
            now = time.monotonic()
            is_over = self.watch is not None and self.watch.look()
            is_requested = self.is_closed() or interrupts.is_requested
            if interrupts.sent_at is None and (is_requested or is_over):
                interrupts.send(running.process)  # asked for before the cell began, or by a bound
            if interrupts.sent_at is None and now >= deadline:
                is_late = True
                interrupts.send(running.process)
            since_s = now - (interrupts.sent_at or now)
            if since_s > _SECOND_INTERRUPT_S and not is_repeated:
                is_repeated = True
                running.process.interrupt()
            if since_s > _KILL_S:
                running.process.kill()
