"""Questions from a script: asked one after another, answered on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from taskweaver.cli.conversations.messages import COMMAND_LINE
from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.printing import print_json, safe
from taskweaver.cli.signals import ending_orderly
from taskweaver.console.chat import Chat, is_answered
from taskweaver.console.commands.table import CommandLine
from taskweaver.console.terminal.blocks import NoteBlock
from taskweaver.console.terminal.surface import PlainSurface, open_surface
from taskweaver.memory.round import Round
from taskweaver.page.one_file import conversation_page


def run_script(
    project: Path | None,
    messages: Sequence[str],
    files: Sequence[Path] = (),
    *,
    is_echoed: bool = False,
    as_json: bool = False,
    resume: str | None = None,
) -> int:
    """Send messages, carry out commands, and return the exit status.

    The files go with the first message; `resume` is that of `converse`. With `as_json` rounds go to
    standard output as lines of JSON, and all else to standard error.

    Raises:
        TaskWeaverError: If the project cannot be opened.
        KeyboardInterrupt: If the user stopped it.
    """
    surface = open_surface(sys.stderr if as_json else None)
    notices = PlainSurface(sys.stderr)
    with ending_orderly(), open_app(project) as app:
        for notice in (*app.warnings, app.announcement):
            notices.show(NoteBlock(notice))
        chat = Chat(app, surface, resume, conversation_page)
        for path in files:
            chat.add_file(path)
        is_good = True
        for number, message in enumerate(messages):
            if is_echoed:
                surface.show(_echo(message, is_first=number == 0))
            if COMMAND_LINE.fullmatch(message):
                if not CommandLine(chat).handle(message):
                    break
                continue
            try:
                answered = chat.ask(message)
            except (KeyboardInterrupt, SystemExit):
                rounds = chat.session.memory.conversation.rounds
                if as_json and rounds and rounds[-1].question == message:
                    facts = _facts(chat, rounds[-1]) | {"state": "interrupted"}
                    print_json(facts, indent=None)
                raise
            is_good = is_good and is_answered(answered)
            if as_json and answered is not None:
                print_json(_facts(chat, answered), indent=None)
    return 0 if is_good else 1


def _echo(message: str, *, is_first: bool) -> NoteBlock:
    """Return a message as a terminal shows it behind the prompt."""
    typed = safe(message).replace("\n", "\n  ")
    return NoteBlock(("" if is_first else "\n") + f"> {typed}")


def _facts(chat: Chat, round_: Round) -> dict[str, Any]:
    """Return a round as plain data: its own wire form, and the facts most often needed."""
    usage = chat.session.round_usage
    return {
        "session_id": chat.session.session_id,
        **round_.shown_dict(),
        "user_query": round_.question,
        "notes": round_.notes,
        "is_answered": is_answered(round_),
        "stop": round_.stop_reason,
        "error": round_.reason,
        "answer": round_.answer.text if round_.state == "finished" else "",
        "unsupported_numbers": list(round_.answer.unsupported_numbers),
        "artifacts": [str(chat.session.execution_cwd / path) for path in round_.artifacts],
        "usage": asdict(usage),
    }
