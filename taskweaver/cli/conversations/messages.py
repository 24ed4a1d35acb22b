"""Messages and commands in a text that is not typed at a prompt."""

from __future__ import annotations

import re

COMMAND_LINE = re.compile(r"^(/[A-Za-z?]+(?:[ \t][^\n]*)?)$", re.MULTILINE)
"""A line that is a command of the chat."""

_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,})")


def messages_in(text: str) -> list[str]:
    """Divide the text of an option: it is one message, except for lines that are commands."""
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
