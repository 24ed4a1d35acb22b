"""Conversation of a prompt: messages with their senders, reports, files and looked-at tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from taskweaver.llm.parsing.json_text import parse_reply
from taskweaver.llm.types import ChatMessage
from taskweaver.tables.files.file_list import (
    FILES_TITLE,
    listed_files,
    listed_tables,
    new_files_in,
    unlisted,
)
from taskweaver.tables.files.profile import FileInfo, TableId, TableProfile, World
from taskweaver.tables.files.profile_report import merged
from taskweaver.utils.data_files import is_data_file
from taskweaver.utils.markup.quoting import MARK, quoted_section

_START = "Let's start the new conversation!"
_INCOMING = re.compile(r"From: (?P<sender>[^\n]+)\nMessage: ?(?P<text>.*)\Z", re.DOTALL)
_NOTE = (
    r"files (?:not )?added: |files changed[^:\n]*: |names here of files in the message: "
    r"|variable that is gone, |The Python session is new: "
)
_NOTES = re.compile(rf"(?:^(?:{_NOTE})[^\n]*\n)+", re.MULTILINE)
_EARLIER = re.compile(r"\AEarlier in this chat:\n.*\nThe question now:\n", re.DOTALL)
_ASKED = re.compile(r"^> ?(?:The user asked: )(.+)$|^The user asked: (.+)$", re.MULTILINE)
_ADDED = re.compile(r"^files (?:added|changed)[^:\n]*: (.+)\.$", re.MULTILINE)
_NAMES = re.compile(r"^names here of files in the message: (\{.+\})$", re.MULTILINE)
_REFUSED = re.compile(r"^files not added: (.+\.)$", re.MULTILINE)
_PROSE = re.compile(r".*?(?:```|\b(?:run|execute)\b[^\n]*?:\s|\Z)", re.DOTALL | re.IGNORECASE)
"""A request up to the code or SQL in it, which is run as it is."""
_LOOKED = re.compile(r"Look at `([^`\n]+)`")
_NUDGE = "\n\n[Note:"
_SUMMARY = re.compile(
    r"^## Summary of earlier rounds\n"
    r"(.*?)(?=^From: |^## (?:Files|Variables|Memory|Plugins|Feedback|User request|Task)|\Z)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """Message of a prompt.

    Attributes:
        sender: ``User``, a role, ``me`` for the model's own, ``summary``; empty for a task.
        text: Its text.
        fields: Fields of the model's own reply.
    """

    sender: str
    text: str
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def request(self) -> str:
        """The user's own words: the text without what is put before it.

        These are notes of the session, and the history of a chat that it was not part of. Outside
        of code, files have the names of their copies.
        """
        request = _EARLIER.sub("", _NOTES.sub("", self.text, count=1)).strip()
        names = _NAMES.search(self.text)
        prose = _PROSE.match(request)
        end = prose.end() if prose else 0
        said = request[:end]
        for spelled, name in json.loads(names[1]).items() if names else ():
            said = said.replace(spelled, name)
        return said + request[end:]

    @property
    def refused(self) -> str:
        """Files that the text names and that could not be added, with the reasons."""
        found = _REFUSED.search(self.text)
        return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class PromptConversation:
    """Conversation that a prompt shows, and the files that it lists.

    Attributes:
        messages: The messages.
        files: The files.
        listed: Their tables, with the kinds of the columns alone.
        unlisted: Number of further files.
    """

    messages: tuple[PromptMessage, ...]
    files: tuple[FileInfo, ...]
    listed: Mapping[TableId, TableProfile] = field(default_factory=dict)
    unlisted: int = 0

    @property
    def newest(self) -> PromptMessage:
        """The newest message."""
        return self.messages[-1]

    @property
    def round(self) -> tuple[PromptMessage, ...]:
        """The messages since the user's newest one."""
        starts = [at for at, item in enumerate(self.messages) if item.sender == "User"]
        return self.messages[starts[-1] :] if starts else self.messages

    def world(self) -> World:
        """Return the data files, those of the newest message first, and the tables looked at.

        Pictures and other files that cells make are left out: their names are words of requests.
        """
        users = [item for item in self.messages if item.sender in {"User", ""}]
        recent = {name for item in users[-1:] for name in _names(_ADDED, item.text)}
        if not recent:
            summaries = [item.text for item in self.messages if item.sender == "summary"]
            recent = {file.name for file in self.files for text in summaries if file.name in text}
        data = [file for file in self.files if is_data_file(file.name)]
        first = [file for file in data if file.name in recent]
        others = [file for file in data if file.name not in recent]
        return World((*first, *others), self._tables(), self._unreadable())

    def requests(self) -> list[str]:
        """Return the user's requests in order, those that a summary quotes included."""
        return [request for request, _ in self.requests_with_files()]

    def requests_with_files(self) -> list[tuple[str, frozenset[str]]]:
        """Return the user's requests in order, each with the files that came with it.

        Those that a summary quotes are included, without files.
        """
        found: list[tuple[str, frozenset[str]]] = []
        for item in self.messages:
            task = "" if item.sender else section(item.text, "Task")
            if item.sender == "summary":
                asked = (first or second for first, second in _ASKED.findall(item.text))
                found += [(request, frozenset()) for request in asked]
            elif item.sender == "User":
                found.append((item.request, frozenset(_names(_ADDED, item.text))))
            elif task:
                request = PromptMessage("", task).request
                found.append((request, frozenset(_names(_ADDED, task))))
        return found

    def _unreadable(self) -> dict[str, str]:
        """Return the files that hold no table with the reasons, without those that came anew."""
        found: dict[str, str] = {}
        for order, report in pairwise(self.messages):
            for name in _names(_ADDED, report.text):
                found.pop(name, None)
            match = _LOOKED.match(order.fields.get("message", ""))
            if match and order.sender == "me" and holds_no_table(report.text):
                reason = _NO_TABLE.search(report.text)
                found[match[1]] = reason[1] if reason else "It holds no table."
        return found

    def _tables(self) -> Mapping[TableId, TableProfile]:
        """Return the profiles in reports, without those of files that came anew since."""
        found: Mapping[TableId, TableProfile] = {}
        for item in self.messages:
            if item.sender == "me":
                continue
            anew = _names(_ADDED, item.text)
            found = {id: table for id, table in found.items() if id.file not in anew}
            found = merged(found, item.text)
        return found


