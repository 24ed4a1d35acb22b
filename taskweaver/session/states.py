"""The states a session's kernels were in at round ends, kept for forking from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from taskweaver.ces.common import Client, Snapshot
from taskweaver.ces.errors import KernelError
from taskweaver.memory.cells import ran_code
from taskweaver.memory.round import Round

_MOST = 16
"""Most states that are kept: each is a process, however little memory it takes."""


class KernelStates:
    """Keeps states by the round they are the end of, the newest within a memory budget. Close it.

    The state after a round that ran no code is the one before it.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._kept: dict[str, Snapshot] = {}
        self._refused: dict[str, str] = {}

    def keep(self, round_: Round, client: Client) -> None:
        """Keep the state after a round, and drop the oldest ones that are over the budget."""
        if not ran_code(round_) or not self._limit_bytes:
            return
        try:
            self._kept[round_.id] = client.snapshot()
        except KernelError as error:
            self._refused[round_.id] = str(error)
            return
        while self._kept and (len(self._kept) > _MOST or self._over(client)):
            self._kept.pop(next(iter(self._kept))).close()

    def _over(self, client: Client) -> bool:
        return self.extra_bytes(client) > self._limit_bytes

    def extra_bytes(self, client: Client) -> int:
        """Return the memory the states take up beyond what the kernel needs by itself.

        What all share is counted in proportion, so the sum over all is what there really is;
        the kernel's own size is taken off.
        """
        own = client.footprint
        kept = sum(state.footprint.proportional_bytes for state in self._kept.values())
        return max(0, kept + own.proportional_bytes - own.resident_bytes)

    def __len__(self) -> int:
        """Return how many states are kept."""
        return len(self._kept)

    def fork(
        self, rounds: Sequence[Round], client: Client | None, start: Callable[[Snapshot], None]
    ) -> str:
        """Start a kernel from the state after some rounds.

        Args:
            rounds: The rounds.
            client: The kernel that is in this state right now, if one is.
            start: Starts it.

        Returns:
            Why that is not possible; empty when it was done, or there is no state to inherit.
        """
        last = next((round_ for round_ in reversed(rounds) if ran_code(round_)), None)
        if last is None:
            return ""
        try:
            if last.id in self._kept:
                start(self._kept[last.id])
            elif client is not None:
                self._fork_now(client, start)
            else:
                return self._refused.get(last.id, "No state is kept from that round.")
        except KernelError as error:
            return str(error)
        return ""

    @staticmethod
    def _fork_now(client: Client, start: Callable[[Snapshot], None]) -> None:
        state = client.snapshot()
        try:
            start(state)
        finally:
            state.close()

    def close(self) -> None:
        """Give up all states."""
        kept, self._kept = self._kept, {}
        for state in kept.values():
            state.close()
