"""A branch of a session: conversation, memory, files and kernel, which fork together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taskweaver.ces.common import Measured, Shared, inspectable
from taskweaver.errors import TaskWeaverError
from taskweaver.llm.types import Usage
from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.types import MergePreview, MergeReport
from taskweaver.memory.cells import ran_code
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventHandler, on_branch
from taskweaver.session.branches.alternatives import AlternativeBranches
from taskweaver.session.branches.cast import Cast, equip, runners
from taskweaver.session.branches.file_list import BranchFiles
from taskweaver.session.branches.kernel_seat import KernelSeat
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.branches.parts import SharedParts
from taskweaver.session.branches.turn import RoundControl, require_text
from taskweaver.session.errors import RoundInterrupted, SessionClosed, SessionError
from taskweaver.session.export_cells import CELL, outside_query
from taskweaver.session.storage.workdir import AddedFile, WorkingFiles
from taskweaver.utils.ids import create_id
from taskweaver.utils.text import RUN_THIS, fenced


class SessionBranch:
    """A branch of a session: `Session.at`. Its parts are opened on first use.

    Attributes:
        name: Name of the branch.
        kernel: Seat of the kernel.
        round_usage: Consumption of the models in the newest round.
    """

    def __init__(self, name: str, shared: SharedParts, at: Callable[[str], SessionBranch]) -> None:
        """Open nothing; `at` returns the other branches of the session by name."""
        self.name = name
        self.round_usage = Usage()
        self._shared, self._at = shared, at
        self._files, self._emitter = shared.parts.files, shared.parts.emitter
        self._models = shared.parts.llm_api.for_branch()
        self.kernel = KernelSeat(name, name, shared, self.rounds)
        self._working = WorkingFiles(self.execution_cwd)
        self._memory: Memory | None = None
        self._facts: BranchLongMemory | None = None
        self._cast: Cast | None = None
        self._before = Usage()  # consumption before the open round
        self._host: SessionBranch | None = None  # its open round goes on here as an alternative
        self._alternatives = AlternativeBranches(self._fork_in_round, self._emitter, self.interrupt)

    @property
    def memory(self) -> Memory:
        """The conversation.

        Raises:
            SessionClosed: If the session was stopped before the conversation was read.
        """
        return self._open_memory()

    def _open_memory(self, open_round: str = "") -> Memory:
        """Return the conversation; one read now goes on with the round `open_round`, if any."""
        if self._memory is not None:
            return self._memory
        with self._shared.opening:
            if self._memory is None:
                self._require_open()
                self._memory = self._files.memory(self.name, open_round)
            return self._memory

    def _require_open(self) -> None:
        if self._shared.locks.is_closed:
            raise SessionClosed("The session was stopped.")
        self._files.require(self.name)

    @property
    def long_memory(self) -> BranchLongMemory:
        """The facts kept for later requests of the branch and the project."""
        with self._shared.opening:
            if self._facts is None:
                handle = self._files.store[self.name]
                self._facts = BranchLongMemory(handle, self._shared.parts.project, self.memory)
            return self._facts

    @property
    def cast(self) -> Cast:
        """The roles.

        Raises:
            SessionClosed: If the session was stopped before the roles were made.
            RoleError: If a role cannot be used.
        """
        with self._shared.opening:
            if self._cast is None:
                self._require_open()
                self._cast = self._new_cast()
            return self._cast

    def _new_cast(self) -> Cast:
        config, client, memory = self._shared.config, self.kernel.get(), self.memory
        roles = self._shared.parts.new_roles(self.name, memory, self._models, client)
        is_new = not memory.conversation.rounds
        files = BranchFiles(self.execution_cwd, config, client, self._working, may_start=is_new)
        equip(roles, self.long_memory, files)
        control = RoundControl(self.check, self.interrupt, self._alternatives)
        cast = Cast(roles, memory, self._emitter, config, control, self.long_memory)
        cast.update_session_var(self._shared.session_var)
        return cast

    @property
    def execution_cwd(self) -> Path:
        """Working directory of the kernel."""
        return self._files.working_folder(self.name)

    def rounds(self, *, with_posts: bool = True) -> list[Round]:
        """Return the rounds that the branch sees, oldest first; nothing is opened.

        Without posts, those of code alone are read where the conversation is not open.
        """
        memory = self._memory
        if memory is not None:
            return list(memory.conversation.rounds)
        return BranchLog(self._files.store, self.name).rounds(with_posts=with_posts)

    @property
    def kernel_state(self) -> str:
        """State of the kernel, in a word or two."""
        client = self.kernel.taken
        return "not started" if client is None else client.state

    def update_session_var(self, variables: Mapping[str, str]) -> None:
        """Set variables that plugins read, where the roles have been made."""
        if self._cast is not None:
            self._cast.update_session_var(variables)

    def close(self) -> None:
        """Close the roles and stop the kernel; the conversation can still be read."""
        try:
            if self._cast is not None:
                self._cast.close()
        finally:
            self.kernel.stop()

    def release(self) -> None:
        """Close the branch and forget its parts, which are opened again on next use."""
        with self._shared.opening:
            try:
                self.close()
            finally:
                self._cast = self._memory = self._facts = None
                self.kernel.clear()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other work off the branch inside the block.

        Raises:
            SessionBusy: If the branch is at work.
            SessionClosed: If the session was stopped.
        """
        with self._shared.locks.hold(self.name):
            self._models.resume()
            try:
                yield
            finally:
                self._models.resume()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the branch for a change of its conversation or memory; raises as `hold`.

        Raises:
            SessionError: If only a search goes on with the branch.
        """
        if self._files.layout.is_of_search(self.name):
            raise SessionError(f"{self.name} belongs to the search. Fork it, and ask the fork.")
        with self.hold():
            yield

    @property
    def is_at_work(self) -> bool:
        """Whether the branch answers a message, or is forked or changed otherwise."""
        return self.name in self._shared.locks.busy

    @property
    def usage_now(self) -> Usage:
        """Consumption of the models in the newest round so far, alternatives included."""
        parts = [other.usage_now for other in self.others]
        return sum(parts, self._models.usage - self._before)

    @property
    def others(self) -> list[SessionBranch]:
        """The branches on which the open round goes on as alternatives."""
        return [self._at(name) for name in self._alternatives.names]

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
        with self.changing(), self._emitter.handle_events_ctx(event_handler):
            self._record_foreign_cells()
            self._shared.parts.spending.begin_round(self._shared.parts.llm_api.usage)
            cast, finder = self.cast, self._shared.config.finder(here)
            if runners(cast.roles):
                self._shared.parts.prepare_kernels()  # while the model writes
            again = [finder.of(named.spelled, named.source) for named in self._working.brought]
            named = [*finder.in_text(message), *(found for found in again if not found.problem)]
            notes = self._working.bring(files or [], named) + self.kernel.take_note()
            with self._round("\n".join([*notes, message])) as round_:
                if not cast.decide_facts(round_):
                    cast.turn.play(round_)
            return round_

    def run_code(self, code: str, event_handler: SessionEventHandler | None = None) -> Round:
        """Run code of the user's own in the branch's kernel, as a round; no model is asked.

        Raises:
            SessionBusy, SessionClosed, SessionError: As `send_message`.
        """
        require_text(code)
        with self.changing(), self._emitter.handle_events_ctx(event_handler):
            self._record_foreign_cells()
            cast = self.cast
            with self._round(f"{RUN_THIS}\n{fenced(code, 'python')}") as round_:
                cast.run(round_, code)
            return round_

    def start_kernel(self) -> list[str]:
        """Start the kernel for other Jupyter clients; return lines about missing variables.

        Raises:
            KernelError: If the kernel cannot be started.
            SessionBusy, SessionClosed: As `send_message`.
        """
        with self.hold():
            self.cast  # noqa: B018 - the roles load their plugins
            lines = self.kernel.take_notice()
            result = self.kernel.get().execute_code(create_id("attach"), "")
            return lines + [f"{tag}: {text}" for _, tag, text in result.log]

    def record_foreign_cells(self) -> None:
        """Record the cells that other Jupyter clients ran in the kernel, if any, as a round.

        So their variables are known to the roles, and stored. Messages and forks do this first.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
        """
        with self.hold():
            self._record_foreign_cells()

    def _record_foreign_cells(self) -> None:
        client = self.kernel.taken
        if isinstance(client, Shared) and (codes := client.foreign_cells()):
            cast = self.cast
            with self._round(outside_query(codes)) as round_:
                cast.run(round_, CELL)

    def carry_out(self, order: Post) -> Post:
        """Have an order of the leader carried out in the open round; see `Turn.carry_out`."""
        with on_branch(self.name):
            return self.cast.turn.carry_out(order)

    @contextmanager
    def _round(self, query: str) -> Iterator[Round]:
        """Open a round for the block, and end the round; an error in the block makes it failed."""
        emitter, states = self._emitter, self._shared.states
        warnings = [*self.kernel.take_notice(), *states.take_problems()]
        states.begin_round(self.name)
        round_ = self.memory.create_round(query)
        self._begin(round_.id)
        with on_branch(self.name):
            emitter.start_round(round_.id, query)
            for warning in warnings:
                emitter.warn(warning)
            try:
                yield round_
            except TaskWeaverError as error:
                gave_up = self._models.is_interrupted and not self._shared.locks.is_closed
                self._fail(round_, "interrupted" if gave_up else str(error))
            except Exception as error:
                self._shared.logger.exception(f"round {round_.id} failed")
                self._fail(round_, f"{type(error).__name__}: {error} (the log has the details)")
            except BaseException:
                self.interrupt()
                self._fail(round_, "interrupted")
                raise
            else:
                self.memory.end_round(round_, "finished")
            finally:
                self.round_usage = self.usage_now
                kernel = self.kernel.get()
                if isinstance(kernel, Measured) and (left := kernel.left_behind()):
                    emitter.warn(left)
                emitter.end_round(round_.id)
                self._end_round(round_)

    def _begin(self, round_id: str, host: SessionBranch | None = None) -> None:
        """Begin a round, or go on with that of `host` as one of its alternatives."""
        self._models.round_id, self._host = round_id, host
        self._before = self._models.usage

    def _fail(self, round_: Round, reason: str) -> None:
        self._shared.logger.warning(f"round {round_.id} failed: {reason}")
        round_.reason = reason
        self.memory.end_round(round_, "failed")
        self._emitter.emit_error(reason)

    def _end_round(self, round_: Round) -> None:
        """End a round, also on the branches of its alternatives, and store the states later."""
        held = _with_below(self)[1:]
        try:
            ended = [(self, round_), *self.end_alternatives(round_)]
        finally:  # also when there is no room on the disk for their ends
            for other in held:
                self._shared.locks.give_back(other.name)
        for branch, own in ended:
            branch.note_files(own.id)
        self._shared.states.end_round(
            self.name, [branch.kernel.round_end(own) for branch, own in ended if ran_code(own)]
        )

    def join_round(self, round_id: str, host: SessionBranch) -> None:
        """Go on with the open round of `host`, of which this branch was made, as an alternative.

        Raises:
            RoleError: If a role cannot be used.
        """
        self._open_memory(round_id)
        host.kernel.fork(self.kernel)
        try:
            self.cast  # noqa: B018 - a role that cannot be used is a problem of the fork
        except BaseException:
            self.release()  # whoever reads it next ends its round as failed
            raise
        self._begin(round_id, host)

    def leave_round(self) -> list[tuple[SessionBranch, Round]]:
        """End the part in the round of another branch; return the branches that had one."""
        self._host = None
        self._models.resume()
        own = self.memory.conversation.rounds[-1]
        return [(self, own), *self.end_alternatives(own)]

    def end_alternatives(self, round_: Round) -> list[tuple[SessionBranch, Round]]:
        """End a round on the branches of its alternatives; return each with its copy of it."""
        others = self.others
        self._alternatives.end(round_)
        return [ended for other in others for ended in other.leave_round()]

    def note_files(self, round_id: str) -> None:
        """List the working files at the end of a round; a failure is logged."""
        try:
            self._files.note_files(self.name, round_id)
        except SessionError as error:
            self._shared.logger.warning(f"the files after round {round_id} are not listed: {error}")

    def check(self) -> None:
        """Check, between the steps of a round, whether the round may go on.

        Raises:
            SessionClosed: If the session was stopped.
            RoundInterrupted: If the round was interrupted.
            LimitReached: If the round or the session has reached its limit.
        """
        if self._shared.locks.is_closed:
            raise SessionClosed("The session was stopped.")
        if self._host is not None:
            self._host.check()
            return
        if self._models.is_interrupted:
            raise RoundInterrupted("interrupted")
        self._shared.parts.spending.check(self._shared.parts.llm_api.usage, self.usage_now)

    def interrupt(self) -> None:
        """Cancel the open round, from any thread: model call, cell, later steps, alternatives."""
        cast = self._cast
        if cast is None:
            return
        if self.is_at_work:
            self._models.interrupt()
        for other in self.others:
            other.interrupt()
        cast.interrupt()
        self.kernel.get().interrupt()
        scratch = self._shared.scratch
        if scratch is not None and scratch.source == self.name:
            scratch.interrupt()

    def view(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a view of the variables, restored before if need be; see `Inspectable`.

        Raises:
            KernelError: If the kernel cannot be started, or cannot show its variables.
            SessionBusy: If the branch is at work.
            SessionClosed: If the session was stopped.
        """
        with self.hold():
            self.cast  # noqa: B018 - the roles load their plugins
            return inspectable(self.kernel.get()).view(wanted)

    def fork(
        self,
        name: str = "",
        *,
        at_round: int | None = None,
        title: str = "",
        is_similar: bool = False,
    ) -> str:
        """Fork, see `Session.fork`; with `is_similar` by another name where `name` is taken.

        Raises:
            SessionBusy, SessionClosed, SessionError: As `Session.fork`.
        """
        with self.hold():
            self._record_foreign_cells()
            limit_bytes = self._shared.config.fork_limit_bytes
            with self._shared.forking:
                name = self._files.new_name(name, title, is_similar=is_similar)
                # Held until its kernel is there: whoever asks the branch now would start another.
                with self._shared.locks.hold(name):
                    self._files.fork(self.name, name, at_round, title, limit_bytes=limit_bytes)
                    self.kernel.fork(self._at(name).kernel, at_round)
            return name

    def _fork_in_round(self, name: str) -> tuple[SessionBranch, str]:
        """Make a branch inside the open round, which goes on there as well.

        Returns:
            The branch, held until the end of the round, and the reason its kernel was not forked;
            empty if it was.

        Raises:
            SessionError: As `fork`; a name that is taken is given a number.
        """
        limit_bytes, locks = self._shared.config.fork_limit_bytes, self._shared.locks
        with self._shared.forking:
            name = self._files.new_name(name, is_similar=True)
            locks.take(name)
            try:
                self._files.fork(self.name, name, None, limit_bytes=limit_bytes)
                made = self._at(name)
                made.join_round(self.memory.conversation.rounds[-1].id, self)
                return made, made.kernel.why_restored
            except BaseException:
                locks.give_back(name)
                raise

    def rename(self, title: str) -> None:
        """Give the branch a title, which is shown in place of its name; its work goes on.

        Raises:
            SessionError: If the title is taken, or is no name of a branch.
        """
        with self._shared.forking:
            self._files.rename(self.name, title)

    def merge_preview(self, source: str) -> MergePreview:
        """Return the things that `merge` would bring, and its conflicts; raises as `merge`."""
        self._files.require(source)
        self._files.require(self.name)
        return self._files.store.merge_preview(source, self.name)

    def merge(
        self, source: str, policy: str = "theirs", choices: Mapping[str, str] | None = None
    ) -> MergeReport:
        """Copy another branch's core and archival memory to this one; see `Session.merge`.

        `choices` has policies for single keys of core memory that both branches changed.

        Raises:
            SessionBusy, SessionClosed, SessionError, InvalidUpdate: As `Session.merge`.
        """
        with self.changing():
            self._files.require(source)
            return self._files.store.merge(source, self.name, policy, choices)


def _with_below(branch: SessionBranch) -> list[SessionBranch]:
    """Return a branch, and those on which its open round goes on, at any depth."""
    return [branch, *(below for other in branch.others for below in _with_below(other))]
