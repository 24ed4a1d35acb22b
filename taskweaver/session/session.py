"""A session: one conversation, its roles, its kernel and its working directory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from taskweaver.ces.common import Client
from taskweaver.errors import TaskWeaverError
from taskweaver.llm.api import LLMApi
from taskweaver.llm.types import Usage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.cells import RecordedCell, successful_cells
from taskweaver.memory.memory import Memory
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.module.events import SessionEventHandler, SessionEventType
from taskweaver.role.role import Role
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import (
    RoundInterrupted,
    SessionBusy,
    SessionClosed,
    SessionError,
)
from taskweaver.session.store import SessionFiles
from taskweaver.session.turn import Turn
from taskweaver.session.workdir import AddedFile, WorkingFiles, mentioned_files


@dataclass(frozen=True, slots=True)
class SessionMetadata:
    """Where a session lives.

    Attributes:
        session_id: Its id.
        workspace: Its folder.
        execution_cwd: Working directory of its kernel, inside `workspace`.
    """

    session_id: str
    workspace: Path
    execution_cwd: Path


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What a session owns; it closes all of it.

    Attributes:
        memory: The conversation.
        emitter: Where events go.
        llm_api: The session's way to the models.
        client: The session's kernel.
        roles: Who takes part, by alias; the first one leads.
        files: Its folder and its memory on disk.
    """

    memory: Memory
    emitter: SessionEventEmitter
    llm_api: LLMApi
    client: Client
    roles: Mapping[str, Role]
    files: SessionFiles


@runtime_checkable
class _TakesVariables(Protocol):
    def update_session_var(self, session_var: Mapping[str, str]) -> None: ...


@runtime_checkable
class _RunsCode(Protocol):
    def rebuild(
        self, cells: Sequence[RecordedCell], on_step: Callable[[int], None]
    ) -> list[str]: ...


class Session:
    """Answers messages one after another; use it as a context manager, or call `stop`.

    Attributes:
        session_id: Its id.
        workspace: Its folder.
        execution_cwd: Working directory of its kernel.
        memory: The conversation.
        config: Its configuration.
        roles: Who takes part, by alias.
        session_var: Variables plugins read.
        round_usage: What the models consumed in the newest round.
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
        self.execution_cwd = metadata.execution_cwd
        self.config = config
        self.memory = parts.memory
        self.event_emitter = parts.emitter
        self.roles = parts.roles
        self.session_var: dict[str, str] = {}
        self.round_usage = Usage()
        self._llm_api = parts.llm_api
        self._client = parts.client
        self._logger = logger
        self._files = WorkingFiles(metadata.execution_cwd)
        self._stored = parts.files
        self._to_rebuild = successful_cells(parts.memory.conversation.rounds)
        self._answering = threading.Lock()
        self._is_interrupted = False
        self.is_closed = False
        for role in parts.roles.values():
            role.meet(parts.roles)
        self._turn = Turn(
            parts.memory,
            parts.roles,
            next(iter(parts.roles)),
            parts.emitter,
            config.max_internal_chat_round_num,
            config.stuck_after,
            self._check,
        )

    @property
    def usage(self) -> Usage:
        """What the models consumed in this session so far."""
        return self._llm_api.usage

    @property
    def kernel_state(self) -> str:
        """What the kernel is doing, in a word or two."""
        return self._client.state

    def send_message(
        self,
        message: str,
        event_handler: SessionEventHandler | None = None,
        files: Sequence[AddedFile] | None = None,
    ) -> Round:
        """Answer a message.

        Whatever goes wrong while roles work makes the round ``failed`` and is told as a
        ``round_error`` event; it is not raised. A KeyboardInterrupt gives up the model call and
        the running cell, marks the round failed, and is raised again.

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
            FileNotAdded: If a file cannot be added; nothing was asked then.
        """
        _check_text(message)
        with self._one_at_a_time(), self.event_emitter.handle_events_ctx(event_handler):
            mentioned = mentioned_files(message, self.config.data_dir)
            notes = self._files.bring(files or [], mentioned)
            query = "\n".join([*notes, message])
            before = self.usage
            self._is_interrupted = False
            problems = self._rebuild(lambda _: None)
            round_ = self.memory.create_round(query)
            self.event_emitter.start_round(round_.id, query)
            for problem in problems:
                self.event_emitter.warn(problem)
            try:
                self._answer(round_)
            finally:
                self.round_usage = self.usage - before
                self.event_emitter.end_round(round_.id)
            return round_

    @property
    def cells_to_rebuild(self) -> int:
        """How many cells have to run again until the variables are as they were."""
        return len(self._to_rebuild)

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
            return self._rebuild(on_step or (lambda _: None))

    def _rebuild(self, on_step: Callable[[int], None]) -> list[str]:
        cells, self._to_rebuild = self._to_rebuild, []
        if not cells:
            return []
        runners = (role for role in self.roles.values() if isinstance(role, _RunsCode))
        return [problem for role in runners for problem in role.rebuild(cells, on_step)]

    def _answer(self, round_: Round) -> None:
        try:
            self._turn.play(round_)
        except TaskWeaverError as error:
            self._fail(round_, str(error))
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
        if self._is_interrupted:
            raise RoundInterrupted("interrupted")

    def interrupt(self) -> None:
        """Give up the open round: its model call, its cell, and what would come next.

        It may be called from any thread.
        """
        self._is_interrupted = True
        self._llm_api.cancel()
        self._client.interrupt()

    def update_session_var(self, variables: Mapping[str, str]) -> None:
        """Set variables that plugins read with ``ctx.get_session_var``."""
        self.session_var.update(variables)
        for role in self.roles.values():
            if isinstance(role, _TakesVariables):
                role.update_session_var(variables)

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        if self.is_closed:
            raise SessionClosed("This session was stopped; start another one.")
        if not self._answering.acquire(blocking=False):
            raise SessionBusy("This session is still answering; wait, or interrupt it.")
        try:
            yield
        finally:
            self._release()

    def stop(self) -> None:
        """End the session: roles, kernel and model calls; safe to call again."""
        if self.is_closed:
            return
        self.is_closed = True
        self._llm_api.close()
        try:
            for role in self.roles.values():
                role.close()
        finally:
            self._client.stop()
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
