"""A chat: a session and what the terminal adds to it."""

from __future__ import annotations

from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.blocks import Broken, Note
from taskweaver.console.mentions import mentioned_files
from taskweaver.console.render import RoundView
from taskweaver.console.surface import Surface
from taskweaver.console.text import display_path
from taskweaver.errors import TaskWeaverError
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.session.session import Session


class Chat:
    """Sends messages and shows what comes of them.

    Attributes:
        app: The project.
        session: The conversation; replaced by `reset`.
        surface: Where everything is shown.
        waiting: Files that go with the next message.
    """

    def __init__(self, app: TaskWeaverApp, surface: Surface) -> None:
        self.app = app
        self.session: Session = app.get_session()
        self.surface = surface
        self.waiting: list[Path] = []

    def ask(self, message: str) -> Round | None:
        """Send a message, show the round, and return it.

        Files that wait go along, and so do those the message names.

        Returns:
            The round, or None when the session refused the message; that was shown.

        Raises:
            KeyboardInterrupt: If the user stopped it; the session goes on.
        """
        session = self.session
        named = mentioned_files(message, Path.cwd(), session.execution_cwd)
        paths = list(dict.fromkeys([*self.waiting, *named]))
        if named:
            self.surface.show(Note(f"adding {', '.join(map(display_path, named))}"))
        view = RoundView(self.surface, session.execution_cwd, lambda: session.usage)
        try:
            with self.surface.working(view.status):
                answered = session.send_message(
                    message, view, [{"name": path.name, "path": path} for path in paths]
                )
        except TaskWeaverError as error:
            self.surface.show(Broken(str(error)))
            return None
        self.waiting.clear()
        return answered

    def reset(self) -> None:
        """Start a new session in place of this one.

        Raises:
            TaskWeaverError: If it cannot be started; the old one is stopped all the same.
        """
        self.app.session_manager.stop_session(self.session.session_id)
        self.waiting.clear()
        self.session = self.app.get_session()

    def data_files(self) -> list[str]:
        """Return the names of files a message can name."""
        folders = (self.session.config.data_dir, self.session.execution_cwd)
        return sorted(
            {path.name for folder in folders if folder.is_dir() for path in folder.iterdir()}
        )

    def close(self) -> None:
        """Stop the session and the application."""
        self.app.stop()


def is_answered(round_: Round | None) -> bool:
    """Return whether a round gave the user an answer, not an apology."""
    if round_ is None or round_.state != "finished":
        return False
    stops = round_.post_list[-1].get_attachment(AttachmentType.stop)
    return all(str(stop.content).strip() != "TaskFailure" for stop in stops)
