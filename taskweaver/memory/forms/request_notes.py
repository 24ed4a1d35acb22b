"""Notes for the roles that a session puts before the words of the user, a line each."""

from __future__ import annotations

FILES_ADDED = "files added"
FILES_CHANGED = "files changed, read them again"
FILES_KEPT = "files changed, but not the copy here, which code changed"
FILES_REFUSED = "files not added"
FILE_NAMES = "names here of files in the message"
VARIABLE_GONE = "variable that is gone, make it again before use"
ALL_VARIABLES_GONE = "The Python session is new: the variables of earlier rounds are gone."

_FILES = (f"{FILES_ADDED}: ", f"{FILES_CHANGED}: ")
_NOTES = (
    *_FILES,
    f"{FILES_KEPT}: ",
    f"{FILES_REFUSED}: ",
    f"{FILE_NAMES}: ",
    f"{VARIABLE_GONE}: ",
    ALL_VARIABLES_GONE,
)


def split_notes(query: str) -> tuple[list[str], str]:
    """Return the notes at the beginning of a request, and the words of the user."""
    notes = []
    rest = query
    while rest.startswith(_NOTES):
        line, _, rest = rest.partition("\n")
        notes.append(line)
    return notes, rest


def file_notes(query: str) -> str:
    """Return the notes of a request that name the files which came with it; empty for none."""
    return "\n".join(line for line in split_notes(query)[0] if line.startswith(_FILES))
