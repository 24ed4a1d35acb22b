"""A branch as a program uses it: it answers by itself, while other branches answer too."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taskweaver.errors import TaskWeaverError
from taskweaver.llm.types import Usage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.types import MergePreview, MergeReport
from taskweaver.memory.memory import Memory
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventEmitter, SessionEventHandler, on_branch
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.branches.open_branches import SessionBranches
from taskweaver.session.branches.parts import SessionParts
from taskweaver.session.errors import SessionError
from taskweaver.session.export_cells import CELL, outside_query
from taskweaver.session.limits import Spending
from taskweaver.session.restoring import Restoring
from taskweaver.session.storage.workdir import AddedFile
from taskweaver.utils.ids import create_id
from taskweaver.utils.text import RUN_THIS, fenced


class AnsweringBranch:
    """A branch of a session: `Session.at`. Other branches answer at the same time.

    Attributes:
        name: Its name.
        round_usage: Consumption of the models in its newest round.
    """

    def __init__(
        self,
        name: str,
        branches: SessionBranches,
        spending: Spending,
        parts: SessionParts,
        logger: TelemetryLogger,
    ) -> None:
        self.name = name
        self.round_usage = Usage()
        self._branches = branches
        self._spending = spending
        self._session_models = parts.llm_api
        self._emitter: SessionEventEmitter = parts.emitter
        self._logger = logger

    @property
    def _branch(self) -> SessionBranch:
        return self._branches.open(self.name)

    @property
    def memory(self) -> Memory:
        """Its conversation."""
        return self._branch.memory

    def rounds(self) -> list[Round]:
        """Return the rounds that it sees, oldest first; it need not be open for it."""
        found = self._branches.find_open(self.name)
        if found is not None:
            return list(found.memory.conversation.rounds)
        return BranchLog(self._branches.files.store, self.name).rounds()

    @property
    def long_memory(self) -> BranchLongMemory:
        """The facts kept for later requests of this branch and the project."""
        return self._branch.long_memory

    @property
    def execution_cwd(self) -> Path:
        """Working directory of its kernel."""
        return self._branches.files.working_folder(self.name)

    @property
    def kernel_state(self) -> str:
        """State of its kernel, in a word or two."""
        client = self._branches.find_client(self.name)
        return "not started" if client is None else client.state

    @property
    def last_foreign_request(self) -> float:
        """Time of the last request of another Jupyter client; see `Client`."""
        client = self._branches.find_client(self.name)
        return -math.inf if client is None else client.last_foreign_request

    @property
    def is_at_work(self) -> bool:
        """Whether it answers a message, or is forked or changed otherwise."""
        return self.name in self._branches.locks.busy

    @property
    def usage_now(self) -> Usage:
        """Consumption of the models in its open round so far."""
        return self._branches.rounds.usage(self.name)

    @property
    def why_restored(self) -> str:
        """Reason it starts from stored variables; empty if its kernel was forked."""
        return self._branches.why_restored(self.name)

    def send_message(
        self,
        message: str,
        event_handler: SessionEventHandler | None = None,
        files: Sequence[AddedFile] | None = None,
        here: Path | None = None,
    ) -> Round:
        """Answer a message on this branch; see `Session.send_message`.

        Paths in the message name files only for a user of this machine, who is in folder `here`.

        Raises:
            SessionBusy: If this branch is at work.
            SessionClosed, SessionError, LimitReached, FileNotAdded: As `Session.send_message`.
        """
        require_text(message)
        with self.hold(), self._emitter.handle_events_ctx(event_handler):
            self._record_foreign_cells()
            self._spending.begin_round(self._session_models.usage)
            branch = self._branch
            finder = self._branches.config.finder(here)
            again = [finder.of(named.spelled, named.source) for named in branch.files.brought]
            named = [*finder.in_text(message), *(found for found in again if not found.problem)]
            notes = branch.files.bring(files or [], named)
            notes += branch.take_note(self.restoring())
            return self._play(branch, "\n".join([*notes, message]), branch.play)

    def run_code(self, code: str, event_handler: SessionEventHandler | None = None) -> Round:
        """Run code of the user's own in the branch's kernel, as a round; no model is asked.

        Raises:
            SessionBusy, SessionClosed, SessionError: As `send_message`.
        """
        require_text(code)
        with self.hold(), self._emitter.handle_events_ctx(event_handler):
            self._record_foreign_cells()
            branch = self._branch
            return self._play(branch, f"{RUN_THIS}\n{fenced(code, 'python')}", branch.run(code))

    def start_kernel(self) -> list[str]:
        """Start its kernel, with its variables, for other Jupyter clients.

        Returns:
            The variables that it lacks, in lines for the user.

        Raises:
            KernelError: If the kernel cannot be started.
            SessionBusy, SessionClosed: As `send_message`.
        """
        with self.hold():
            branch = self._branch
            lines = branch.take_notice(self._branches.restoring(branch))
            result = branch.client.execute_code(create_id("attach"), "")
            return lines + [f"{tag}: {text}" for _, tag, text in result.log]

    def record_foreign_cells(self) -> None:
        """Record the cells that other Jupyter clients ran in its kernel, if any, as a round.

        So their variables are known to the roles, and stored. Messages and forks do this first.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
        """
        with self.hold():
            self._record_foreign_cells()

    def _record_foreign_cells(self) -> None:
        branch = self._branches.find_open(self.name)
        codes = [] if branch is None else branch.client.foreign_cells()
        if branch is not None and codes:
            self._play(branch, outside_query(codes), branch.run(CELL))

    def _play(self, branch: SessionBranch, query: str, play: Callable[[Round], None]) -> Round:
        branches, emitter = self._branches, self._emitter
        warnings = [*self.restore_notice(), *branches.states.take_problems()]
        branches.states.begin_round(self.name)
        round_ = branch.memory.create_round(query)
        branches.rounds.begin(self.name, round_.id)
        with on_branch(self.name):
            emitter.start_round(round_.id, query)
            for warning in warnings:
                emitter.warn(warning)
            try:
                self._answer(branch, round_, play)
            finally:
                self.round_usage = branches.rounds.usage(self.name)
                left = branch.client.left_behind()
                if left:
                    emitter.warn(left)
                emitter.end_round(round_.id)
                branches.end_round(self.name, round_)
        return round_

    def _answer(self, branch: SessionBranch, round_: Round, play: Callable[[Round], None]) -> None:
        try:
            play(round_)
        except TaskWeaverError as error:
            is_interrupted = self._branches.rounds.is_interrupted(self.name)
            gave_up = is_interrupted and not self._branches.locks.is_closed
            self._fail(branch, round_, "interrupted" if gave_up else str(error))
        except Exception as error:
            self._logger.exception(f"round {round_.id} failed")
            reason = f"{type(error).__name__}: {error} (the log has the details)"
            self._fail(branch, round_, reason)
        except BaseException:
            self.interrupt()
            self._fail(branch, round_, "interrupted")
            raise
        else:
            branch.memory.end_round(round_, "finished")

    def _fail(self, branch: SessionBranch, round_: Round, reason: str) -> None:
        self._logger.warning(f"round {round_.id} failed: {reason}")
        round_.reason = reason
        branch.memory.end_round(round_, "failed")
        self._emitter.emit_error(reason)

    def restoring(self) -> Restoring | None:
        """Return how its variables come back; None once its kernel has them."""
        return self._branches.restoring(self._branch)

    def restore_notice(self) -> list[str]:
        """Return, once, the variables it lacks, and the remedy."""
        return self._branch.take_notice(self.restoring())

    def interrupt(self) -> None:
        """Cancel its open round, from any thread: model call, cell and later steps."""
        self._branches.interrupt(self.name)

    def fork(self, name: str = "", *, at_round: int | None = None) -> str:
        """Make a branch of this one; see `Session.fork`.

        Raises:
            SessionBusy, SessionClosed, SessionError: As `Session.fork`.
        """
        with self.hold():
            self._record_foreign_cells()
            return self._branches.fork(self._branch, name, at_round)

    def rename(self, title: str) -> None:
        """Give it a title, which is shown in place of its name; its work goes on.

        Raises:
            SessionError: If the title is taken, or is no name of a branch.
        """
        self._branches.rename(self.name, title)

    def merge_preview(self, source: str) -> MergePreview:
        """Return the things that `merge` would bring, and its conflicts; raises as that does."""
        self._branches.files.require(source)
        self._branches.files.require(self.name)
        return self._branches.files.store.merge_preview(source, self.name)

    def merge(
        self, source: str, policy: str = "theirs", choices: Mapping[str, str] | None = None
    ) -> MergeReport:
        """Copy another branch's core and archival memory to this one; see `Session.merge`.

        `choices` has policies for single keys of core memory that both branches changed.

        Raises:
            SessionBusy, SessionClosed, SessionError, InvalidUpdate: As `Session.merge`.
        """
        with self.hold():
            self._branches.files.require(source)
            return self._branches.files.store.merge(source, self.name, policy, choices)

    def view(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a view of its variables, restored before if need be; see `Client.view`.

        Raises:
            KernelError: If its kernel cannot be started, or cannot show its variables.
            SessionBusy: If it is at work.
            SessionClosed: If the session was stopped.
        """
        with self.hold():
            return self._branch.client.view(wanted)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other work off the branch inside the block.

        Raises:
            SessionBusy: If it is at work.
            SessionClosed: If the session was stopped.
        """
        with self._branches.locks.hold(self.name):
            self._branches.rounds.resume(self.name)
            try:
                yield
            finally:
                self._branches.rounds.resume(self.name)


def require_text(message: object) -> None:
    """Check that a message has a text; raises SessionError."""
    if not isinstance(message, str) or not message.strip():
        raise SessionError(f"A message is a text that says something, not {message!r}.")
