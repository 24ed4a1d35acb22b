"""TaskWeaver in a few lines of Python: open it, ask, read the answer."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.modules import ModelFunction
from taskweaver.face.answer import TaskAnswer
from taskweaver.face.session import Files, TaskSession
from taskweaver.face.stream import RoundEvents
from taskweaver.session.errors import SessionClosed
from taskweaver.trust.opening import Trust
from taskweaver.utils.system.forks import bind_to_process


class TaskWeaver:
    """A project, opened for questions; use it with `with` or `async with`, or call `close`.

    One that is not closed is closed when it is no longer used, or the program ends.

    Attributes:
        app: The application below, with everything that is not shown here.
    """

    def __init__(
        self,
        project: str | Path | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        model: str | ModelFunction | None = None,
        trust: Trust = None,
    ) -> None:
        """Open a project.

        Args:
            project: Its folder. None takes the nearest project above the current folder; without
                one the current folder, whose tables are found by name and which stays as it is:
                sessions are in the user's state folder.
            config: Configuration keys that go before the environment and the project's file.
            model: Name of the model, as the key `llm.model`, or a function that plays the model:
                messages in, reply out. None leaves it to the configuration; without any, the
                offline analyst answers.
            trust: Consent to the effects of opening the folder, see `TaskWeaverApp`.

        Raises:
            ConfigError: If the configuration cannot be read or a value is of the wrong type.
            ProjectNotTrusted: If a folder that was looked for needs an answer and has none.
        """
        values = dict(config or {})
        if isinstance(model, str):
            values["llm.model"] = model
        function = None if isinstance(model, str) else model
        self.app = TaskWeaverApp(project, values, model=function, trust=trust)
        self.app.cell_tables.is_kept = True
        self._opening = threading.Lock()
        self._first: TaskSession | None = None
        self._finalizer = weakref.finalize(self, _stop, self.app)
        bind_to_process(self)

    @property
    def model(self) -> str:
        """The model that answers, and why, in a line."""
        return self.app.announcement

    @property
    def warnings(self) -> list[str]:
        """Problems of the project, a sentence each."""
        return list(self.app.warnings)

    def session(self, session_id: str | None = None) -> TaskSession:
        """Return a new session, or an earlier one by its id.

        Raises:
            SessionError: If there is none of this id, or another process has it open.
            SessionClosed: If this was closed.
        """
        self._check_open()
        return TaskSession(self.app, self.app.get_session(session_id))

    def ask(self, question: str, files: Files = ()) -> TaskAnswer:
        """Ask a question in the session of this object, and wait; see `TaskSession.ask`."""
        return self._session().ask(question, files)

    async def ask_async(self, question: str, files: Files = ()) -> TaskAnswer:
        """Ask a question while the event loop runs on; see `TaskSession.ask_async`."""
        return await self._session().ask_async(question, files)

    def stream(self, question: str, files: Files = ()) -> RoundEvents:
        """Ask a question, and return the events of its round; see `TaskSession.stream`."""
        return self._session().stream(question, files)

    def _session(self) -> TaskSession:
        self._check_open()
        with self._opening:
            if self._first is None or self._first.core.is_closed:
                self._first = self.session()
            return self._first

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise SessionClosed("This TaskWeaver was closed. Make another one: TaskWeaver().")

    def close(self) -> None:
        """End all sessions, kernels and connections; safe to call again."""
        self._finalizer()

    def __enter__(self) -> TaskWeaver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> TaskWeaver:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)  # kernels take a moment to end

    def __repr__(self) -> str:
        state = self.model if self._finalizer.alive else "closed"
        return f"<TaskWeaver {self.app.app_dir}: {state}>"


def _stop(app: TaskWeaverApp) -> None:
    app.stop()  # looked up now: that of a forked child does nothing
