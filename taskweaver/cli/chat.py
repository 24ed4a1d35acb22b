"""A chat at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

from taskweaver import __version__
from taskweaver.cli.opening import consent_to
from taskweaver.cli.signals import ending_orderly
from taskweaver.console.loop import Listener, Opening, Reader, talk
from taskweaver.console.terminal.blocks import NoteBlock
from taskweaver.console.terminal.surface import Surface, open_surface


def earlier_session(
    resume: str | None, node: str | None, *, is_detached: bool
) -> Callable[..., Any] | None:
    """Return the function that opens an earlier session: on a node, or by id; None for neither."""

    def on_node(app: Any, tell: Callable[[str], None]) -> Any:
        from taskweaver.session.storage.layout import CHAT
        from taskweaver.treesearch.service import session_on_node

        session, branch = session_on_node(app, str(node), is_detached=is_detached)
        if branch == CHAT.root and not is_detached:
            tell("The run is open elsewhere: this chat is a session of its own.")
        return session

    if node is not None:
        return on_node
    id_ = None if resume == "latest" else resume
    return None if resume is None else lambda app, _: app.resume_session(id_)


def converse(
    project: Path | None, files: Sequence[Path] = (), opened: Callable[..., Any] | None = None
) -> None:
    """Chat at a terminal, with files for the first message. The project opens behind the prompt.

    `opened` opens the session to continue; None starts a new one.

    Raises:
        TaskWeaverError: If the project cannot be opened, or is not trusted.
    """
    surface = open_surface()
    surface.show(NoteBlock(f"TaskWeaver {__version__}: ask about your data, or type /help."))
    granted = consent_to(project)  # asked before the prompt, which takes the keyboard
    opening = Opening(lambda: _open(project, granted, files, surface, opened))
    with ending_orderly():
        try:
            talk(_reader(opening), opening, surface)
        finally:
            opening.close()


def _reader(opening: Opening) -> Reader:
    from taskweaver.console.terminal.prompt import PlainReader, PromptReader, can_prompt

    if not can_prompt():
        opening.start()
        return PlainReader()

    def begin() -> None:
        def tell(done: Any) -> None:
            if done.exception() is not None:
                reader.give_up(done.exception())

        opening.start().add_done_callback(tell)

    reader = PromptReader(opening.words, begin)
    return reader


def _open(
    project: Path | None,
    granted: frozenset[str],
    files: Sequence[Path],
    surface: Surface,
    opened: Callable[..., Any] | None,
) -> Listener:
    from taskweaver.app.app import TaskWeaverApp
    from taskweaver.console.chat import Chat
    from taskweaver.console.commands.table import CommandLine
    from taskweaver.console.terminal.prompt import can_prompt
    from taskweaver.page.one_file import conversation_page

    app = TaskWeaverApp(project, trust=granted)
    try:
        for warning in app.warnings:
            surface.show(NoteBlock(warning, is_warning=True))
        surface.show(NoteBlock(app.announcement))
        chat = Chat(app, surface, opened, conversation_page)
        for path in files:
            chat.add_file(path)
        if opened is None and can_prompt():  # reading them must not delay the first answer
            Thread(target=chat.show_files, name="first-screen", daemon=True).start()
    except BaseException:
        app.stop()
        raise
    return CommandLine(chat)
