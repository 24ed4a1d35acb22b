"""The branches of a session that are open, and the states that their kernels start from."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from taskweaver.ces.common import Client, Snapshot
from taskweaver.ces.errors import KernelError
from taskweaver.ces.state_folder import StateDamaged, StateFolder
from taskweaver.ces.state_transfer import Restorable
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.cells import ran_code
from taskweaver.memory.round import Round
from taskweaver.session.branches.alternatives import AlternativeBranches
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.branches.locks import BranchLocks
from taskweaver.session.branches.open_rounds import OpenRounds
from taskweaver.session.branches.parts import SessionParts
from taskweaver.session.branches.turn import RoundControl
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import SessionClosed, SessionError
from taskweaver.session.limits import Spending
from taskweaver.session.restoring import (
    RestorePoint,
    Restoring,
    cells_with_variables,
    newest_state,
)
from taskweaver.session.round_states import RoundEnd, RoundStates, Snapshots
from taskweaver.session.storage.store import SessionFiles

STATE_FOLDER = "state"


class Scratch(Protocol):
    """A copy of a branch that is no branch yet."""

    def interrupt(self) -> None:
        """Interrupt the cell that runs in it; may be called from any thread."""

    def discard(self) -> None:
        """Remove it, unless it is a branch by now."""


class SessionBranches:
    """Branches of a session. Close it: their roles and kernels end.

    Attributes:
        locks: The branches that are at work.
        rounds: The rounds that are open on them.
        scratch: The newest scratch copy; None for none.
    """

    def __init__(
        self,
        parts: SessionParts,
        config: AppSessionConfig,
        logger: TelemetryLogger,
        spending: Spending,
    ) -> None:
        """Open the branch that was current last."""
        self._parts = parts
        self.files: SessionFiles = parts.files
        self.config = config
        self.session_var: dict[str, str] = {}
        self.locks = BranchLocks()
        self.rounds = OpenRounds(parts.llm_api, spending)
        self._making = threading.RLock()
        self._forking = threading.Lock()
        self._open: dict[str, SessionBranch] = {}
        self._forked: dict[str, Client] = {}  # kernels of branches that are not open yet
        self._why_restored: dict[str, str] = {}
        self.scratch: Scratch | None = None
        self._logger = logger
        self.states = self._new_states()
        self._current = self.files.current
        self.open(self._current)

    def _new_states(self, problems: Sequence[str] = ()) -> RoundStates:
        folder = StateFolder(self.files.folder / STATE_FOLDER, self.config.state_limit_bytes)
        snapshots = Snapshots(self.config.snapshot_limit_bytes)
        return RoundStates(snapshots, folder, self._logger, self._manifests_in_use, problems)

    @property
    def current_name(self) -> str:
        """Name of the current branch, which need not be open."""
        return self._current

    @property
    def current(self) -> SessionBranch:
        """The current branch."""
        return self.open(self._current)

    def open(self, name: str, open_round: str = "") -> SessionBranch:
        """Return a branch, opened if it is not open yet; it goes on with the round of an id.

        Raises:
            SessionError: If the branch does not exist.
            SessionClosed: If the session was stopped, and the branch is not open.
        """
        with self._making:
            if name not in self._open:
                if self.locks.is_closed:
                    raise SessionClosed("The session was stopped.")
                self.files.require(name)
                self._open[name] = self._opened(name, open_round)
                self._forked.pop(name, None)
            return self._open[name]

    @property
    def open_names(self) -> list[str]:
        """Names of the branches that are open."""
        return list(self._open)

    def find_open(self, name: str) -> SessionBranch | None:
        """Return a branch if it is open."""
        return self._open.get(name)

    def find_client(self, name: str) -> Client | None:
        """Return the kernel of a branch that is open, or was forked and is not open yet."""
        # `open` enters a branch in `_open` before it leaves `_forked`: read in the other order.
        forked = self._forked.get(name)
        found = self._open.get(name)
        return forked if found is None else found.client

    def _opened(self, name: str, open_round: str) -> SessionBranch:
        parts = self._parts.open_branch(name, open_round)
        emitter, lineage = self._parts.emitter, self.files.lineage(name)

        def origin() -> Restorable | None:
            return self._restorable(lineage, parts.memory.conversation.rounds)

        def cancel() -> None:
            self.interrupt(name)

        alternatives = AlternativeBranches(partial(self._fork_in_round, name), emitter, cancel)
        control = RoundControl(partial(self.check, name), cancel, alternatives)
        branch = SessionBranch(name, parts, emitter, self.config, control, origin)
        branch.update_session_var(self.session_var)
        self.rounds.add(name, parts.llm_api, alternatives)
        return branch

    def checkout(self, name: str) -> None:
        """Make a branch the current one; raises as `open`."""
        self._current = self.open(name).name
        self.files.set_current(name)

    def check(self, name: str) -> None:
        """Raise if the work that goes on on a branch must end; see `OpenRounds.check`."""
        if self.locks.is_closed:
            raise SessionClosed("The session was stopped.")
        self.rounds.check(name)

    def end_round(self, name: str, round_: Round) -> None:
        """End a round of a branch on those of its alternatives as well, and keep its states.

        The states of the kernels are taken and stored in the background.
        """
        alternatives = self.rounds.alternatives(name)
        try:
            ended = [(self.open(name), round_), *self.rounds.end(name, round_)]
        finally:  # also when there is no room on the disk for their ends
            for alternative in alternatives:
                self.locks.give_back(alternative)
        for each, own in ended:
            self._note_files(each.name, own.id)
        self.states.end_round(
            name, [RoundEnd(each.name, own.id, each.client) for each, own in ended if ran_code(own)]
        )

    def _note_files(self, branch: str, round_id: str) -> None:
        try:
            self.files.note_files(branch, round_id)
        except SessionError as error:
            self._logger.warning(f"the files after round {round_id} are not listed: {error}")

    def fork(self, source: SessionBranch, name: str, at_round: int | None) -> str:
        """Make a branch of another; return its name. See `Session.fork`."""
        limit_bytes = self.config.fork_limit_bytes
        with self._forking:
            name = self.files.fork(source.name, name, at_round, limit_bytes=limit_bytes)
            self._why_restored[name] = self.fork_kernel(source, name, at_round)
        return name

    def rename(self, branch: str, title: str) -> None:
        """Give a branch a title; raises as `SessionFiles.rename`."""
        with self._forking:
            self.files.rename(branch, title)

    def _fork_in_round(self, source: str, name: str) -> tuple[SessionBranch, str]:
        """Make a branch of another inside its open round, which goes on there as well.

        Returns:
            The branch, held until the end of the round, and the reason its kernel was not forked;
            empty if it was.

        Raises:
            SessionError: As `fork`; a name that is taken is given a number.
        """
        branch = self.open(source)
        with self._forking:
            name = self.files.similar_name(name)
            self.locks.take(name)
            try:
                self.files.fork(source, name, None, limit_bytes=self.config.fork_limit_bytes)
                why = self._why_restored[name] = self.fork_kernel(branch, name, None)
                round_id = branch.memory.conversation.rounds[-1].id
                made = self.open(name, round_id)
                self.rounds.begin(name, round_id, host=source)
                return made, why
            except BaseException:
                self.locks.give_back(name)
                raise

    def fork_kernel(self, source: SessionBranch, name: str, at_round: int | None) -> str:
        """Fork the kernel of a branch for another one.

        Returns:
            Why it starts from stored variables instead; empty when it was forked, or no code ran.
        """
        self.states.settle()
        rounds = source.memory.conversation.rounds
        seen = rounds[:at_round]
        last = next((round_ for round_ in reversed(seen) if ran_code(round_)), None)
        if last is None:
            return ""
        is_now = not any(map(ran_code, rounds[len(seen) :]))
        kept = self.states.snapshots.get(self.files.lineage(source.name), last.id)
        try:
            if kept is not None:
                self._forked[name] = self._parts.fork_kernel(name, kept)
            elif is_now:
                self._fork_now(name, source.client)
            else:
                return self.states.snapshots.why_none(last.id)
        except KernelError as error:
            return str(error)
        return ""

    def _fork_now(self, name: str, client: Client) -> None:
        state: Snapshot = client.snapshot()
        try:
            self._forked[name] = self._parts.fork_kernel(name, state)
        finally:
            state.close()

    def kernel_for(self, name: str) -> Client:
        """Return the kernel of a branch that is to be made of the current one."""
        why_not_forked = self.fork_kernel(self.current, name, None)
        client = self._forked.pop(name, None) or self._parts.client(name)
        if why_not_forked:
            lineage = self.files.lineage(self.current.name)
            rounds = self.current.memory.conversation.rounds
            client.restore_from(lambda: self._restorable(lineage, rounds))
        return client

    def trust_state(self) -> None:
        """Agree to load stored variables that this installation did not write here.

        Raises:
            SessionError: If there are none, or the agreement cannot be written.
        """
        folder = self.states.folder
        self.states.finish()
        if not folder.has_untrusted:
            raise SessionError("The stored variables of this session are trusted already.")
        try:
            folder.trust()
        except StateDamaged as error:
            raise SessionError(str(error)) from error
        except OSError as error:
            raise SessionError(f"{folder.folder} cannot be written: {error.strerror}.") from error

    def why_restored(self, name: str) -> str:
        """Return the reason a branch's kernel was not forked; empty if it was."""
        return self._why_restored.get(name, "")

    def restoring(self, branch: SessionBranch) -> Restoring | None:
        """Return how a branch's variables come back; None if its kernel has them."""
        client, rounds = branch.client, branch.memory.conversation.rounds
        if client.has_state or not any(cells_with_variables(rounds)):
            return None
        is_trusted = self.states.folder.is_trusted
        try:
            stored = self._stored(self.files.lineage(branch.name), rounds)
        except StateDamaged as error:
            return Restoring(rounds, None, str(error), is_trusted=is_trusted)
        return Restoring(rounds, stored, "", is_trusted=is_trusted)

    def _stored(self, lineage: list[str], rounds: list[Round]) -> RestorePoint | None:
        """Return the newest stored state of a conversation; raises StateDamaged."""
        if not self.states.folder.is_trusted:
            return None
        self.states.finish()
        return newest_state(rounds, lambda id_: self.states.folder.find(lineage, id_))

    def _restorable(self, lineage: list[str], rounds: list[Round]) -> Restorable | None:
        try:
            stored = self._stored(lineage, rounds)
        except StateDamaged:
            return None  # `restoring` reports it
        if stored is None:
            return None
        return Restorable(self.states.folder, stored.manifest, stored.number, stored.missing)

    def _manifests_in_use(self) -> set[Path]:
        """Return, for each branch, the manifest its kernel would start from."""
        found = set()
        for branch in self.files.branches():
            lineage = self.files.lineage(branch.name)
            for id_ in reversed(self.files.round_ids(branch.name)):
                path = self.states.folder.path(lineage, id_)
                if path is not None:
                    found.add(path)
                    break
        return found

    def interrupt(self, name: str) -> None:
        """Interrupt the work on a branch; may be called from any thread.

        Its model call, its cell and its later steps end, those of its alternatives too.
        """
        branch = self._open.get(name)
        if branch is None:
            return
        self.rounds.interrupt(name, is_at_work=name in self.locks.busy)
        branch.interrupt()
        if self.scratch is not None and name == self._current:
            self.scratch.interrupt()

    def release(self) -> None:
        """Store the newest states, then end all roles and kernels; `open` makes new ones.

        No branch may be at work.
        """
        self.states.close()
        self.states = self._new_states(self.states.take_problems())
        if self.scratch is not None:
            self.scratch.discard()
            self.scratch = None
        with self._making:
            branches, self._open = self._open, {}
            self.rounds.clear()
            for branch in branches.values():
                branch.close()
            self._end_forked()

    def update_session_var(self, variables: Mapping[str, str]) -> None:
        """Set variables that plugins read, in all open branches."""
        self.session_var.update(variables)
        for branch in list(self._open.values()):
            branch.update_session_var(variables)

    def close(self) -> None:
        """Store the newest state, then end roles and kernels."""
        try:
            self.states.close()  # before their kernels, which would wait for the snapshots
        finally:
            if self.scratch is not None:
                self.scratch.discard()
            for branch in list(self._open.values()):
                branch.close()
            self._end_forked()

    def _end_forked(self) -> None:
        while self._forked:
            self._forked.popitem()[1].stop()
