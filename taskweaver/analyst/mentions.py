"""Mentions of files in a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from taskweaver.analyst.world import FileInfo


@dataclass(frozen=True, slots=True)
class Mention:
    """Part of a request that names a file.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last character.
        file: Path of the file, relative to the working folder; empty for a file name that no
            file has.
        part: Sheet or table that is named with it; empty for none.
        is_certain: Whether the words can be nothing else, such as ``data/x.csv``; else they may
            also be a column, a value or a noun, such as ``penguins``.
    """

    start: int
    end: int
    file: str
    part: str = ""
    is_certain: bool = True


def find_files(text: str, files: Sequence[FileInfo]) -> tuple[Mention, ...]:
    """Return the mentions of files in a text, in order, without overlaps.

    Args:
        text: The request.
        files: The files there are.
    """
    found = [
        Mention(match.start(), match.end(), file.name)
        for file in files
        for match in re.finditer(rf"(?<!\w){re.escape(file.name)}(?!\w)", text, re.IGNORECASE)
    ]
    return tuple(sorted(found, key=lambda mention: mention.start))
