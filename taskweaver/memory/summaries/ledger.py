"""The program's own part of a summary: files, variables and figures, written without a model.

It holds the facts a model would have to copy. A round is one line, with the request and the
answer; those with figures, paths and quoted names come first where there is no room for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.reading.cells import variables_of
from taskweaver.memory.round import Round
from taskweaver.utils.text import remove_temporal_parts, shorten

LEDGER_CHARS = 6_000
"""Most characters of the part."""

HEADING = "### Kept by the program"
"""First line of the part; the text before it is the model's."""

_FEWEST_CHARS = 600
_FILES_CHARS, _VARIABLES_CHARS = 0.15, 0.2
_REQUEST_CHARS, _ANSWER_CHARS = 180, 120
_PATH = re.compile(r"(?<![\w/.])(?:[\w.-]*/)*[\w-]+\.(?!\d)[A-Za-z][A-Za-z0-9]{1,5}\b")
_EXACT = re.compile(r"\d|[\"'`\u201c\u2018\u300c]\w|[\w-]/[\w-]|\w\.[A-Za-z]{2,5}\b")


def notes_of(summary: str) -> str:
    """Return the model's part of a summary."""
    at = f"\n{summary}".rfind(f"\n{HEADING}\n")
    return summary if at < 0 else summary[:at].rstrip()


def with_ledger(notes: str, rounds: Sequence[Round], limit_chars: int = LEDGER_CHARS) -> str:
    """Return a summary of rounds: the model's notes, and the program's part.

    Args:
        notes: The model's part; empty for none.
        rounds: All rounds it stands for, oldest first.
        limit_chars: Most characters of the program's part.
    """
    return "\n\n".join(filter(None, [notes, ledger_of(rounds, limit_chars)]))


def ledger_of(rounds: Sequence[Round], limit_chars: int = LEDGER_CHARS) -> str:
    """Return the program's part of the summary of rounds."""
    limit_chars = max(min(limit_chars, LEDGER_CHARS), _FEWEST_CHARS)
    files = ", ".join(dict.fromkeys(name for round_ in rounds for name in _files(round_)))
    variables = "; ".join(_variables(rounds))
    head = [HEADING]
    if files:
        head.append(f"Files: {_ending(files, int(limit_chars * _FILES_CHARS))}")
    if variables:
        head.append(f"Variables: {shorten(variables, int(limit_chars * _VARIABLES_CHARS))}")
    left = limit_chars - sum(len(line) + 1 for line in head)
    return "\n".join([*head, *_lines(rounds, left)])


def _lines(rounds: Sequence[Round], limit_chars: int) -> list[str]:
    """Return a line for each round that has room, in the order of the rounds."""
    lines = [_line(number, round_) for number, round_ in enumerate(rounds, 1)]
    exact = [bool(_EXACT.search(round_.user_query)) for round_ in rounds]
    first = sorted(range(len(lines)), key=lambda n: (exact[n], n), reverse=True)
    shown: set[int] = set()
    for number in first:
        limit_chars -= len(lines[number]) + 1
        if limit_chars < 0:
            break
        shown.add(number)
    left_out = len(lines) - len(shown)
    note = [f"({left_out} rounds have no line here.)"] if left_out else []
    return note + [line for number, line in enumerate(lines) if number in shown]


def _line(number: int, round_: Round) -> str:
    request = _bounded(round_.user_query, _REQUEST_CHARS)
    last = round_.post_list[-1] if round_.post_list else None
    if last is None or last.send_to != "User":
        return f"- {number}: {request}"
    return f"- {number}: {request} -> {_bounded(last.message, _ANSWER_CHARS)}"


def _bounded(text: str, limit_chars: int) -> str:
    line = " ".join(remove_temporal_parts(text).split())
    return line if len(line) <= limit_chars else f"{line[: limit_chars - 4]} ..."


def _ending(text: str, limit_chars: int) -> str:
    """Return the end of a list of names."""
    return text if len(text) <= limit_chars else f"... {text[-limit_chars:].partition(', ')[2]}"


def _files(round_: Round) -> Iterator[str]:
    """Yield the files that a round names in its request, and those it made."""
    yield from _PATH.findall(round_.user_query)
    for post in round_.post_list:
        for item in post.get_attachment(AttachmentType.artifact_paths):
            paths = item.content if isinstance(item.content, list | tuple) else [item.content]
            yield from map(str, paths)


def _variables(rounds: Sequence[Round]) -> list[str]:
    """Return the variables after the newest cell, with types and shapes."""
    found = variables_of(rounds)
    return [f"{name}: {_bounded(text, _ANSWER_CHARS)}" for name, text in found.items()]
