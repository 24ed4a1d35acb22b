"""The slash command that writes the receipt of an answer, and where exports go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from taskweaver.console.chat import Chat
from taskweaver.console.terminal.text import display_path
from taskweaver.session.errors import SessionError
from taskweaver.session.receipt import write_receipt
from taskweaver.session.receipt_content import ConversationOrigin, build_receipt
from taskweaver.session.session import Session
from taskweaver.utils.file_system.safe_fs import Folder, copy_in
from taskweaver.utils.text import counted

SUFFIX = ".receipt.json"


@contextmanager
def export_target(session: Session, name: str) -> Iterator[tuple[Path, Path]]:
    """Give an export a file to write: in the working directory, unless its name is absolute.

    A file for the working directory is written elsewhere and copied there at the end: code could
    swap folders for links while it is written.

    Yields:
        The file to write, and the path under which it will be.

    Raises:
        SessionError: If the name leaves the working directory, also by a link, or the file cannot
            be copied there.
    """
    target = Path(name).expanduser()
    if target.is_absolute():
        yield target, target
        return
    inner = PurePosixPath(os.path.normpath(target))
    with TemporaryDirectory(prefix="tw-export-") as folder:
        draft = Path(folder, inner.name)
        yield draft, session.execution_cwd / inner
        try:
            with Folder.at(session.execution_cwd) as cwd:
                cwd.make_folders(inner.parent)
                copy_in(draft, cwd, inner)
        except OSError as error:
            raise SessionError(
                f"{name} cannot be written in the working directory: {error.strerror}."
                " Name another folder."
            ) from error


def show_receipt(chat: Chat, name: str) -> None:
    """Write the receipt of the newest answer, and name changed, large and missing parts."""
    session = chat.session
    name = name or session.session_id
    config = session.config
    origin = ConversationOrigin(
        session.session_id, session.branch, session.execution_cwd, config.data_dir
    )
    receipt = build_receipt(session.memory.conversation.rounds, origin)
    full_name = name if name.endswith(SUFFIX) else f"{name}{SUFFIX}"
    with export_target(session, full_name) as (draft, target):
        write_receipt(draft, receipt)
    chat.note(f"written to {display_path(target)}")
    for item in receipt.inputs:
        if item.change:
            text = f"{item.name} was changed {item.change} after it was added"
            chat.note(text, is_warning=True)
        if item.content is None:
            chat.note(f"{item.name} is too large for the receipt: send it along")
    unsupported = receipt.answer.unsupported_numbers
    if unsupported:
        numbers = counted(len(unsupported), "number")
        note = f"{numbers} of the answer stand in no outcome: {', '.join(unsupported)}"
        chat.note(note, is_warning=True)
