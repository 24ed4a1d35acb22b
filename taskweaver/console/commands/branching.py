"""Slash commands that branch a session."""

from __future__ import annotations

import re

from taskweaver.console.chat import Chat
from taskweaver.console.terminal.blocks import FactsBlock, FailureBlock, NoteBlock
from taskweaver.console.terminal.text import head, safe
from taskweaver.session.storage.compare import Pair
from taskweaver.session.storage.store import BranchInfo
from taskweaver.utils.text import counted

_FORK = re.compile(r"(?P<name>(?!at\b)\S+)?\s*(?:at\s+(?:round\s+)?(?P<round>\d+))?\s*")
_DEEPEST = 12
_VALUE_CHARS = 60


def show_fork(chat: Chat, arguments: str) -> None:
    """Fork the session and go on with the fork."""
    match = _FORK.fullmatch(arguments)
    if match is None:
        chat.surface.show(FailureBlock("Like this: /fork, /fork NAME, /fork NAME at 3"))
        return
    before = chat.session.branch
    at_round = int(match["round"]) if match["round"] else None
    name = chat.session.fork(match["name"] or "", at_round=at_round)
    chat.session.checkout(name)
    chat.surface.show(NoteBlock(f"now on {name}; /checkout {before} goes back"))
    chat.show_notice()


def show_branches(chat: Chat, _: str) -> None:
    """Show the branches as a tree."""
    branches = chat.session.branches()
    depths: dict[str, int] = {}
    for branch in branches:
        depths[branch.name] = depths.get(branch.parent or "", -1) + 1
    rows = [
        (
            f"{'  ' * min(depths[branch.name], _DEEPEST)}{branch.name}",
            counted(branch.rounds, "round") + (", current" if branch.is_current else ""),
        )
        for branch in _in_tree_order(branches)
    ]
    chat.surface.show(FactsBlock(tuple(rows)))


def _in_tree_order(branches: list[BranchInfo]) -> list[BranchInfo]:
    children: dict[str | None, list[BranchInfo]] = {}
    for branch in branches:
        children.setdefault(branch.parent, []).append(branch)
    ordered, waiting = [], list(reversed(children.get(None, [])))
    while waiting:
        branch = waiting.pop()
        ordered.append(branch)
        waiting += reversed(children.get(branch.name, []))
    return ordered


def show_checkout(chat: Chat, arguments: str) -> None:
    """Go on with another branch."""
    if not arguments:
        chat.surface.show(FailureBlock("Which branch? /branches lists them."))
        return
    chat.session.checkout(arguments)
    rounds = chat.session.memory.conversation.rounds
    chat.surface.show(
        NoteBlock(f"now on {chat.session.branch}, after {counted(len(rounds), 'round')}")
    )
    chat.show_notice()


def show_undo(chat: Chat, _: str) -> None:
    """Go back by one round."""
    before = chat.session.branch
    name = chat.session.undo()
    rounds = len(chat.session.memory.conversation.rounds)
    chat.surface.show(
        NoteBlock(
            f"now on {name}, after {counted(rounds, 'round')}; /checkout {before} undoes this"
        )
    )
    chat.show_notice()


def show_diff(chat: Chat, arguments: str) -> None:
    """Show how two branches differ; with one name, how it differs from the current one."""
    names = arguments.split()
    if len(names) == 1:
        names = [chat.session.branch, names[0]]
    if len(names) != 2:
        chat.surface.show(FailureBlock("Which branches? /diff A B"))
        return
    found = chat.session.diff(*names)
    rows = [
        (f"only {name}", head(safe(query), 1, _VALUE_CHARS))
        for name, queries in zip(names, found.rounds, strict=True)
        for query in queries
    ]
    rows += _pairs("variable", found.variables) + _pairs("file", found.files)
    rows += _pairs("memory", found.memory.core)
    chat.surface.show(FactsBlock(tuple(rows)) if rows else NoteBlock("They are the same."))


def _pairs(what: str, pairs: dict[str, Pair]) -> list[tuple[str, str]]:
    return [
        (f"{what} {safe(name)}", f"{_value(first)}  |  {_value(second)}")
        for name, (first, second) in pairs.items()
    ]


def _value(value: str | None) -> str:
    return "-" if value is None else head(safe(value), 1, _VALUE_CHARS)


def show_merge(chat: Chat, arguments: str) -> None:
    """Copy a branch's core and archival memory to the current branch."""
    if not arguments:
        chat.surface.show(FailureBlock("Which branch? /branches lists them."))
        return
    report = chat.session.merge(arguments)
    taken = f"{counted(len(report.taken), 'item')} of {arguments} taken over"
    conflicts = f"; replaced here: {', '.join(report.conflicts)}" if report.conflicts else ""
    chat.surface.show(NoteBlock(taken + conflicts))
