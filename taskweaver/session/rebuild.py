"""Running cells again on a scratch copy, to be looked at before the result is taken over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count

from taskweaver.ces.common import Client
from taskweaver.memory.cells import (
    Ran,
    RecordedCell,
    last_with_code,
    successful_cells,
    variables_of,
)
from taskweaver.session.branches.kernel_seat import KernelSeat
from taskweaver.session.branches.tree import BranchTree
from taskweaver.session.errors import SessionError
from taskweaver.session.replay import ReplayedCell, replay
from taskweaver.session.storage.compare import Pair, changed_variables


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """Outcome of running cells again on a scratch copy. Accept it or discard it.

    Attributes:
        name: Name of the branch that it becomes when it is accepted.
        steps: The cells that ran, each compared with its recorded outcome.
        files: Working files that differ from the present ones: sizes as text; None is none.
        variables: Other variables that the cells changed: as recorded last, and now.
        accept: Goes on with the result, on a new branch; the present one stays as it is. Raises
            SessionError if the conversation went on, or the result is gone.
        discard: Removes the scratch copy; nothing happens after `accept`.
    """

    name: str
    steps: Sequence[ReplayedCell]
    files: Mapping[str, Pair]
    variables: Mapping[str, Pair]
    accept: Callable[[], None]
    discard: Callable[[], None]

    @property
    def is_same(self) -> bool:
        """True if every outcome is as recorded, and no file or other variable differs."""
        has_changes = self.files or self.variables
        return not has_changes and all(step.verdict == "same" for step in self.steps)


class _Scratch:
    """A copy of a branch, its kernel and its working directory, that is no branch yet."""

    def __init__(
        self, branches: BranchTree, guard: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Copy the working directory of the current branch."""
        self._branches = branches
        self._guard = guard
        self._branch = branches.current
        self.source = self._branch.name
        self._rounds = len(self._branch.memory.conversation.rounds)
        self._is_open = True
        files = branches.files
        with branches.shared.forking:
            self.name = files.free_name("rebuilt")
            files.reserved.add(self.name)
        self._seat = KernelSeat(self.name, self.source, branches.shared, self._branch.rounds)
        limit_bytes = branches.shared.config.fork_limit_bytes
        files.copy_files(self.source, self.name, limit_bytes=limit_bytes)

    def kernel(self) -> Client:
        """Return its kernel, with the variables of the branch."""
        self._branch.kernel.fork(self._seat)
        return self._seat.get()

    def accept(self) -> None:
        """Make it a branch, and go on with that."""
        with self._guard():
            if not self._is_open:
                raise SessionError("This result was accepted or discarded already.")
            if len(self._branch.memory.conversation.rounds) != self._rounds:
                raise SessionError("The conversation went on: rebuild the variables again.")
            self._branches.files.store[self.source].fork(self.name)
            self._branches.files.reserved.discard(self.name)
            self._is_open = False
            self._branches.checkout(self.name)
            current = self._branches.current
            if last := last_with_code(current.rounds()):
                self._branches.shared.states.end_round(self.name, [current.kernel.round_end(last)])

    def interrupt(self) -> None:
        """Interrupt the cell that runs in it; may be called from any thread."""
        client = self._seat.taken
        if client is not None:
            client.interrupt()

    def discard(self) -> None:
        """Remove it, unless it is a branch by now."""
        if self._is_open:
            self._is_open = False
            self._seat.stop()
            self._branches.files.remove_files(self.name)
            self._branches.files.reserved.discard(self.name)


def rebuild(
    branches: BranchTree,
    guard: Callable[[], AbstractContextManager[None]],
    on_step: Callable[[int], None],
) -> RebuildResult:
    """Run the cells of the current branch's lost variables again; see `Session.rebuild`.

    `guard` excludes other work on the session while the result is accepted.
    """
    current, files = branches.current, branches.files
    cells = current.kernel.lost_cells()
    if not cells:
        raise SessionError("No variable of this branch is lost: there is nothing to rebuild.")
    rounds = current.memory.conversation.rounds
    if cells.isdisjoint(cell.post_id for cell in successful_cells(rounds)):
        raise SessionError("The cells of the lost variables failed, so they do not run again.")
    shared = branches.shared
    if shared.scratch is not None:
        shared.scratch.discard()
    scratch = shared.scratch = _Scratch(branches, guard)
    variables: Mapping[str, str] = {}
    numbers = count(1)

    def run(cell: RecordedCell) -> Ran:
        nonlocal variables
        current.check()
        ran = repeat(cell)
        current.check()  # or the outcome would be that of an interrupted cell
        variables = ran.variables
        on_step(next(numbers))
        return ran

    try:
        repeat = current.cast.repeater(scratch.kernel())
        steps = list(replay(rounds, run, {}, only=cells))
    except BaseException:
        scratch.discard()
        raise
    changed = files.differing_files(current.name, scratch.name)
    others = changed_variables(variables_of(rounds), variables)
    return RebuildResult(scratch.name, steps, changed, others, scratch.accept, scratch.discard)
