"""The branches of a session: the current one, and the end of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from taskweaver.ces.state_folder import StateDamaged, StateFolder
from taskweaver.logging.log import TelemetryLogger
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.branches.parts import SessionParts, SharedParts
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import SessionError
from taskweaver.session.round_states import RoundStates, Snapshots


class BranchTree:
    """Branches of a session. Close the tree: roles and kernels end.

    Attributes:
        shared: What the branches share.
        files: Memory and folders.
    """

    def __init__(
        self,
        parts: SessionParts,
        config: AppSessionConfig,
        logger: TelemetryLogger,
    ) -> None:
        """Make the roles of the branch that was current last; raises as `SessionBranch.cast`."""
        self.files = parts.files
        self._config = config
        self._logger = logger
        self.shared = SharedParts(parts, config, logger, self._new_states())
        self._branches: dict[str, SessionBranch] = {}
        self._current = self.files.current
        self.current.cast  # noqa: B018 - a role that cannot be used is an error of the session

    def _new_states(self, problems: Sequence[str] = ()) -> RoundStates:
        folder = StateFolder(self.files.states, self._config.state_limit_bytes)
        snapshots = Snapshots(self._config.snapshot_limit_bytes)
        in_use = partial(self.files.manifests_in_use, folder)
        return RoundStates(snapshots, folder, self._logger, in_use, problems)

    def at(self, name: str) -> SessionBranch:
        """Return a branch; nothing of the branch is opened.

        Raises:
            SessionError: If the branch does not exist.
        """
        if name not in self._branches:
            if not self.shared.locks.is_closed:
                self.files.require(name)
            self._branches.setdefault(name, SessionBranch(name, self.shared, self.at))
        return self._branches[name]

    @property
    def used(self) -> list[SessionBranch]:
        """The branches that were asked for."""
        return list(self._branches.values())

    @property
    def current(self) -> SessionBranch:
        """The current branch."""
        return self.at(self._current)

    def checkout(self, name: str) -> None:
        """Make a branch the current one.

        Raises:
            SessionError: If the branch does not exist, or one of its roles cannot be used.
        """
        self.at(name).cast  # noqa: B018 - a branch that cannot be used does not become current
        self._current = name
        self.files.set_current(name)

    def trust_state(self) -> None:
        """Agree to load stored variables that this installation did not write here.

        Raises:
            SessionError: If there are none, or the agreement cannot be written.
        """
        states = self.shared.states
        states.finish()
        if not states.folder.has_untrusted:
            raise SessionError("The stored variables of this session are trusted already.")
        try:
            states.folder.trust()
        except StateDamaged as error:
            raise SessionError(str(error)) from error
        except OSError as error:
            text = f"{states.folder.folder} cannot be written: {error.strerror}."
            raise SessionError(text) from error

    def update_session_var(self, variables: Mapping[str, str]) -> None:
        """Set variables that plugins read."""
        self.shared.session_var.update(variables)
        for branch in self.used:
            branch.update_session_var(variables)

    def release(self) -> None:
        """Store the newest states, then end roles and kernels, which are made again on next use.

        No branch may be at work.
        """
        self.shared.states.close()
        self.shared.states = self._new_states(self.shared.states.take_problems())
        self._discard_scratch()
        for branch in self.used:
            branch.release()

    def close(self) -> None:
        """Store the newest states, then end roles and kernels."""
        try:
            self.shared.states.close()  # before their kernels, which would wait for the snapshots
        finally:
            self._discard_scratch()
            for branch in self.used:
                branch.close()

    def _discard_scratch(self) -> None:
        scratch, self.shared.scratch = self.shared.scratch, None
        if scratch is not None:
            scratch.discard()
