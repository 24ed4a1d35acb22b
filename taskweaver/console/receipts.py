"""The slash command that writes the receipt of an answer, and where exports go."""

from __future__ import annotations

import os
from pathlib import Path

from taskweaver.console.blocks import Note
from taskweaver.console.chat import Chat
from taskweaver.console.text import display_path, safe
from taskweaver.session.errors import SessionError
from taskweaver.session.receipts.build import Origin, build_receipt
from taskweaver.session.receipts.receipt import write_receipt
from taskweaver.session.session import Session
from taskweaver.utils.text import counted

SUFFIX = ".receipt.json"


def export_target(session: Session, name: str) -> Path:
    """Return where an export of a name goes: into the working directory, unless it is a path.

    Raises:
        SessionError: If a link in the working directory leads elsewhere.
    """
    target = Path(name).expanduser()
    if target.is_absolute():
        return target
    # Where the code finds its files, and may have laid links that lead elsewhere.
    target = Path(os.path.normpath(session.execution_cwd.resolve() / target))
    if target.parent.resolve() != target.parent:
        raise SessionError(f"{name} leads elsewhere by a link; name another folder.")
    return target


def show_receipt(chat: Chat, name: str) -> None:
    """Write the receipt of the newest answer, and name changed, large and missing parts."""
    session = chat.session
    name = name or session.session_id
    target = export_target(session, name if name.endswith(SUFFIX) else f"{name}{SUFFIX}")
    config = session.config
    origin = Origin(session.session_id, session.branch, session.execution_cwd, config.data_dir)
    receipt = build_receipt(session.memory.conversation.rounds, origin)
    write_receipt(target, receipt)
    chat.surface.show(Note(f"written to {display_path(target)}"))
    for item in receipt.inputs:
        if item.change:
            text = f"{item.name} was changed {item.change} after it was added"
            chat.surface.show(Note(safe(text), is_warning=True))
        if item.content is None:
            text = f"{item.name} is too large for the receipt: send it along"
            chat.surface.show(Note(safe(text)))
    unsupported = receipt.answer.unsupported_numbers
    if unsupported:
        numbers = counted(len(unsupported), "number")
        note = f"{numbers} of the answer stand in no outcome: {', '.join(unsupported)}"
        chat.surface.show(Note(safe(note), is_warning=True))
