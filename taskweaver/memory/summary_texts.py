"""Texts of a summary: rounds as a model reads them, and the part that the program writes.

The transcript has messages, code and results, each bounded. The ledger holds facts that a model
would have to copy: files, variables and figures. A round is one line of it, request and answer;
rounds with figures, paths and quoted names come first where there is no room for all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.cells import variables_of
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.views import with_short_outcomes
from taskweaver.utils.markup.quoting import quoted_section
from taskweaver.utils.text import estimate_tokens, remove_temporal_parts, shorten

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
    request = _one_line(round_.user_query, _REQUEST_CHARS)
    last = round_.post_list[-1] if round_.post_list else None
    if last is None or last.send_to != "User":
        return f"- {number}: {request}"
    return f"- {number}: {request} -> {_one_line(last.message, _ANSWER_CHARS)}"


def _one_line(text: str, limit_chars: int) -> str:
    line = " ".join(remove_temporal_parts(text).split())
    return line if len(line) <= limit_chars else f"{line[: limit_chars - 4]} ..."


def _ending(text: str, limit_chars: int) -> str:
    """Return the end of a list of names."""
    return text if len(text) <= limit_chars else f"... {text[-limit_chars:].partition(', ')[2]}"


def _files(round_: Round) -> Iterator[str]:
    """Yield the files that a round names in the request, and the files that it made."""
    yield from _PATH.findall(round_.user_query)
    yield from round_.artifacts


def _variables(rounds: Sequence[Round]) -> list[str]:
    """Return the variables after the newest cell, with types and shapes."""
    found = variables_of(rounds)
    return [f"{name}: {_one_line(text, _ANSWER_CHARS)}" for name, text in found.items()]


MESSAGE_CHARS = 4_000
ROUND_CHARS = 24_000
_ATTACHMENT_CHARS = {
    AttachmentType.plan: 1_500,
    AttachmentType.reply_content: 3_000,
    AttachmentType.verification: 500,
    AttachmentType.code_error: 1_500,
    AttachmentType.execution_status: 100,
    AttachmentType.execution_result: 2_000,
    AttachmentType.artifact_paths: 1_000,
    AttachmentType.session_variables: 2_000,
    AttachmentType.text: 2_000,
}

_REPEATED = frozenset({AttachmentType.execution_result, AttachmentType.session_variables})
"""Attachments whose text is, shortened, in the message of the post or of the newest request."""


def transcript_of(round_: Round, number: int) -> str:
    """Return a round as text, with a number counted from 1."""
    lines = [f"### Round {number}", f"The user asked: {_bounded(round_.user_query, MESSAGE_CHARS)}"]
    if round_.state == "failed":
        lines.append("This round failed.")
    cells: set[str] = set()
    for post in round_.post_list:
        lines += _post_lines(post, round_.user_query, cells)
    return shorten("\n".join(lines), ROUND_CHARS)


def tokens_of(round_: Round, outcome_chars: int) -> int:
    """Estimate the tokens of a past round: messages, and further attached text.

    Args:
        round_: The round.
        outcome_chars: Most characters of an outcome.
    """
    return sum(
        estimate_tokens(post.message)
        + sum(
            estimate_tokens(_text(item.content))
            for item in post.attachment_list
            if item.type not in _REPEATED
        )
        + sum(_record_tokens(item) for item in post.get_attachment(AttachmentType.reply_record))
        for post in with_short_outcomes(round_, outcome_chars).post_list
    )


def _record_tokens(item: Attachment) -> int:
    """Estimate the tokens of a reply's record for a provider, a part of prompts."""
    record = item.extra.get("record") if isinstance(item.extra, dict) else None
    return estimate_tokens(json.dumps(record, ensure_ascii=False)) if record else 0


def _post_lines(post: Post, query: str, cells: set[str]) -> Iterator[str]:
    """Yield the lines of a post. Code that is among `cells` already is left out."""
    message = "(the request)" if post.message == query else _bounded(post.message, MESSAGE_CHARS)
    yield f"{post.send_from} -> {post.send_to}: {message}"
    told = _plain(post.message)
    for attachment in post.attachment_list:
        limit_chars = _ATTACHMENT_CHARS.get(attachment.type)
        text = _text(attachment.content).strip()
        if attachment.type is AttachmentType.reply_content and text:
            if text in cells:  # a report repeats the cell that it is about
                continue
            cells.add(text)
        # Messages repeat code and results; headings differ in depth.
        if limit_chars is not None and text and _plain(text) not in told:
            yield f"[{attachment.type.value}] {_bounded(text, limit_chars)}"


def _text(content: object) -> str:
    if isinstance(content, list | tuple):
        return "\n".join(map(str, content))
    return "" if content is None else str(content)


def _plain(text: str) -> str:
    return text.replace("#", "")


def _bounded(text: str, limit_chars: int) -> str:
    return quoted_section(shorten(remove_temporal_parts(text), limit_chars))
