"""Slash commands, as a table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from taskweaver.console.chat import Chat
from taskweaver.console.commands.branching import (
    show_branches,
    show_checkout,
    show_diff,
    show_forget,
    show_fork,
    show_memory,
    show_merge,
    show_remember,
    show_undo,
)
from taskweaver.console.commands.prompts import show_prompts
from taskweaver.console.commands.rebuilding import show_rebuild, show_trust
from taskweaver.console.commands.receipts import export_target, show_receipt
from taskweaver.console.terminal.surface import LiveSurface
from taskweaver.console.terminal.text import display_path, head, mebibytes, safe
from taskweaver.errors import TaskWeaverError
from taskweaver.session.export import export
from taskweaver.session.session import Session
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.files import write_text
from taskweaver.utils.named_files import Finder
from taskweaver.utils.text import counted

COMMAND = re.compile(r"/([A-Za-z?]+)(?:\s+(.*))?\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ConsoleCommand:
    """A command of the console.

    Attributes:
        names: Its names, without the slash; the help shows the first.
        summary: Its effect, in a few words.
        run: Runs it, given the chat and the text after the name.
    """

    names: tuple[str, ...]
    arguments: str
    summary: str
    run: Callable[[Chat, str], None]


_LEAVING_WORDS = frozenset({"exit", "quit", "exit()", "quit()"})
"""Lines that leave other consoles: none is a question, and in a kernel they would be code."""


class CommandLine:
    """Answers lines: commands are done here, everything else is for the session."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    def handle(self, line: str) -> bool:
        """Answer a line; return whether the conversation continues."""
        if line.strip() in _LEAVING_WORDS:
            return False
        match = COMMAND.match(line.strip())
        if match is None:
            self.chat.ask(line)
            return True
        name, arguments = match[1].lower(), (match[2] or "").strip()
        command = BY_NAME.get(name)
        if command is EXIT:
            return False
        if command is None:
            self.chat.refuse(_unknown(name))
            return True
        try:
            command.run(self.chat, arguments)
        except (TaskWeaverError, OSError) as error:
            self.chat.refuse(str(error))
        return True

    def words(self) -> list[str]:
        """Return the commands and the files a message can name."""
        return [f"/{command.names[0]}" for command in COMMANDS] + self.chat.data_files()

    def close(self) -> None:
        """Stop the session and the application."""
        self.chat.close()


def _unknown(name: str) -> str:
    nearest = get_close_matches(name, BY_NAME, n=1)
    remedy = f"did you mean /{nearest[0]}?" if nearest else "/help lists them."
    return f"There is no command /{name}; {remedy}"


def _help(chat: Chat, _: str) -> None:
    rows = [
        (" ".join(f"/{name}" for name in command.names) + f" {command.arguments}", command.summary)
        for command in COMMANDS
    ]
    chat.list_facts(rows)
    chat.note(
        "Anything else is a request. Files it names are added to the session. Ctrl-C stops an"
        " answer, Alt-Enter starts a new line, Ctrl-D leaves."
    )


def _clear(chat: Chat, _: str) -> None:
    if isinstance(chat.surface, LiveSurface):
        chat.surface.console.clear()


def _reset(chat: Chat, _: str) -> None:
    chat.reset()
    chat.note(f"new session {chat.session.session_id}")


def _load(chat: Chat, arguments: str) -> None:
    names = _split(arguments)
    if not names:
        chat.refuse("Which file? /load PATH...")
    for name in names:
        if path := chat.add_file(name):
            chat.note(f"{display_path(path)} goes with the next message")


def _split(arguments: str) -> list[str]:
    """Split names at spaces, unless quoted or all of it is one file's name."""
    if arguments and Finder(Path.cwd()).find(arguments):
        return [arguments]
    try:
        return shlex.split(arguments)
    except ValueError:
        return [arguments.strip("\"'")]


def _save(chat: Chat, _: str) -> None:
    folder = chat.session.config.experience_dir
    if not chat.session.memory.conversation.rounds:
        chat.refuse("There is nothing to save yet.")
        return
    path = chat.session.memory.save_experience(folder, thin_mode=False)
    chat.note(f"saved as {display_path(path)}")


def _export(chat: Chat, arguments: str) -> None:
    kind, _, name = arguments.partition(" ")
    if kind == "receipt":
        show_receipt(chat, name.strip())
        return
    session = chat.session
    title = f"TaskWeaver session {session.session_id}"
    is_page = kind == "page"
    if is_page and chat.page_maker is None:
        chat.refuse("This chat writes no pages: /export NAME.md writes a report.")
        return
    name = name.strip() if is_page else arguments
    name = name or f"{session.session_id}.{'html' if is_page else 'ipynb'}"
    with export_target(session, name) as (draft, target):
        rounds, cwd = session.memory.conversation.rounds, session.execution_cwd
        if is_page and chat.page_maker:
            with Folder.at(cwd) as folder:
                write_text(draft, chat.page_maker(rounds, folder, title, session.branch))
        else:
            export(rounds, draft, title=title, folder=cwd)
    chat.note(f"written to {display_path(target)}")