def has_run(report: str) -> bool:
    """Return whether the code of a report ran to its end."""
    return "The code ran to its end." in section(report, "Execution")


_NO_TABLE = re.compile(r"^TableError: (.+)$", re.MULTILINE)


def holds_no_table(report: str) -> bool:
    """Return whether a look failed because the file holds no table."""
    return not has_run(report) and "TableError" in report


def conversation(messages: Sequence[ChatMessage]) -> PromptConversation:
    """Return the conversation itself: the messages behind instructions and examples."""
    texts = [(item["role"], _text(item)) for item in messages if item["role"] != "system"]
    starts = [at for at, (_, text) in enumerate(texts) if text.startswith(_START)]
    current = texts[starts[-1] :] if starts else texts
    first = current[0][1] if current else ""
    summary = _SUMMARY.search(first)
    before = [PromptMessage("summary", summary[1])] if summary else []
    shown = [_message(role, text.removeprefix(_START).strip()) for role, text in current]
    if not starts:
        return PromptConversation((*before, *shown), ())
    lists = [_listing(text) for role, text in current if role != "assistant"]
    listing = "\n\n".join(filter(None, lists))
    files, tables = listed_files(listing), listed_tables(listing)
    return PromptConversation((*before, *shown), files, tables, unlisted(listing))


def _listing(text: str) -> str:
    """Return the part of a message that lists files: its beginning, or its end."""
    if text.startswith((_START, FILES_TITLE)):
        return _INCOMING.sub("", text)
    return new_files_in(text)


def _message(role: str, text: str) -> PromptMessage:
    if role == "assistant":
        return PromptMessage("me", text, parse_reply(text).fields)
    match = _INCOMING.search(text)
    if match:
        return PromptMessage(match["sender"], match["text"].partition(_NUDGE)[0].strip())
    return PromptMessage("", text)


def _text(message: ChatMessage) -> str:
    content = message["content"] or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def _names(pattern: re.Pattern[str], text: str) -> set[str]:
    return {name for match in pattern.finditer(text) for name in match[1].split(", ")}


def section(text: str, title: str) -> str:
    """Return the body of a ``## title`` section, of any depth; empty if there is none."""
    match = re.search(rf"^#+ {title}\n(.*?)(?=^#{{2,3}} |\Z)", text, re.DOTALL | re.MULTILINE)
    return match[1].strip() if match else ""


def without_notes(transcript: str) -> str:
    """Return a transcript in which the user's requests begin with their own words."""
    return re.sub(
        rf"^(> ?)?(The user asked: )(?:(?:{_NOTE})[^\n]*\n)+", r"\1\2", transcript, flags=re.M
    )


def unfenced(text: str) -> str:
    """Return the text in a fence, or the text itself."""
    match = re.match(r"(`{3,})\w*\n(.*?)\n?\1\s*\Z", text, re.DOTALL)
    return match[2] if match else text


def code_in(text: str) -> str:
    """Return the code in the fence at the end of an order, as it was written; empty for none."""
    match = re.search(r"^(`{3,})python\n(.*?)\n?^\1\s*\Z", text, re.DOTALL | re.MULTILINE)
    return "\n".join(map(_unmarked, match[2].split("\n"))) if match else ""


def _unmarked(line: str) -> str:
    """Return a line without the mark that quoting put before it."""
    inner = line.removeprefix(MARK)
    return inner if inner != line and quoted_section(inner) == line else line


def artifacts(report: str) -> list[str]:
    """Return the names of the files that a report lists."""
    lines = section(report, "Artifacts")
    return re.findall(r"^- \w+: (.+?)(?: \(.*\))?$", lines, re.MULTILINE)
