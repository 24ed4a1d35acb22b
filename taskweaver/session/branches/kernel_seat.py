"""The kernel of a branch: forked, restored from disk or started, on first use."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

from taskweaver.ces.common import Client, Forkable, Measured, Shared, Snapshot, forkable
from taskweaver.ces.errors import KernelError
from taskweaver.ces.state_folder import StateDamaged
from taskweaver.ces.state_transfer import Restorable
from taskweaver.memory.cells import last_with_code, ran_code
from taskweaver.memory.round import Round
from taskweaver.session.branches.parts import SharedParts
from taskweaver.session.restoring import (
    RestorePoint,
    Restoring,
    cells_with_variables,
    newest_state,
)
from taskweaver.session.round_states import RoundEnd


class KernelSeat:
    """The place of a branch's kernel, and how variables come back to it.

    Attributes:
        taken: The kernel; None until it is used or forked.
        why_restored: Reason the kernel starts from stored variables; empty if the kernel was
            forked, or if no code had run.
    """

    def __init__(
        self, name: str, line: str, shared: SharedParts, rounds: Callable[[], Sequence[Round]]
    ) -> None:
        """Leave the seat empty.

        Args:
            name: Name of the branch, which need not exist yet.
            line: Name of the branch whose stored states the kernel starts from.
            shared: What the branches of the session share.
            rounds: Returns the conversation that the variables belong to.
        """
        self._name = name
        self._line = line
        self._shared = shared
        self._rounds = rounds
        self.taken: Client | None = None
        self._restored: Restoring | None = None  # how the variables came back last
        self._is_noticed = self._is_noted = False
        self.why_restored = ""
        self._making = threading.Lock()  # a branch has one kernel, whichever thread asks first

    @property
    def last_foreign_request(self) -> float:
        """Time of the last request of another Jupyter client; see `Shared`."""
        client = self.taken
        return client.last_foreign_request if isinstance(client, Shared) else -math.inf

    def round_end(self, round_: Round) -> RoundEnd:
        """Return the end of a round that ran code, as the states take it."""
        return RoundEnd(self._name, round_.id, self.get())

    def get(self) -> Client:
        """Return the kernel, whose process starts with its first cell."""
        with self._making:
            return self.taken or self._seated(None)

    def _seated(self, state: Snapshot | None) -> Client:
        client = self._shared.parts.new_kernel(self._name, self._name, state)
        if isinstance(client, Forkable):
            client.restore_from(self._restorable)
        self.taken = client
        return client

    def stop(self) -> None:
        """Stop the kernel, if there is one; safe to call again."""
        if self.taken is not None:
            self.taken.stop()

    def clear(self) -> None:
        """Leave the seat empty, as the kernel was stopped."""
        with self._making:
            self.taken = self._restored = None
            self._is_noticed = self._is_noted = False

    def fork(self, seat: KernelSeat, at_round: int | None = None) -> None:
        """Fork the kernel into the empty seat of a branch that is made of this one.

        The seat keeps the reason where its kernel will start from stored variables instead.

        Args:
            seat: The empty seat.
            at_round: Number of the last round that the other branch sees; None for all.
        """
        states = self._shared.states
        states.settle()
        rounds = self._rounds()
        seen = rounds[:at_round]
        last = last_with_code(seen)
        if last is None:
            return
        is_now = not any(map(ran_code, rounds[len(seen) :]))
        snapshots = states.snapshots
        kept = snapshots.get([self._line], last.id) or snapshots.get(self._lineage(), last.id)
        try:
            if kept is not None:
                seat._fork_off(kept)
            elif is_now:
                state = forkable(self.get()).snapshot()
                try:
                    seat._fork_off(state)
                finally:
                    state.close()
            else:
                seat.why_restored = snapshots.why_none(last.id)
        except KernelError as error:
            seat.why_restored = str(error)

    def _fork_off(self, state: Snapshot) -> None:
        with self._making:
            self._seated(state)

    def restoring(self) -> Restoring | None:
        """Return how the variables come back; None once the kernel has them."""
        if self.get().has_state:
            return None
        self._restored = self._plan()
        return self._restored

    def at_stake(self) -> list[str]:
        """Return what would be lost if the kernel ended now, in lines for the user.

        These are processes that cells started, and variables unless they were lost before.
        """
        if self.taken is None or not self.taken.has_state:
            return []
        before, plan = self._restored, self._plan()
        lines = plan.lines() if plan else []
        lost = [] if before and before.lines() == lines else lines
        left = self.taken.left_behind() if isinstance(self.taken, Measured) else ""
        return [*lost, left] if left else lost

    def _plan(self) -> Restoring | None:
        rounds = self._rounds()
        if not any(cells_with_variables(rounds)):
            return None
        try:
            stored, problem = self._stored(rounds), ""
        except StateDamaged as error:
            stored, problem = None, str(error)
        is_trusted = self._shared.states.folder.is_trusted
        return Restoring(list(rounds), stored, problem, is_trusted=is_trusted)

    def _stored(self, rounds: Sequence[Round]) -> RestorePoint | None:
        """Return the newest stored state of a conversation; raises StateDamaged."""
        states = self._shared.states
        if not states.folder.is_trusted:
            return None
        states.finish()
        lineage = self._lineage()
        return newest_state(rounds, lambda id_: states.folder.find(lineage, id_))

    def _lineage(self) -> list[str]:
        return self._shared.parts.files.lineage(self._line)

    def _restorable(self) -> Restorable | None:
        try:
            stored = self._stored(self._rounds())
        except StateDamaged:
            return None  # `restoring` reports it
        if stored is None:
            return None
        folder = self._shared.states.folder
        return Restorable(folder, stored.manifest, stored.number, stored.missing)

    def lost_cells(self) -> set[str]:
        """Return the ids of the posts whose cells make the variables that were not restored."""
        self.restoring()
        return set() if self._restored is None else self._restored.cells

    def take_notice(self) -> list[str]:
        """Return, once, the variables that are missing, and the remedy, in lines for the user."""
        restoring = self.restoring()
        if restoring is None or self._is_noticed:
            return []
        self._is_noticed = True
        return restoring.lines()

    def take_note(self) -> list[str]:
        """Return, once, the variables that are missing, in words for the roles."""
        restoring = self.restoring()
        if restoring is None or self._is_noted:
            return []
        self._is_noted = True
        return list(filter(None, [restoring.note()]))
