"""The one way of a run to its models: so many calls at a time, within its budget, in its log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from taskweaver.llm.errors import ModelError
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import Usage
from taskweaver.llm.usage import Meter
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.model.node import Cost
from taskweaver.treesearch.record.runlog import RunLog
from taskweaver.utils.system.cancel import CancelToken

_SURE_S = 0.01  # a clock that is asked a moment too early would not call it late


class RunMeter(Meter):
    """Lets the calls of a run begin while they may, and counts each when it returns."""

    def __init__(self, budget: Budget, log: RunLog, most: int, *, is_free: bool) -> None:
        """Create the meter of a run; `is_free` is a model that is built in: calls cost nothing."""
        self._budget = budget
        self._log = log
        self._most = most
        self._is_free = is_free
        self._open = 0
        self._changed = threading.Condition()

    @contextmanager
    def call(self, cancel: CancelToken) -> Iterator[None]:
        """Surround a call: wait for a place, look at the budget, end it when the time is over.

        Raises:
            ModelError: Of kind ``cancelled``, if it is cancelled while it waits.
            BudgetSpent: If no more may be spent, or the time is over.
        """
        try:
            with self._until_late(cancel), self._place(cancel):
                self._budget.check()
                yield
        except ModelError as error:
            if error.kind == "cancelled":
                self._budget.check()
            raise

    @contextmanager
    def _until_late(self, cancel: CancelToken) -> Iterator[None]:
        if not self._budget.seconds:
            yield
            return
        timer = threading.Timer(self._budget.left_s + _SURE_S, cancel.cancel)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextmanager
    def _place(self, cancel: CancelToken) -> Iterator[None]:
        with cancel.on_cancel(self._wake), self._changed:
            self._changed.wait_for(lambda: cancel.cancelled or self._open < self._most)
            if cancel.cancelled:
                raise ModelError("cancelled", "the call was given up.")
            self._open += 1
        try:
            yield
        finally:
            with self._changed:
                self._open -= 1
            self._wake()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def add(self, usage: Usage) -> None:
        """Count the consumption of a call, and note it in the log.

        Raises:
            SearchError: If the log cannot be written.
        """
        cost = cost_of(usage, is_free=self._is_free)
        self._budget.add(cost)
        self._log.note("call", cost=asdict(cost))


def cost_of(usage: Usage, *, is_free: bool) -> Cost:
    """Return the costs of a consumption; where the model `is_free`, calls are counted alone."""
    if is_free:
        return Cost(usage.calls)
    return Cost(usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost)


def check_prices(services: ModelServices) -> None:
    """Check that the costs of calls are known, for a run with a limit of money.

    Raises:
        SearchError: If a price is missing. A model that has none of its own has the main one's.
    """
    model = services.model()
    if not model.prices.are_known:
        raise SearchError(
            f"A limit of money needs the prices of {model.service.model}, which are not known.",
            "Set llm.prompt_price and llm.completion_price, for a million tokens (0 for what is"
            " free), or limit the tokens instead.",
        )