def _continue(chat: Chat, _: str) -> None:
    chat.session.extend_limits()
    chat.note("the session may use as much again")


def _kernel(session: Session) -> str:
    memory, (states, extra_bytes) = session.kernel_memory, session.kept_states
    parts = [session.kernel_state]
    if memory.resident_bytes:
        parts.append(f"{mebibytes(memory.resident_bytes)}, {mebibytes(memory.shared_bytes)} shared")
    if states:
        more = f", {mebibytes(extra_bytes)} more" if extra_bytes >> 20 else ""
        parts.append(f"{counted(states, 'state')} to go back to{more}")
    return "; ".join(parts)


def _info(chat: Chat, _: str) -> None:
    session = chat.session
    usage = session.usage
    about = "about " if usage.is_estimated else ""
    tokens = f"{about}{usage.total_tokens:,} in {usage.calls} calls"
    counts = ((usage.cached_tokens, "from a cache"), (usage.reasoning_tokens, "of reasoning"))
    tokens = ", ".join([tokens, *(f"{count:,} {what}" for count, what in counts if count)])
    rows = [
        ("session", session.session_id),
        ("project", display_path(chat.app.app_dir)),
        ("branch", session.branch),
        ("files", display_path(session.execution_cwd)),
        ("kernel", _kernel(session)),
        ("sandbox", chat.app.sandbox),
        ("roles", ", ".join(session.roles)),
        ("rounds", str(len(session.memory.conversation.rounds))),
        ("model", chat.app.announcement.removeprefix("model: ")),
        ("tokens", tokens),
    ]
    rows += [("limit", str(bound)) for bound in session.bounds]
    rows += [("cost", f"{usage.cost:.4f}")] if usage.cost is not None else []
    chat.list_facts(rows)


def _plugins(chat: Chat, _: str) -> None:
    registry, offer = chat.app.plugins, chat.app.mcp_servers.offer()
    tools = {name: tool.entry for name, tool in offer.tools.items()}
    rows = [
        (name, head(safe(entry.spec.description), 2, 200).replace("\n", " "))
        for name, entry in sorted((tools | registry.plugins).items())
    ]
    rows += [(name, f"broken: {error}") for name, error in sorted(registry.broken.items())]
    rows += [(problem.server, problem.problem) for problem in offer.problems]
    chat.list_facts(rows, "This project has no plugins.")


def _leave(_chat: Chat, _text: str) -> None:
    """Do nothing: `CommandLine.handle` ends the conversation."""


EXIT = ConsoleCommand(("exit", "bye", "quit"), "", "leave", _leave)
COMMANDS = (
    ConsoleCommand(("help", "h", "?"), "", "list these commands", _help),
    ConsoleCommand(
        ("load", "file", "img", "image"), "PATH...", "add files to the next message", _load
    ),
    ConsoleCommand(("info",), "", "session, model, files, tokens", _info),
    ConsoleCommand(("plugins",), "", "functions the code may use", _plugins),
    ConsoleCommand(
        ("prompts",), "[N [PAGE]]", "prompts and replies of the last round", show_prompts
    ),
    ConsoleCommand(("save",), "", "keep this conversation as an experience", _save),
    ConsoleCommand(
        ("fork",), "[NAME] [at N]", "try another way from here, or after round N", show_fork
    ),
    ConsoleCommand(("branches",), "", "the branches of this session", show_branches),
    ConsoleCommand(("checkout", "co"), "NAME", "switch to another branch", show_checkout),
    ConsoleCommand(("undo",), "", "go back by one round", show_undo),
    ConsoleCommand(("diff",), "A [B]", "how two branches differ", show_diff),
    ConsoleCommand(("merge",), "NAME", "copy the memory of a branch to this one", show_merge),
    ConsoleCommand(
        ("memory",), "[WORDS | keep ID | edit ID TEXT]", "facts kept for requests", show_memory
    ),
    ConsoleCommand(("remember",), "TEXT", "keep a fact for this project", show_remember),
    ConsoleCommand(("forget",), "ID or WORDS", "forget a fact", show_forget),
    ConsoleCommand(
        ("rebuild",), "", "make lost variables again, on a scratch copy first", show_rebuild
    ),
    ConsoleCommand(("trust",), "", "load stored variables written elsewhere", show_trust),
    ConsoleCommand(
        ("export",),
        "[NAME.ipynb|.py|.md], page [NAME] or receipt [NAME]",
        "write a notebook, script, report or page, or the proof of the last answer",
        _export,
    ),
    ConsoleCommand(
        ("continue",), "", "allow the session as much again as its limits did", _continue
    ),
    ConsoleCommand(("reset",), "", "start a new session", _reset),
    ConsoleCommand(("clear",), "", "clear the screen", _clear),
    EXIT,
)
BY_NAME = {name: command for command in COMMANDS for name in command.names}
