"""The situation before a request, written by the program: variables, files and memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.role.files import PicturesOf, no_pictures
from taskweaver.utils.markup.quoting import indented
from taskweaver.utils.text import shorten

VARIABLES_CHARS = 4_000
_SITUATION_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Parts of a prompt around the conversation.

    Attributes:
        guide: Rules for an author of cells; empty where it writes none.
        situation: Sections of the situation before the newest request.
        pictures: Returns the pictures that the newest round shows.
    """

    guide: str = ""
    situation: str = ""
    pictures: PicturesOf = no_pictures


def variables_text(variables: Iterable[tuple[str, str]], limit_chars: int = VARIABLES_CHARS) -> str:
    """Describe variables, one a line."""
    lines = "\n".join(f"- {indented(f'{name}: {text}')}" for name, text in variables)
    return shorten(lines, limit_chars)


def situation(files: str, rounds: Sequence[Round], memory: str = "") -> str:
    """Return the sections of the situation; empty if there is nothing to say.

    Args:
        files: Section that lists the user's files; empty for none.
        rounds: The conversation so far, the newest request included.
        memory: Section with the facts kept for the request; empty for none.
    """
    variables = _newest_variables(rounds[:-1])
    text = variables_text(variables, _SITUATION_CHARS)
    sections = [files, f"## Variables\n{text}" if text else "", memory]
    return "\n\n".join(filter(None, sections))


def _newest_variables(rounds: Sequence[Round]) -> list[tuple[str, str]]:
    """Return the variables after the newest cell that left any, with their descriptions."""
    for round_ in reversed(rounds):
        for post in reversed(round_.post_list):
            stored = post.get_attachment(AttachmentType.session_variables)
            if stored:
                pairs = json.loads(str(stored[-1].content))
                return [(str(name), str(text)) for name, text in pairs]
    return []
