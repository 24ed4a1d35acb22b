"""Questions from a script: asked one after another, answered on standard output."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taskweaver.cli.open_app import open_app
from taskweaver.cli.printing import print_json, safe
from taskweaver.cli.signals import ending_orderly
from taskweaver.console.chat import Chat, OpenSession, is_answered
from taskweaver.console.commands.table import CommandLine
from taskweaver.console.terminal.blocks import NoteBlock
from taskweaver.console.terminal.surface import PlainSurface, open_surface
from taskweaver.memory.round import Round
from taskweaver.page.one_file import conversation_page

COMMAND_LINE = re.compile(r"^(/[A-Za-z?]+(?:[ \t][^\n]*)?)$", re.MULTILINE)
"""A line that is a command of the chat."""

_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,})")


def messages_in(text: str) -> list[str]:
    """Divide the text of an option into commands, a line each, and messages between commands."""
    return [part.strip() for part in COMMAND_LINE.split(text) if part.strip()]


def piped_messages(text: str) -> list[str]:
    r"""Divide the text of standard input: each line is a message or a command.

    A message continues in the next line when that line is indented, or opens a fence (three
    backquotes or tildes) that then holds all lines up to its end, or when the line before ends
    in a backslash.
    """
    messages: list[list[str]] = []
    fence = ""
    is_continued = False
    for line in text.replace("\r\n", "\n").split("\n"):
        opening = _FENCE.match(line)
        is_new = not (fence or is_continued or opening or line[:1].isspace() or not line)
        if is_new or not messages or _is_command(messages[-1]):
            messages.append([])
        is_continued = not fence and line.endswith("\\")
        text_of_line = line.removesuffix("\\") if is_continued else line
        messages[-1].append(text_of_line)
        if fence:
            fence = "" if line.strip().startswith(fence) else fence
        elif opening:
            fence = opening[1]
    texts = ("\n".join(lines).strip() for lines in messages)
    return [text for text in texts if text]


def _is_command(lines: list[str]) -> bool:
    """Return whether the lines of a message are a command, which has one line and empty ones."""
    return not any(lines[1:2]) and COMMAND_LINE.fullmatch(lines[0].rstrip()) is not None


def run_script(
    project: Path | None,
    messages: Sequence[str],
    files: Sequence[Path] = (),
    *,
    is_echoed: bool = False,
    as_json: bool = False,
    opened: OpenSession | None = None,
) -> int:
    """Send messages, carry out commands, and return the exit status.

    The files go with the first message; `opened` is that of `converse`. With `as_json` rounds go to
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
        chat = Chat(app, surface, opened, conversation_page)
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
    """Return a round as plain data: the wire form, and the facts most often needed."""
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
        "usage": chat.session.round_usage,
    }
