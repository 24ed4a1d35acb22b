"""A session: one conversation, its roles, its kernel and its working directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.common import Client, Forkable, Measured
from taskweaver.ces.process.footprint import Footprint
from taskweaver.errors import TaskWeaverError
from taskweaver.llm.types import Usage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.branched.types import MergeReport
from taskweaver.memory.memory import Memory
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventHandler, SessionEventType
from taskweaver.role.role import Role
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.branches.locks import PAST
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.branches.parts import SessionMetadata, SessionParts
from taskweaver.session.branches.tree import BranchTree
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import SessionError
from taskweaver.session.moment_kernel import MomentKernel
from taskweaver.session.moments import Moments
from taskweaver.session.rebuild import RebuildResult, rebuild
from taskweaver.session.restoring import Restoring
from taskweaver.session.storage.compare import BranchDifference
from taskweaver.session.storage.store import BranchInfo
from taskweaver.session.storage.workdir import AddedFile
from taskweaver.utils.system.forks import bind_to_process

_UNUSED = ("not started", "stopped")


class Session:
    """Answers messages one after another; use it as a context manager, or call `stop`.

    A session is a tree of branches. Messages go to the current branch: its conversation, its
    kernel, its working directory.

    Attributes:
        session_id: Its id.
        workspace: Its folder.
        config: Its configuration.
        events: Its numbered events, which readers resume by number.
        session_var: Variables plugins read.
        prompts: The newest prompts and replies.
        moments: Its branches as they were at the ends of their rounds.
        moment_kernel: The kernel that shows variables as they were.
    """

    def __init__(
        self,
        metadata: SessionMetadata,
        config: AppSessionConfig,
        parts: SessionParts,
        logger: TelemetryLogger,
    ) -> None:
        self.metadata = metadata
        self.session_id = metadata.session_id
        self.workspace = metadata.workspace
        self.config = config
        self.event_emitter = parts.emitter
        self.events = parts.events
        parts.emitter.register(parts.events)
        self._parts = parts
        self._llm_api = parts.llm_api
        self.prompts = parts.llm_api.prompts
        self._logger = logger
        self._stored = parts.files
        self._tree = BranchTree(parts, config, logger)
        self._shared = self._tree.shared
        self.moments = Moments(self._tree)
        self.moment_kernel = MomentKernel(self._tree, self.moments)
        self.session_var = self._shared.session_var
        bind_to_process(self)

    def at(self, name: str) -> SessionBranch:
        """Return a branch, of which nothing is opened: branches answer side by side.

        Raises:
            SessionError: If the branch does not exist.
        """
        return self._tree.at(name)

    @property
    def _here(self) -> SessionBranch:
        return self._tree.current

    @property
    def is_closed(self) -> bool:
        """Whether the session was stopped."""
        return self._shared.locks.is_closed

    @property
    def round_usage(self) -> Usage:
        """Consumption of the models in the newest round of the current branch."""
        return self._here.round_usage

    @property
    def branch(self) -> str:
        """Name of the current branch."""
        return self._here.name

    @property
    def memory(self) -> Memory:
        """The conversation of the current branch."""
        return self._here.memory

    @property
    def long_memory(self) -> BranchLongMemory:
        """The facts kept for later requests of the current branch and the project."""
        return self._here.long_memory

    @property
    def roles(self) -> Mapping[str, Role]:
        """Roles of the current branch, by alias."""
        return self._here.cast.roles

    @property
    def execution_cwd(self) -> Path:
        """Working directory of the current branch's kernel."""
        return self._here.execution_cwd

    @property
    def usage(self) -> Usage:
        """Consumption of the models in this session so far."""
        return self._llm_api.usage

    @property
    def kernel_state(self) -> str:
        """State of the kernel, in a word or two."""
        return self._here.kernel_state

    def send_message(
        self,
        message: str,
        event_handler: SessionEventHandler | None = None,
        files: Sequence[AddedFile] | None = None,
    ) -> Round:
        """Answer a message.

        An error while roles work makes the round ``failed`` and is emitted as a ``round_error``
        event. A KeyboardInterrupt cancels model call and cell, and is raised again.

        Args:
            message: The message of a user of this machine: files that it names by a path, or by a
                name in the current or in the data folder, are added. `at` gives a branch whose
                messages, of users elsewhere, name files of the data folder alone.
            event_handler: Listens during this round.
            files: Files to put into the working directory first.

        Returns:
            The round, ``finished`` or ``failed``.

        Raises:
            SessionBusy: If another message is being answered.
            SessionClosed: If the session was stopped.
            SessionError: If the message is no text, or an empty one.
            LimitReached: If the session has reached its limit; see `extend_limits`.
            FileNotAdded: If a file cannot be added; nothing was asked then.
        """
        return self._here.send_message(message, event_handler, files, Path.cwd())

    def run_code(self, code: str, event_handler: SessionEventHandler | None = None) -> Round:
        """Run code of the user's own in the session's kernel, as a round; no model is asked.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
        """
        return self._here.run_code(code, event_handler)

    @property
    def kernels(self) -> dict[str, Client]:
        """The kernels that exist, by branch, and by `PAST` that of a past moment."""
        found = {one.name: one.kernel.taken for one in self._tree.used}
        found[PAST] = self.moment_kernel.client
        return {name: one for name, one in found.items() if one and one.state not in _UNUSED}

    def start_kernel(self) -> None:
        """Start the process of the kernel in the background, so that the first cell need not."""
        self._here.kernel.get().start()

    def extend_limits(self) -> None:
        """Let the session consume as much again as the keys under ``limits.`` allow."""
        self._parts.spending.extend()

    def restoring(self) -> Restoring | None:
        """Return how the current branch's variables come back; None once its kernel has them."""
        return self._here.kernel.restoring()

    def restore_notice(self) -> list[str]:
        """Return, once, the variables the current branch lacks, and the remedy."""
        return self._here.kernel.take_notice()

    def wait_until_stored(self) -> None:
        """Wait until the variables of the last round are on disk."""
        self._shared.states.finish()

    def trust_state(self) -> None:
        """Agree to load stored variables that another installation wrote, or at another place.

        Loading runs code in them, in the sandbox if there is one.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If there are none, or the agreement cannot be written.
        """
        with self._here.hold():
            self._tree.trust_state()

    def rebuild(self, on_step: Callable[[int], None] | None = None) -> RebuildResult:
        """Run the cells of lost variables again, on a scratch copy of the working directory.

        Args:
            on_step: Called with the number of cells that have run, after each.

        Returns:
            Each cell's outcome beside the recorded one. Accept it or discard it.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If nothing is lost, or the files cannot be copied.
            KernelError: If the kernel cannot be started.
        """
        with self._here.hold():
            return rebuild(self._tree, self._here.hold, on_step or (lambda _: None))

    def core_memory(self, branch: str) -> dict[str, str]:
        """Return the core memory of a branch, by key.

        Raises:
            SessionError: If the branch does not exist.
        """
        self._stored.require(branch)
        return dict(self._stored.store[branch].core)

    def branches(self) -> list[BranchInfo]:
        """Return the branches, parents before children."""
        return self._stored.branches()

    def fork(self, name: str = "", *, at_round: int | None = None) -> str:
        """Make a branch of the current one: its conversation, its variables, its files.

        The kernel is forked with all its variables, from the state at that round's end. Where
        that cannot be, they are restored from disk when its first cell runs; see `why_restored`.
        Files are copied as they are now, also for a fork in the past.

        Args:
            name: Name of the branch; empty makes one up.
            at_round: Number of the last round it sees, from 1; 0 for none, None for all.

        Returns:
            Its name. The current branch stays the current one; see `checkout`.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If the name is taken or malformed, the round does not exist, or the
                files cannot be copied.
        """
        return self._here.fork(name, at_round=at_round)

    @property
    def why_restored(self) -> str:
        """Reason the current branch starts from stored variables; empty if it was forked."""
        return self._here.kernel.why_restored

    @property
    def bounds(self) -> tuple[ResourceBound, ...]:
        """The bounds on the session's resources, and the mechanism that enforces each."""
        kernel = self._here.kernel.get()
        return kernel.bounds() if isinstance(kernel, Measured) else ()

    @property
    def kernel_memory(self) -> Footprint:
        """The memory the current branch's kernel takes up."""
        kernel = self._here.kernel.get()
        return kernel.footprint() if isinstance(kernel, Forkable) else Footprint()

    @property
    def kept_states(self) -> tuple[int, int]:
        """Number of snapshots kept, and the bytes they take up beyond their kernels."""
        self._shared.states.settle()
        snapshots = self._shared.states.snapshots
        return len(snapshots), snapshots.extra_bytes

    def checkout(self, name: str) -> None:
        """Make another branch current; the previous one keeps its kernel.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If the branch does not exist.
        """
        with self._here.hold():
            self._tree.checkout(name)

    def undo(self) -> str:
        """Go back by one round: onto a new branch that ends before it. Nothing is deleted.

        Returns:
            Name of the new branch, which is the current one now.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If there is no round to go back by.
        """
        if not (rounds := self.memory.conversation.rounds):
            raise SessionError("There is no round to undo.")
        self.checkout(self.fork(at_round=len(rounds) - 1))
        return self.branch

    def diff(self, first: str, second: str) -> BranchDifference:
        """Return the differences of two branches: rounds, memory, variables, files.

        Raises:
            SessionError: If the branch does not exist.
        """
        return self._stored.diff(first, second)

    def merge(self, source: str, policy: str = "theirs") -> MergeReport:
        """Copy a branch's core and archival memory to the current branch.

        Conversations, variables and files stay where they are. See `BranchedMemory.merge`.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If the branch does not exist.
            InvalidUpdate: If it is the current branch, or the policy is unknown.
        """
        return self._here.merge(source, policy)

    def interrupt(self) -> None:
        """Cancel the open rounds, from any thread: model calls, cells and later steps."""
        names = {self.branch, *self._shared.locks.busy}
        for branch in self._tree.used:
            if branch.name in names:
                branch.interrupt()

    def must_stay(self) -> bool:
        """Return whether `release` would lose anything; the next round then says so, once."""
        self._record_foreign_cells()
        lines = [line for branch in self._tree.used for line in branch.kernel.at_stake()]
        if lines:
            self._shared.states.note(f"The kernel ran on unused. At its end: {' '.join(lines)}")
        return bool(lines)

    def release(self) -> None:
        """End all kernels and roles, once the variables are stored; they come back when used.

        A branch that is used again gets its variables as a resumed session does: those that could
        not be stored are named by `restore_notice`.

        Raises:
            SessionBusy: If a branch is at work.
            SessionClosed: If the session was stopped.
        """
        self._record_foreign_cells()
        with self._shared.locks.hold_all():
            self.moment_kernel.end()
            self._tree.release()

    def _record_foreign_cells(self) -> None:
        """Record the cells of other Jupyter clients, so that their variables are stored."""
        for branch in self._tree.used:
            if branch.is_at_work:
                continue
            try:
                branch.record_foreign_cells()
            except TaskWeaverError as error:  # no disk space, or no memory for the kernel
                self._logger.warning(f"cells of other clients on {branch.name}: {error}")

    def update_session_var(self, variables: Mapping[str, str]) -> None:
        """Set variables that plugins read with ``ctx.get_session_var``."""
        self._tree.update_session_var(variables)

    def stop(self) -> None:
        """End the session: roles, kernels and model calls; safe to call again.

        The files are closed when the open rounds, which end now, are written.
        """
        if self.is_closed:
            return
        self._record_foreign_cells()
        self._shared.locks.refuse()
        self._llm_api.close()
        with ExitStack() as ending:
            ending.callback(self._shared.locks.close, self._close_files)
            ending.callback(self._tree.close)
            self.moment_kernel.end()
        self.event_emitter.emit_session(SessionEventType.session_end)

    def _close_files(self) -> None:
        self.events.close()
        self._stored.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
