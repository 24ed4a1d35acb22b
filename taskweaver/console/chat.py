"""A chat: a session at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.first_questions import FileOutline, first_questions
from taskweaver.console.render import RoundView
from taskweaver.console.terminal.blocks import AnswerBlock, FactsBlock, FailureBlock, NoteBlock
from taskweaver.console.terminal.confirmation import TerminalConfirmation
from taskweaver.console.terminal.surface import Surface
from taskweaver.console.terminal.text import display_path, mebibytes, safe
from taskweaver.errors import TaskWeaverError
from taskweaver.memory.round import Round
from taskweaver.memory.suggestions import Suggestion, chosen
from taskweaver.session.answers.check import unsupported_note
from taskweaver.session.session import Session
from taskweaver.session.storage.workdir import AddedFile, chosen_file, files_in, stamp_of
from taskweaver.utils.data_files import is_data_file
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.text import counted

PageMaker = Callable[[Sequence[Round], Folder, str, str], str]
"""Makes a page of rounds: their working directory, the title and the branch follow."""

OpenSession = Callable[[TaskWeaverApp, Callable[[str], None]], Session]
"""Opens an earlier session, and may tell the user something about that."""
_MOST_SHOWN = 10
"""Rounds of an earlier session that are shown again."""
_MOST_OUTLINED, _MOST_QUESTIONS, _MOST_COLUMNS = 5, 3, 6


class Chat:
    """A conversation at a terminal: sends messages and shows the rounds.

    Attributes:
        session: The conversation; replaced by `reset`.
        waiting: Files that go with the next message.
        has_asked: Whether a message was sent.
        first_questions: Suggestions before the first message, taken by their numbers.
        page_maker: Makes the page of ``/export page``; None where there are no pages.
    """

    def __init__(
        self,
        app: TaskWeaverApp,
        surface: Surface,
        opened: OpenSession | None = None,
        page_maker: PageMaker | None = None,
    ) -> None:
        """Continue the session that `opened` opens, or start one.

        Raises:
            TaskWeaverError: If the session cannot be started.
        """
        self.app = app
        self.surface = surface
        self.page_maker = page_maker
        self.waiting: list[AddedFile] = []
        self.has_asked = False
        self.first_questions: tuple[Suggestion, ...] = ()
        self.session = opened(app, self.note) if opened else self._new_session()
        if opened:
            self._prepare(self.session)
            self._show_earlier()
            self.show_notice()

    def note(self, text: str, *, is_warning: bool = False) -> None:
        """Show a remark, made safe for a terminal."""
        self.surface.show(NoteBlock(safe(text), is_warning))

    def refuse(self, text: str) -> None:
        """Show why a command cannot be carried out, made safe for a terminal."""
        self.surface.show(FailureBlock(safe(text)))

    def list_facts(self, rows: Iterable[tuple[str, str]], absent: str = "") -> None:
        """Show names and their values in two columns, made safe; a remark if there are none."""
        found = tuple((safe(name), safe(text)) for name, text in rows)
        self.surface.show(FactsBlock(found) if found or not absent else NoteBlock(absent))

    def _new_session(self) -> Session:
        session = self.app.get_session()
        self._prepare(session)
        return session

    def _prepare(self, session: Session) -> None:
        session.start_kernel()
        session.event_emitter.confirmation_handler = TerminalConfirmation(self.surface)

    def _show_earlier(self) -> None:
        """Show the earlier messages, without the steps between."""
        rounds = self.session.memory.conversation.rounds
        self.note(f"session {self.session.session_id}, {counted(len(rounds), 'round')}")
        if len(rounds) > _MOST_SHOWN:
            self.note(f"... the last {_MOST_SHOWN} of them:")
        for round_ in rounds[-_MOST_SHOWN:]:
            self.note(f"> {round_.question}")
            if round_.state == "finished" and round_.post_list:
                self.surface.show(AnswerBlock(safe(round_.post_list[-1].message)))
                unsupported = round_.answer.unsupported_numbers
                if unsupported:
                    self.note(unsupported_note(unsupported), is_warning=True)
            else:
                self.note("this round was not finished", is_warning=True)

    def show_files(self) -> None:
        """Show the user's tables with questions about them, unless a message came first."""
        paths = sorted(self.session.config.data_files())
        tables = [path for path in paths if is_data_file(path.name)]
        outlines = first_questions(tables[:_MOST_OUTLINED])
        shown = [(one.path.name, _size(one)) for one in outlines]
        if len(tables) > len(outlines):
            shown.append((f"and {len(tables) - len(outlines)} more", ""))
        each = [  # the first of the first file, the second of the second: of different kinds
            ((place - file) % _MOST_QUESTIONS, file, question)
            for file, outline in enumerate(outlines)
            for place, question in enumerate(outline.questions)
        ]
        asked = tuple(one for *_, one in sorted(each, key=lambda one: one[:2])[:_MOST_QUESTIONS])
        if self.has_asked or not shown:
            return
        self.first_questions = asked
        numbered = [(str(place), one.text) for place, one in enumerate(asked, start=1)]
        self.list_facts([*shown, *numbered])

    def show_notice(self) -> None:
        """Show which variables of the current branch are not restored, once."""
        for line in self.session.restore_notice():
            self.note(line, is_warning=True)
        if self.session.why_restored:
            self.note(f"variables from disk: {self.session.why_restored}")

    def ask(self, message: str) -> Round | None:
        """Send a message, show the round, and return it.

        Files that wait go along, and so do those the message names.

        Returns:
            The round, or None when the session refused the message; that was shown.

        Raises:
            KeyboardInterrupt: If the user stopped it; the session continues.
        """
        session = self.session
        self.has_asked = True
        rounds = session.memory.conversation.rounds
        offers = rounds[-1].answer.suggestions.questions if rounds else self.first_questions
        if question := chosen(message, offers):
            self.note(question)
            message = question
        self._note_files(message)
        folder_of = lambda branch: session.at(branch).execution_cwd  # noqa: E731
        view = RoundView(self.surface, folder_of, lambda: session.usage)
        try:
            with self.surface.working(view.status):
                answered = session.send_message(message, view, list(self.waiting))
        except TaskWeaverError as error:
            self.refuse(str(error))
            return None
        self.waiting.clear()
        return answered

    def _note_files(self, message: str) -> None:
        """Show which files of the user a message adds, and which it cannot."""
        here, cwd = Path.cwd(), self.session.execution_cwd
        there = {path.name: stamp_of(path.stat()) for path in files_in(cwd)}
        added = []
        for named in self.session.config.finder(here).in_text(message):
            if named.problem:
                self.note(f"not added: {named.spelled} {named.problem}", is_warning=True)
            elif (
                named.source.parent == here and named.source.name not in there
                if named.is_bare
                else stamp_of(named.path.stat()) not in there.values()
            ):
                added.append(named.path)
        if added:
            self.note(f"adding {', '.join(map(display_path, added))}")

    def reset(self) -> None:
        """Start a new session in place of this one.

        Raises:
            TaskWeaverError: If it cannot be started; the old one is stopped all the same.
        """
        self.app.session_manager.stop_session(self.session.session_id)
        self.waiting.clear()
        self.session = self._new_session()

    def data_files(self) -> list[str]:
        """Return the names of files a message can name."""
        names = {path.name for path in self.session.config.data_files()}
        return sorted(names | {path.name for path in files_in(self.session.execution_cwd)})

    def add_file(self, path: str | Path) -> Path | None:
        """Let a file go with the next message; return its path, or None if it waits already.

        Raises:
            FileNotAdded: If there is none, or it cannot be used.
        """
        named = chosen_file(path, self.session.config.data_root)
        file: AddedFile = {"name": named.source.name, "path": named.path}
        if file in self.waiting:
            return None
        self.waiting.append(file)
        return named.path

    def close(self) -> None:
        """Stop the session and the application; variables are stored first."""
        try:
            with self.surface.working(lambda: "storing variables, Ctrl-C breaks off"):
                self.app.stop()
        except KeyboardInterrupt:
            note = "The variables of the last round may not be stored; --resume says so."
            self.note(note, is_warning=True)
            raise


def _size(outline: FileOutline) -> str:
    """Return rows and columns of a file, or its size where it was not read."""
    if not outline.tables:
        return mebibytes(outline.bytes) if outline.bytes >= 1 << 20 else ""
    table = outline.tables[0]
    about = "about " if outline.is_estimate else ""
    names = [column.name for column in table.columns[:_MOST_COLUMNS]]
    more = ["..."] if len(table.columns) > len(names) else []
    return f"{about}{counted(table.rows, 'row')}: {', '.join([*names, *more])}"


def is_answered(round_: Round | None) -> bool:
    """Return whether a round gave the user an answer, not an apology."""
    return round_ is not None and round_.is_answered
