"""The slash command that shows prompts and replies."""

from __future__ import annotations

import re

from taskweaver.console.chat import Chat
from taskweaver.console.terminal.blocks import (
    OutputBlock,
    format_seconds,
)
from taskweaver.console.terminal.text import safe
from taskweaver.llm.prompts import PromptRecord
from taskweaver.llm.types import ChatMessage
from taskweaver.utils.text import counted

_PAGE_LINES = 120
_LINE_CHARS = 2_000
_ARGUMENTS = re.compile(r"(?:(?P<number>\d+)(?:\s+(?P<page>\d+))?)?\s*")


def show_prompts(chat: Chat, arguments: str) -> None:
    """List the calls of the last round, or show one of them, a page at a time."""
    match = _ARGUMENTS.fullmatch(arguments)
    if match is None:
        chat.refuse("Like this: /prompts, /prompts 3, /prompts 3 2 (page 2 of it)")
    elif match["number"] is None:
        _list(chat)
    else:
        _show(chat, int(match["number"]), int(match["page"] or 1))


def _list(chat: Chat) -> None:
    prompts = chat.session.prompts
    records = prompts.records(prompts.round_id)
    if not records:
        chat.note("No model was asked in the last round.")
        return
    chat.list_facts((str(item.number), _summary(item)) for item in records)
    chat.note(f"/prompts {records[-1].number} shows that prompt and its reply")


def _summary(record: PromptRecord) -> str:
    """Return a call in a line: role, model, tokens, time, and how it failed."""
    parts = [record.role, record.model]
    if record.usage is not None:
        about = "about " if record.usage.is_estimated else ""
        usage = record.usage
        parts.append(f"{about}{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens")
    parts.append(format_seconds(record.duration_s))
    parts += [f"failed: {record.error}"] if record.error else []
    return ", ".join(parts)


def _show(chat: Chat, number: int, page: int) -> None:
    records = {record.number: record for record in chat.session.prompts.records()}
    if number not in records:
        known = f"{min(records)} to {max(records)}" if records else "none yet"
        chat.refuse(f"There is no call {number}; there are: {known}.")
        return
    record = records[number]
    lines = _lines(record)
    pages = -(-len(lines) // _PAGE_LINES)
    if not 1 <= page <= pages:
        chat.refuse(f"Call {number} has {counted(pages, 'page')}.")
        return
    start = (page - 1) * _PAGE_LINES
    chat.list_facts(((str(number), _summary(record)),))
    chat.surface.show(OutputBlock(tuple(lines[start : start + _PAGE_LINES])))
    if pages > 1:
        more = f"; /prompts {number} {page + 1} shows the next" if page < pages else ""
        chat.note(f"page {page} of {pages}{more}")


def _lines(record: PromptRecord) -> list[str]:
    """Return a prompt and its reply, reasoning and calls too, as lines of bounded length."""
    sent = record.sent or {}
    messages = sent.get("messages", record.messages)
    parts = [(str(message["role"]), _text(message)) for message in messages]
    if record.reasoning:
        parts.append(("reasoning", record.reasoning))
    if record.reply or not record.calls:
        parts.append(("reply", record.reply or f"(none: {record.error})"))
    parts += [(f"call of {call.name}", call.arguments) for call in record.calls]
    lines: list[str] = []
    for title, text in parts:
        lines += [f"--- {title} ---", *_wrapped(safe(text)), ""]
    return lines[:-1]


def _wrapped(text: str) -> list[str]:
    return [
        line[start : start + _LINE_CHARS]
        for line in text.split("\n")
        for start in range(0, max(len(line), 1), _LINE_CHARS)
    ]


def _text(message: ChatMessage) -> str:
    content = message["content"] or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "(an image)")) for part in content)
