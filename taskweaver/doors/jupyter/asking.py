"""Questions in a notebook: `%%ask` cells and `%ask` lines, answered from the variables."""

from __future__ import annotations

import atexit
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError

from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.jupyter.notebook_client import NotebookManager
from taskweaver.errors import TaskWeaverError
from taskweaver.face.answer import TaskAnswer
from taskweaver.face.session import TaskSession
from taskweaver.module.confirmation import Confirmation, ConfirmationRequest

_CONFIG = {
    "execution.sandbox": "none",
    "execution.server": "",
    "session.snapshot_memory_mb": 0,
    "session.state_limit_mb": 0,
}
"""The kernel is the notebook's, with its rights; its variables are not stored beside it."""

_ASKED = re.compile(r"^(?P<target>(?:\w+ *= *)?)%ask +(?P<question>.*\S)")
_OFFLINE = "builtin/offline"
_MOST_BYTES = 200 << 20
"""Size of the largest data frame that goes to the offline analyst, as a file."""


class NotebookAsker:
    """Answers the questions of a notebook, in one session. Needs `close`."""

    def __init__(self, shell: Any) -> None:
        """Open the nearest project above the notebook's folder, or the folder itself.

        Raises:
            TaskWeaverError: If it cannot be opened, or needs consent.
        """
        self._shell = shell
        self._app = TaskWeaverApp(None, dict(_CONFIG), kernels=NotebookManager(shell))
        try:
            self._app.cell_tables.is_kept = True
            self._session = TaskSession(self._app, self._app.get_session())
            confirmations = self._session.core.event_emitter.confirmations
            confirmations.handler = AskInNotebook()
        except BaseException:
            self._app.stop()
            raise

    def ask(self, line: str, cell: str | None = None) -> TaskAnswer:
        """Answer a question, as a magic does.

        Raises:
            UsageError: If there is no question, or no answer; says why.
        """
        question = "\n".join(filter(None, [line.strip(), (cell or "").strip()]))
        if not question:
            raise UsageError("What is the question? For example: %ask what is the mean of Price?")
        try:
            with self._frames_as_files(question) as files:
                return self._session.ask(question.replace("@", ""), files)
        except TaskWeaverError as error:
            raise UsageError(str(error)) from error

    @contextmanager
    def _frames_as_files(self, question: str) -> Iterator[list[Path]]:
        """Give the offline analyst, which reads files, the data frames that a question names.

        If it names none and there is one only, that is meant. Names bound to them stay bound.
        """
        if _OFFLINE not in self._app.announcement:
            yield []
            return
        frames = _frames(self._shell.user_ns)
        words = set(re.findall(r"\w+", question))
        named = {name: frame for name, frame in frames.items() if name in words}
        meant = named or (frames if len(frames) == 1 else {})
        with tempfile.TemporaryDirectory() as folder:
            files = [_written(frame, Path(folder) / f"{name}.csv") for name, frame in meant.items()]
            try:
                yield files
            finally:
                self._shell.user_ns.update(meant)

    def close(self) -> None:
        """End the session. The notebook's variables stay."""
        self._app.stop()


def _frames(namespace: dict[str, Any]) -> dict[str, Any]:
    """Return the data frames of a notebook by name, except for large frames."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None:
        return {}
    frames = {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and isinstance(value, pandas.DataFrame)
    }
    return {name: one for name, one in frames.items() if one.memory_usage().sum() <= _MOST_BYTES}


def _written(frame: Any, path: Path) -> Path:
    is_numbered = type(frame.index).__name__ == "RangeIndex"
    frame.to_csv(path, index=not is_numbered)
    return path


class AskInNotebook:
    """Asks the person at the notebook before code runs, if the project wants that."""

    def request_confirmation(
        self,
        request: ConfirmationRequest,
        timeout_s: float,  # noqa: ARG002 - a person's time
    ) -> Confirmation | None:
        """Show the code, and read the answer from the notebook's input field."""
        sys.stdout.write(f"{request.diff() or request.content}\n")
        answer = input("Run this in the notebook? [y]es, [n]o, [a]lways: ").strip().lower()
        return {"y": Confirmation.yes, "yes": Confirmation.yes, "a": Confirmation.always}.get(
            answer, Confirmation.no
        )


def _plain_questions(lines: list[str]) -> list[str]:
    """Return a cell's lines with `%ask` as a call: a question mark at the end asks for help."""
    magic = r"get_ipython().run_line_magic('ask', "
    return [
        _ASKED.sub(lambda match: f"{match['target']}{magic}{match['question']!r})", line)
        for line in lines
    ]


def load_ipython_extension(shell: Any) -> None:
    """Add the magics `%ask` and `%%ask`: ``%load_ext taskweaver``."""
    asker = NotebookAsker(shell)
    shell.input_transformers_cleanup.append(_plain_questions)
    shell.register_magic_function(asker.ask, "line_cell", "ask")
    shell.taskweaver_asker = asker
    atexit.register(asker.close)


def unload_ipython_extension(shell: Any) -> None:
    """End the session of the notebook."""
    asker = shell.__dict__.pop("taskweaver_asker", None)
    if asker is not None:
        atexit.unregister(asker.close)
        shell.input_transformers_cleanup.remove(_plain_questions)
        asker.close()
