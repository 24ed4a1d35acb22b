"""A session: one conversation, its roles, its kernel and its working directory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from taskweaver.ces.footprint import Footprint
from taskweaver.errors import TaskWeaverError
from taskweaver.llm.types import Usage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.branched.types import MergeReport
from taskweaver.memory.cells import ran_code
from taskweaver.memory.memory import Memory
from taskweaver.memory.round import Round
from taskweaver.module.events import SessionEventHandler, SessionEventType
from taskweaver.role.role import Role
from taskweaver.session.branch import SessionBranch
from taskweaver.session.compare import BranchDifference
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import RoundInterrupted, SessionBusy, SessionClosed, SessionError
from taskweaver.session.limits import Spending
from taskweaver.session.parts import SessionMetadata, SessionParts
from taskweaver.session.states import KernelStates
from taskweaver.session.store import BranchInfo
from taskweaver.session.workdir import AddedFile, mentioned_files
from taskweaver.utils.text import fenced


class Session:
    """Answers messages one after another; use it as a context manager, or call `stop`.

    A session is a tree of branches. What is said goes to the current one: its conversation, its
    kernel, its working directory.

    Attributes:
        session_id: Its id.
        workspace: Its folder.
        config: Its configuration.
        session_var: Variables plugins read.
        round_usage: What the models consumed in the newest round.
        prompts: The newest prompts and replies.
        is_closed: Whether it was stopped.
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
        self.session_var: dict[str, str] = {}
        self.round_usage = Usage()
        self._parts = parts
        self._llm_api = parts.llm_api
        self.prompts = parts.llm_api.prompts
        self._logger = logger
        self._stored = parts.files
        self._answering = threading.Lock()
        self.is_closed = False
        self._spending = Spending(parts.limits)
        self._states = KernelStates(config.snapshot_limit_bytes)
        self._why_rebuilt: dict[str, str] = {}
        self._open: dict[str, SessionBranch] = {}
        self._current = self._branch(parts.files.current)

    @property
    def branch(self) -> str:
        """Name of the current branch."""
        return self._current.name

    @property
    def memory(self) -> Memory:
        """The conversation of the current branch."""
        return self._current.memory

    @property
    def roles(self) -> Mapping[str, Role]:
        """Who takes part, by alias."""
        return self._current.roles

    @property
    def execution_cwd(self) -> Path:
        """Working directory of the current branch's kernel."""
        return self._current.execution_cwd

    @property
    def usage(self) -> Usage:
        """What the models consumed in this session so far."""
        return self._llm_api.usage

    @property
    def kernel_state(self) -> str:
        """What the kernel is doing, in a word or two."""
        return self._current.client.state

    def send_message(
        self,
        message: str,
        event_handler: SessionEventHandler | None = None,
        files: Sequence[AddedFile] | None = None,
    ) -> Round:
        """Answer a message.

        What goes wrong while roles work makes the round ``failed`` and is told as a ``round_error``
        event. A KeyboardInterrupt gives up model call and cell, and is raised again.

        Args:
            message: What the user says. Files of the data folder it names are added.
            event_handler: Listens during this round.
            files: Files to put into the working directory first.

        Returns:
            The round, ``finished`` or ``failed``.

        Raises:
            SessionBusy: If another message is being answered.
            SessionClosed: If the session was stopped.
            SessionError: If the message is no text, or an empty one.
            LimitReached: If the session has used up what it may; see `extend_limits`.
            FileNotAdded: If a file cannot be added; nothing was asked then.
        """
        _check_text(message)
        with self._one_at_a_time(), self.event_emitter.handle_events_ctx(event_handler):
            self._spending.begin_round(self.usage)
            mentioned = mentioned_files(message, self.config.data_dir)
            notes = self._current.files.bring(files or [], mentioned)
            return self._play("\n".join([*notes, message]), self._current.play)

    def run_code(self, code: str, event_handler: SessionEventHandler | None = None) -> Round:
        """Run code of the user's own in the session's kernel, as a round; no model is asked.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
        """
        _check_text(code)
        with self._one_at_a_time(), self.event_emitter.handle_events_ctx(event_handler):
            return self._play(f"Run this:\n{fenced(code, 'python')}", self._current.run(code))

    def _play(self, query: str, play: Callable[[Round], None]) -> Round:
        before = self.usage
        problems = self._current.rebuild(lambda _: None)
        round_ = self.memory.create_round(query)
        self.event_emitter.start_round(round_.id, query)
        for problem in problems:
            self.event_emitter.warn(problem)
        try:
            self._answer(round_, play)
        finally:
            self._states.keep(round_, self._current.client)
            self.round_usage = self.usage - before
            self.event_emitter.end_round(round_.id)
        return round_

    def extend_limits(self) -> None:
        """Let the session consume as much again as the keys under ``limits.`` allow."""
        self._spending.extend()

    @property
    def cells_to_rebuild(self) -> int:
        """How many cells have to run again until the variables are as they were."""
        return self._current.cells_to_rebuild

    def rebuild(self, on_step: Callable[[int], None] | None = None) -> list[str]:
        """Run the successful cells of a resumed session again, so that its variables are there.

        Nothing happens when that is done already. A cell that fails is passed over.

        Args:
            on_step: Told how many cells have run, after each.

        Returns:
            What could not be rebuilt, a sentence for each cell.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            KernelError: If the kernel cannot be started.
        """
        with self._one_at_a_time():
            return self._current.rebuild(on_step or (lambda _: None))

    def branches(self) -> list[BranchInfo]:
        """Return the branches, parents before children."""
        return self._stored.branches()

    def fork(self, name: str = "", *, at_round: int | None = None) -> str:
        """Make a branch of the current one: its conversation, its variables, its files.

        The kernel is forked with all its variables, from the state at that round's end. Where
        that cannot be, they are rebuilt when the branch is first used; see `why_rebuilt`. Files
        are copied as they are now, also for a fork in the past.

        Args:
            name: Name of the branch; empty makes one up.
            at_round: Number of the last round it sees, from 1; 0 for none, None for all.

        Returns:
            Its name. The current branch stays the current one; see `checkout`.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If the name is taken or malformed, there is no such round, or the files
                cannot be copied.
        """
        with self._one_at_a_time():
            limit_bytes = self.config.fork_limit_bytes
            name = self._stored.fork(self.branch, name, at_round, limit_bytes=limit_bytes)
            self._fork_kernel(name, at_round)
            return name

    def _fork_kernel(self, name: str, at_round: int | None) -> None:
        current, rounds = self._current, self.memory.conversation.rounds
        seen = rounds[:at_round]
        is_now = not any(map(ran_code, rounds[len(seen) :])) and not current.cells_to_rebuild
        reason = self._states.fork(
            seen,
            current.client if is_now else None,
            lambda state: self._parts.fork_kernel(name, state),
        )
        if reason:
            self._why_rebuilt[name] = reason
        self._branch(name)

    @property
    def why_rebuilt(self) -> str:
        """Why the current branch's kernel was not forked; empty when it was."""
        return self._why_rebuilt.get(self.branch, "")

    @property
    def kernel_memory(self) -> Footprint:
        """The memory the current branch's kernel takes up."""
        return self._current.client.footprint

    @property
    def kept_states(self) -> tuple[int, int]:
        """How many states are kept to go back to, and the bytes they take up beyond the kernel."""
        return len(self._states), self._states.extra_bytes(self._current.client)

    def checkout(self, name: str) -> None:
        """Go on with another branch; the one that was current keeps its kernel.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If there is no such branch.
        """
        with self._one_at_a_time():
            self._current = self._branch(name)
            self._stored.set_current(name)

    def undo(self) -> str:
        """Go back by one round: onto a new branch that ends before it. Nothing is deleted.

        Returns:
            Name of the new branch, which is the current one now.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If there is no round to go back by.
        """
        rounds = len(self.memory.conversation.rounds)
        if not rounds:
            raise SessionError("There is no round to undo.")
        name = self.fork(at_round=rounds - 1)
        self.checkout(name)
        return name

    def diff(self, first: str, second: str) -> BranchDifference:
        """Return how two branches differ: rounds, memory, variables, files.

        Raises:
            SessionError: If there is no such branch.
        """
        return self._stored.diff(first, second)

    def merge(self, source: str, policy: str = "theirs") -> MergeReport:
        """Bring what a branch keeps in core and archival memory to the current one.

        Conversations, variables and files stay where they are. See `MemoryManager.merge`.

        Raises:
            SessionBusy, SessionClosed: As `send_message`.
            SessionError: If there is no such branch.
            InvalidUpdate: If it is the current one, or there is no such policy.
        """
        with self._one_at_a_time():
            self._stored.require(source)
            return self._stored.store.merge(source, self.branch, policy)

    def _branch(self, name: str) -> SessionBranch:
        """Return a branch, opened if it is not open yet."""
        self._stored.require(name)
        if name not in self._open:
            parts = self._parts.open_branch(name)
            branch = SessionBranch(name, parts, self.event_emitter, self.config, self._check)
            branch.update_session_var(self.session_var)
            self._open[name] = branch
        return self._open[name]

    def _answer(self, round_: Round, play: Callable[[Round], None]) -> None:
        try:
            play(round_)
        except TaskWeaverError as error:
            gave_up = self._llm_api.is_interrupted and not self.is_closed
            self._fail(round_, "interrupted" if gave_up else str(error))
        except Exception as error:
            self._logger.exception(f"round {round_.id} failed")
            self._fail(round_, f"{type(error).__name__}: {error} (the log has the details)")
        except BaseException:
            self.interrupt()
            self._fail(round_, "interrupted")
            raise
        else:
            self.memory.end_round(round_, "finished")

    def _fail(self, round_: Round, reason: str) -> None:
        self._logger.warning(f"round {round_.id} failed: {reason}")
        self.memory.end_round(round_, "failed")
        self.event_emitter.emit_error(reason)

    def _check(self) -> None:
        if self.is_closed:
            raise SessionClosed("The session was stopped.")
        if self._llm_api.is_interrupted:
            raise RoundInterrupted("interrupted")
        self._spending.check(self.usage)

    def interrupt(self) -> None:
        """Give up the open round, from any thread: its call, its cell, and what would come next."""
        if self._answering.locked():
            self._llm_api.interrupt()
        self._current.interrupt()

    def update_session_var(self, variables: Mapping[str, str]) -> None:
        """Set variables that plugins read with ``ctx.get_session_var``."""
        self.session_var.update(variables)
        for branch in self._open.values():
            branch.update_session_var(variables)

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        if self.is_closed:
            raise SessionClosed("This session was stopped; start another one.")
        if not self._answering.acquire(blocking=False):
            raise SessionBusy("This session is still answering; wait, or interrupt it.")
        self._llm_api.resume()
        try:
            yield
        finally:
            self._llm_api.resume()
            self._release()

    def stop(self) -> None:
        """End the session: roles, kernel and model calls; safe to call again."""
        if self.is_closed:
            return
        self.is_closed = True
        self._llm_api.close()
        try:
            self._states.close()  # before their kernels, which would wait for them
            for branch in self._open.values():
                branch.close()
        finally:
            self._close_files()
        self.event_emitter.emit_session(SessionEventType.session_end)

    def _release(self) -> None:
        self._answering.release()
        if self.is_closed:
            self._close_files()

    def _close_files(self) -> None:
        """Close the files, unless a round is open: then its end, which is still written, does."""
        if self._answering.acquire(blocking=False):
            self._stored.close()
            self._answering.release()

    def __enter__(self) -> Session:
        """Return the session itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop the session."""
        self.stop()


def _check_text(message: object) -> None:
    if not isinstance(message, str) or not message.strip():
        raise SessionError(f"A message is a text that says something, not {message!r}.")
