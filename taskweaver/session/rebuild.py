"""Running cells again on a scratch copy, to be looked at before the result is taken over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from taskweaver.ces.common import Client
from taskweaver.memory.cells import Ran, RecordedCell, ran_code
from taskweaver.session.branches import SessionBranches
from taskweaver.session.compare import Pair, differing_files
from taskweaver.session.errors import SessionError
from taskweaver.session.replay import Step, replay
from taskweaver.session.states import RoundEnd


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Outcome of running cells again on a scratch copy. Accept it or discard it.

    Attributes:
        name: Name of the branch that it becomes when it is accepted.
        steps: The cells that ran, each compared with its recorded outcome.
        files: Working files that differ from the present ones: sizes as text; None is none.
        accept: Goes on with the result, on a new branch; the present one stays as it is.
        discard: Removes the scratch copy.
    """

    name: str
    steps: Sequence[Step]
    files: Mapping[str, Pair]
    accept: Callable[[], None]
    discard: Callable[[], None]

    @property
    def is_same(self) -> bool:
        """Whether every outcome is as recorded, and no file differs."""
        return not self.files and all(step.verdict == "same" for step in self.steps)


def rebuild(
    branches: SessionBranches,
    guard: Callable[[], AbstractContextManager[None]],
    on_step: Callable[[int], None],
) -> Rebuilt:
    """Run the cells of the current branch's lost variables again; see `Session.rebuild`.

    Args:
        branches: The session's branches.
        guard: Excludes other work on the session while the result is accepted or discarded.
        on_step: Called with the number of cells that have run, after each.
    """
    current, files = branches.current, branches.files
    cells = current.lost_cells(branches.restoring())
    if not cells:
        raise SessionError("No variable of this branch is lost: there is nothing to rebuild.")
    name = files.free_name("rebuilt")
    scratch = files.copy_files(current.name, name, limit_bytes=branches.config.fork_limit_bytes)
    client: Client | None = None

    def discard() -> None:
        if client is not None:
            client.stop()
        files.remove_files(name)

    def accept() -> None:
        with guard():
            files.add_branch(current.name, name)
            branches.checkout(name)
            rounds = branches.current.memory.conversation.rounds
            last = next(round_ for round_ in reversed(rounds) if ran_code(round_))
            branches.states.keep(RoundEnd(name, last.id, branches.current.client))

    try:
        client = branches.kernel_for(name)
        run = _counted(current.repeater(client), on_step)
        steps = list(replay(current.memory.conversation.rounds, run, {}, only=cells))
    except BaseException:
        discard()
        raise
    changed = differing_files(files.working_folder(current.name), scratch)
    return Rebuilt(name, steps, changed, accept, discard)


def _counted(
    run: Callable[[RecordedCell], Ran], on_step: Callable[[int], None]
) -> Callable[[RecordedCell], Ran]:
    done = 0

    def run_and_count(cell: RecordedCell) -> Ran:
        nonlocal done
        ran = run(cell)
        done += 1
        on_step(done)
        return ran

    return run_and_count
