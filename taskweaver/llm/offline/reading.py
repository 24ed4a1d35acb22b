"""What a prompt says: who said what, which reports came back, which tables are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from taskweaver.llm.json_stream import parse_reply
from taskweaver.llm.types import ChatMessage
from taskweaver.utils.parsing import literal_value

_START = "Let's start the new conversation!"
_INCOMING = re.compile(r"From: (?P<sender>[^\n]+)\nMessage: ?(?P<text>.*)\Z", re.DOTALL)
_CHANGED = re.compile(r"^files changed, read them again: (.+)\.$", re.MULTILINE)
_NOTE = "\n\n[Note:"
_SUMMARY = re.compile(
    r"^## Summary of earlier rounds\n"
    r"(.*?)(?=^From: |^## (?:Plugins|Feedback|User request|Task)|\Z)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """One message: who said it, its text, and the fields of a reply of our own."""

    sender: str
    text: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """What is known of a file: columns with their types, values of those that hold few."""

    file: str
    columns: dict[str, str] = field(default_factory=dict)
    values: dict[str, list[str]] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)

    def of_type(self, *starts: str) -> list[str]:
        """Return the columns whose type begins with one of `starts`."""
        return [name for name, kind in self.columns.items() if kind.startswith(starts)]


def live(messages: Sequence[ChatMessage]) -> list[Said]:
    """Return the conversation itself: what follows instructions and examples."""
    said = [
        (message["role"], _text(message)) for message in messages if message["role"] != "system"
    ]
    starts = [index for index, (_, text) in enumerate(said) if text.startswith(_START)]
    current = said[starts[-1] :] if starts else said
    texts = [(role, text.removeprefix(_START).strip()) for role, text in current]
    summary = _SUMMARY.search(texts[0][1]) if texts else None
    before = [Said("summary", summary[1])] if summary else []
    return before + [_said(role, text) for role, text in texts]


def _said(role: str, text: str) -> Said:
    if role == "assistant":
        return Said("me", text, parse_reply(text).fields)
    match = _INCOMING.search(text)
    if match:
        return Said(match["sender"], match["text"].partition(_NOTE)[0].strip())
    return Said("", text)


def _text(message: ChatMessage) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def section(text: str, title: str) -> str:
    """Return the body of a ``## title`` section, of any depth; empty if there is none."""
    match = re.search(rf"^#+ {title}\n(.*?)(?=^#{{2,3}} |\Z)", text, re.DOTALL | re.MULTILINE)
    return match[1].strip() if match else ""


def unfenced(text: str) -> str:
    """Return what stands in a fence, or the text itself."""
    match = re.match(r"(`{3,})\w*\n(.*?)\n?\1\s*\Z", text, re.DOTALL)
    return match[2] if match else text


def tables(said: Sequence[Said]) -> dict[str, Table]:
    """Return the tables whose columns a report showed, newest last."""
    found: dict[str, Table] = {}
    for item in said:
        for file in changed_files(item.text) if item.sender != "me" else ():
            found = {name: table for name, table in found.items() if name.split("#")[0] != file}
        table = table_in(item.text) if item.sender != "me" else None
        if table is not None:
            found.pop(table.file, None)
            found[table.file] = table
    return found


def changed_files(text: str) -> list[str]:
    """Return the files a message says were changed since they were read."""
    match = _CHANGED.search(text)
    return match[1].split(", ") if match else []


def table_in(text: str) -> Table | None:
    """Return the table a report describes, if it does."""
    body = unfenced(section(text, "Result"))
    if not body.startswith("{"):
        return None
    try:
        value = literal_value(body)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("file"), str):
        return None
    parts = {name: value.get(name) or {} for name in ("columns", "values", "tables")}
    return Table(
        value["file"], **{name: part for name, part in parts.items() if isinstance(part, dict)}
    )


def variables(text: str) -> frozenset[str]:
    """Return the names under the newest ``### Variables``."""
    return frozenset(re.findall(r"^- (\w+): ", section(text, "Variables"), re.MULTILINE))
