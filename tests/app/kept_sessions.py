"""Sessions that go on through the tests of a file: applications and kernels start once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fake_endpoint import Call, FakeEndpoint, serving
from support import Script, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.session.session import Session

_UNSUMMARISED = {
    "planner.compaction_threshold": 10_000,
    "code_generator.compaction_threshold": 10_000,
}
"""Settings with which no round of a test is a summary's."""


class KeptSessions:
    """Sessions, one for each configuration, whose model each test plays anew.

    The rounds of a test follow those of other tests, in any order, and its cells have the
    variables of theirs. It asks about its own rounds alone, and teaches the application nothing
    about the model.

    Attributes:
        folder: Folder of the projects.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        """Prepare it; nothing runs yet.

        Args:
            folder: Folder for the projects.
            stack: What ends the sessions.
        """
        self.folder = folder
        self._stack = stack
        self._sessions: dict[str, Session] = {}
        self._model: Callable[[Sequence[ChatMessage]], str] = Script([])
        self._endpoint: FakeEndpoint | None = None
        self._answer: Callable[[Call], None] = Call.hang_up
        self._calls: list[Call] = []

    def scripted(self, model: Callable[[Sequence[ChatMessage]], str], **config: Any) -> Session:
        """Return the session of a configuration, whose model is a function from now on."""
        self._model = model
        return self._session(lambda messages: self._model(messages), config)

    def answered(self, answer: Callable[[Call], None], **config: Any) -> tuple[Session, list[Call]]:
        """Return the session of a configuration, and a list of the calls from now on.

        A function answers them; the first has number 0.
        """
        if self._endpoint is None:
            self._endpoint = self._stack.enter_context(serving(self._play))
        self._answer, self._calls = answer, []
        keys = {
            "llm.api_type": "openai", "llm.api_base": self._endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "llm.max_retries": 0,
        }  # fmt: skip
        return self._session(None, keys | config), self._calls

    def _play(self, call: Call) -> None:
        call.number = len(self._calls)
        self._calls.append(call)
        self._answer(call)

    def _session(self, model: Any, config: dict[str, Any]) -> Session:
        key = json.dumps(config, sort_keys=True)
        if key not in self._sessions:
            project = make_project(self.folder / f"project_{len(self._sessions)}", has_table=False)
            app = TaskWeaverApp(project, config=_UNSUMMARISED | config, model=model)
            self._sessions[key] = self._stack.enter_context(app).get_session()
        return self._sessions[key]
