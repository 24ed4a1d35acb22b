"""Files that a request may be about, so that a folder of many files needs few looks."""

from __future__ import annotations

import re
from dataclasses import replace

from taskweaver.analyst.language.names import name_words
from taskweaver.analyst.mentions import find_files
from taskweaver.analyst.world import FileInfo, PartInfo, World

MOST_LOOKS = 8
"""Files that are looked at for one request; each look is a cell."""
_FEW = 3
_LEAST_CHARS = 3
_MOST_NAME_CHARS = 800
"""Characters of the column names of a table above which the prompt may have left some out."""


def with_candidates(request: str, world: World) -> World:
    """Return a world without the files whose columns a request does not speak of.

    The files stay as they are if they are few, if the request names one for certain, or if it
    speaks of no column of any.

    Args:
        request: The request.
        world: The files, with the columns that the prompt lists, and the tables looked at.
    """
    known = {id.file for id in world.tables}
    unknown = [file for file in world.files if file.name not in known]
    if len(unknown) <= _FEW:
        return world
    mentions = find_files(request, world.files)
    if any(mention.is_certain for mention in mentions):
        return world
    words = _long_words(request) | set(re.findall(r"\w+", request.casefold()))
    likely = {mention.file for mention in mentions}
    matching = {file.name for file in world.files if _speaks_of(words, file)} | likely
    if not matching:
        return world
    kept = [file for file in world.files if file.name in known | matching or _is_open(file)]
    return replace(world, files=tuple(kept))


def _speaks_of(words: set[str], file: FileInfo) -> bool:
    names = (name for part in file.parts for name in part.columns)
    return any(words & {name.casefold(), *_long_words(name)} for name in names)


def _long_words(text: str) -> set[str]:
    return {word for word in name_words(text) if len(word) >= _LEAST_CHARS}


def _is_open(file: FileInfo) -> bool:
    """Return whether a file may hold columns that the prompt does not list."""
    return not file.parts or any(_may_hold_more(part) for part in file.parts)


def _may_hold_more(part: PartInfo) -> bool:
    return not part.columns or sum(map(len, part.columns)) > _MOST_NAME_CHARS
