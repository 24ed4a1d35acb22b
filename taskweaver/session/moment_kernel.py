"""The kernel of a past moment: it has the variables of the end of a round, and shows them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.ces.common import Client, forkable, inspectable
from taskweaver.ces.errors import KernelError
from taskweaver.ces.state_folder import StateDamaged
from taskweaver.ces.state_transfer import Restorable
from taskweaver.memory.cells import ran_code
from taskweaver.session.branches.locks import PAST
from taskweaver.session.branches.tree import BranchTree
from taskweaver.session.errors import SessionClosed, StateNotKept
from taskweaver.session.moments import Moments


@dataclass(frozen=True, slots=True)
class _RoundEnd:
    """The end of a round in which code ran, as a branch sees it. The first round is number 1."""

    branch: str
    number: int
    round_id: str


class MomentKernel:
    """The kernel of one past moment of a session, which is there once it is used. End it.

    It gets its variables as a fork does: from the snapshot of the round's end, else from the disk.
    It runs no cells, and nothing of it is stored. A view of another moment replaces it.

    Attributes:
        client: The kernel; None where there is none.
    """

    def __init__(self, branches: BranchTree, moments: Moments) -> None:
        """Prepare. Nothing runs yet. The caller ends the kernel with those of the branches."""
        self._branches = branches
        self._moments = moments
        self._new_kernel = branches.shared.parts.new_kernel
        self._viewing = threading.Lock()  # held by each view; for the time below
        self._used_at = -math.inf
        self._making = threading.Lock()  # for the two below; `end` takes no other
        self.client: Client | None = None
        self._moment: _RoundEnd | None = None

    def check_kept(self, branch: str, number: int) -> None:
        """Check that the variables of a moment can be had, before another kernel ends for its own.

        Raises:
            StateNotKept: If they are no longer there; else as `view`.
        """
        with self._viewing, self._branches.shared.locks.hold(PAST):
            moment, lineage = self._round_end(branch, number), self._branches.files.lineage(branch)
            if moment is None or self._own(moment) is not None:
                return
            states = self._branches.shared.states
            states.settle()
            if states.snapshots.get(lineage, moment.round_id) is None:
                self._stored(lineage, moment)

    def view(self, branch: str, number: int, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a view of a variable as it was at the end of a round (see `Inspectable`).

        The branch may be at work. Views of several threads come one after another.

        Args:
            branch: Name of the branch.
            number: Number of the round, from 1.
            wanted: The view; ``name`` is the variable.

        Raises:
            UnknownSessionBranch: If the branch does not exist.
            UnknownRound: If it sees no such round.
            StateNotKept: If the variables of that moment are no longer there.
            KernelError: If the kernel cannot be started, or cannot show its variables.
            SessionBusy: If the session is being released.
            SessionClosed: If the session was stopped.
        """
        with self._viewing, self._branches.shared.locks.hold(PAST):
            moment = self._round_end(branch, number)
            if moment is None:
                text = f"There is no variable {wanted.get('name')!r:.100}: no code had run."
                return {"problem": {"kind": "missing", "text": text}}
            try:
                return inspectable(self._kernel(moment)).view(wanted)
            finally:
                self._used_at = time.monotonic()

    def _round_end(self, branch: str, number: int) -> _RoundEnd | None:
        """Return the end of the last round with code, None where no code had run."""
        seen = enumerate(self._moments.rounds(branch, number), 1)
        ends = [_RoundEnd(branch, n, round_.id) for n, round_ in seen if ran_code(round_)]
        return ends[-1] if ends else None

    def _kernel(self, moment: _RoundEnd) -> Client:
        with self._making:
            if self._branches.shared.locks.is_closed:
                raise SessionClosed("The session was stopped.")
            client = self._own(moment)
            if client is None:
                self._stop()
                client = self.client = self._made(moment)
                self._moment = moment
            return client

    def _own(self, moment: _RoundEnd) -> Client | None:
        """Return the kernel if it runs and is of a moment."""
        client = self.client if self._moment == moment else None
        return client if client is not None and client.has_state else None

    def _made(self, moment: _RoundEnd) -> Client:
        states, lineage = self._branches.shared.states, self._branches.files.lineage(moment.branch)
        states.settle()
        snapshot = states.snapshots.get(lineage, moment.round_id)
        try:
            if snapshot is None:
                self._stored(lineage, moment)  # nothing is started in vain
            client = self._new_kernel(PAST, moment.branch, snapshot)
        except KernelError:  # the snapshot was discarded meanwhile, or there is no room for a fork
            if snapshot is None or states.folder.path(lineage, moment.round_id) is None:
                raise
            client = self._new_kernel(PAST, moment.branch, None)
        forkable(client).restore_from(lambda: self._stored(lineage, moment))
        return client

    def _stored(self, lineage: list[str], moment: _RoundEnd) -> Restorable:
        """Return the stored state of a moment.

        Raises:
            StateNotKept: If there is none that can be read.
        """
        states = self._branches.shared.states
        if not states.folder.is_trusted:
            raise StateNotKept("The stored variables were written by another installation.")
        states.finish()
        try:
            manifest = states.folder.find(lineage, moment.round_id)
        except StateDamaged as error:
            raise StateNotKept(str(error)) from error
        if manifest is None:
            raise StateNotKept(
                "The variables of this moment are no longer kept. /rebuild on a fork at this round"
                " makes them again."
            )
        return Restorable(states.folder, manifest, moment.number)

    def end_unused(self, since: float = math.inf) -> None:
        """End its process, unless a view is under way, or was after a time.

        Args:
            since: The time, in seconds of the monotonic clock.
        """
        if not self._viewing.acquire(blocking=False):
            return
        try:
            if self._used_at <= since:
                self.end()
        finally:
            self._viewing.release()

    def end(self) -> None:
        """End its process. A view that is under way fails. Safe to call again."""
        with self._making:
            self._stop()

    def _stop(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            client.stop()
