"""A session as the library shows it: questions to one branch of a conversation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.face.answer import TaskAnswer, build_answer
from taskweaver.face.errors import RoundFailed
from taskweaver.face.stream import RoundEvents
from taskweaver.memory.branched.types import MergeReport
from taskweaver.module.event_emitter import RoundEventType, SessionEventHandler, TaskWeaverEvent
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.errors import FileNotAdded, SessionBusy
from taskweaver.session.session import Session
from taskweaver.session.storage.compare import BranchDifference
from taskweaver.session.storage.workdir import AddedFile, chosen_file
from taskweaver.utils.system.forks import bind_to_process

Files = str | Path | Sequence[str | Path]
"""Paths of files that go with a question; relative ones start at the current folder."""


@dataclass(slots=True)
class _Notes:
    """Listener that collects the warnings and the error of a round, and passes events on."""

    further: SessionEventHandler | None = None
    warnings: list[str] = field(default_factory=list)
    error: str = ""

    def handle(self, event: TaskWeaverEvent) -> None:
        """Handle an event."""
        if event.t is RoundEventType.round_warning:
            self.warnings.append(event.msg)
        elif event.t is RoundEventType.round_error:
            self.error = event.msg
        if self.further is not None:
            self.further.handle(event)


class _Turns:
    """Turns of the branches of a session: one of them works at a time."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._is_ending = False

    def end(self) -> None:
        """Interrupt the turn that is open; the next one waits for its end."""
        self._is_ending = True
        self._interrupt()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Take a turn for a block.

        Raises:
            SessionBusy: If another one is open that was not interrupted.
        """
        if not self._lock.acquire(blocking=self._is_ending):
            raise SessionBusy("This session is still answering; wait, or interrupt it.")
        self._is_ending = False
        try:
            yield
        finally:
            self._lock.release()


class TaskSession:
    """A conversation with its variables and files; use it as a context manager, or call `close`.

    Attributes:
        core: The session below, with everything that is not shown here.
        branch: Name of the branch that questions go to.
        answer: The newest answer that was asked for here; None before the first.
    """

    def __init__(
        self,
        app: TaskWeaverApp,
        core: Session,
        branch: str = "",
        turns: _Turns | None = None,
    ) -> None:
        """Take a session.

        Args:
            app: The application it belongs to.
            core: The session.
            branch: Branch that questions go to; empty for the current one.
            turns: Turns of all branches of the session; None for a new session.
        """
        self._app = app
        self._turns = turns or _Turns(core.interrupt)
        self.core = core
        self.branch = branch or core.branch
        self.answer: TaskAnswer | None = None
        bind_to_process(self)

    @property
    def id(self) -> str:
        """Its id, by which it can be opened again."""
        return self.core.session_id

    @property
    def folder(self) -> Path:
        """Working folder of its code, where files are."""
        if self.core.branch == self.branch:
            return self.core.execution_cwd
        with self._turn() as core:
            return core.execution_cwd

    def ask(self, question: str, files: Files = ()) -> TaskAnswer:
        """Ask a question, and wait for its answer.

        Args:
            question: The question of a user of this machine. The files that it names, by a path
                or by a name in the current or the data folder, go with it.
            files: Further files that go with it; each is copied into the working folder.

        Raises:
            RoundFailed: If it is not answered; says why.
            FileNotAdded: If a file is missing or cannot be read; nothing was asked then.
            SessionBusy: If another question is being answered.
            SessionClosed: If the session was closed.
            SessionError: If the question is empty, or the session has reached a limit.
        """
        return self._ask(question, files, None)

    async def ask_async(self, question: str, files: Files = ()) -> TaskAnswer:
        """Ask a question while the event loop runs on; raises as `ask`.

        A task that is cancelled interrupts the round.
        """
        answers: list[TaskAnswer] = []
        play = partial(self._ask, question, files)
        async for _ in RoundEvents(lambda handler: answers.append(play(handler)), self._turns.end):
            pass
        return answers[0]

    def stream(self, question: str, files: Files = ()) -> RoundEvents:
        """Ask a question, and return the events of its round, for ``async for``.

        `answer` is there after the last one. A reader that leaves the loop early, or whose task is
        cancelled, interrupts the round. The iterator raises as `ask`, a failed round after its
        last event.
        """
        return RoundEvents(lambda handler: self._ask(question, files, handler), self._turns.end)

    def _ask(self, question: str, files: Files, handler: SessionEventHandler | None) -> TaskAnswer:
        added = added_files(files)
        notes = _Notes(handler)
        with self._turn() as core:
            round_ = core.send_message(question, notes, added)
            folder, usage = core.execution_cwd, core.round_usage
        tables = self._app.cell_tables.take({post.id for post in round_.post_list})
        self.answer = build_answer(round_, folder, usage, notes.warnings, tables)
        if round_.state == "failed":
            raise RoundFailed(notes.error or "The question was not answered.")
        return self.answer

    def interrupt(self) -> None:
        """End the round that is being answered, from any thread."""
        self._turns.end()

    def fork(self, name: str = "", *, at_round: int | None = None) -> TaskSession:
        """Return a session on a new branch: the conversation, variables and files of this one.

        Both sides continue independently; one of them answers at a time.

        Args:
            name: Name of the branch; empty makes one up.
            at_round: Number of the last round it sees, from 1; None for all.

        Raises:
            SessionBusy, SessionClosed: As `ask`.
            SessionError: If the name is taken or malformed, or the round does not exist.
        """
        with self._turn() as core:
            made = core.fork(name, at_round=at_round)
        return TaskSession(self._app, self.core, made, self._turns)

    def compare(self, other: TaskSession | str) -> BranchDifference:
        """Return the differences of this branch and another: rounds, memory, variables, files.

        Raises:
            SessionError: If the branch does not exist.
        """
        return self.core.diff(self.branch, _name(other))

    def merge(self, other: TaskSession | str) -> MergeReport:
        """Copy another branch's core and archival memory to this one.

        Conversations, variables and files stay where they are.

        Raises:
            SessionBusy, SessionClosed: As `ask`.
            SessionError: If the branch does not exist.
        """
        with self._turn() as core:
            return core.merge(_name(other))

    @property
    def memory(self) -> BranchLongMemory:
        """The facts of all sessions: `all`, `find`, `add`, `keep`, `replace` and `remove`."""
        return self.core.at(self.branch).long_memory

    def undo(self) -> None:
        """Go back by one round, onto a new branch that ends before it; nothing is deleted.

        Raises:
            SessionBusy, SessionClosed: As `ask`.
            SessionError: If there is no round to undo.
        """
        with self._turn() as core:
            self.branch = core.undo()

    @contextmanager
    def _turn(self) -> Iterator[Session]:
        """Make this branch the current one for a block; no other branch can be, meanwhile."""
        with self._turns.take():
            if self.core.branch != self.branch:
                self.core.checkout(self.branch)
            yield self.core

    def close(self) -> None:
        """End the session with all its branches; it can be opened again by its id."""
        self.core.stop()

    def __enter__(self) -> TaskSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<TaskSession {self.id} on branch {self.branch}>"


def added_files(files: Files) -> list[AddedFile]:
    """Return files in the form in which a session takes them.

    Raises:
        FileNotAdded: If one does not exist, or cannot be used.
    """
    paths = [files] if isinstance(files, str | os.PathLike) else list(files)
    return [_added(path) for path in paths]


def _added(given: object) -> AddedFile:
    if not isinstance(given, str | os.PathLike):
        remedy = "Save it, as with `to_csv`, and give the path."
        raise FileNotAdded(f"A {type(given).__name__} is not the path of a file. {remedy}")
    named = chosen_file(given)
    return {"name": named.source.name, "path": named.path}


def _name(other: TaskSession | str) -> str:
    return other if isinstance(other, str) else other.branch
