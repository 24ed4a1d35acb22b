"""Commands on branches and on the long-term memory."""

from __future__ import annotations

import re

from taskweaver.console.chat import Chat
from taskweaver.console.terminal.text import depth_first, head, safe
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.storage.compare import Pair
from taskweaver.session.storage.facts import KeptFact, as_json
from taskweaver.session.storage.store import BranchInfo
from taskweaver.utils.text import counted

_FORK = re.compile(r"(?P<name>(?!at\b)\S+)?\s*(?:at\s+(?:round\s+)?(?P<round>\d+))?\s*")
_DEEPEST = 12
_VALUE_CHARS = 60


def show_fork(chat: Chat, arguments: str) -> None:
    """Fork the session and switch to the fork."""
    match = _FORK.fullmatch(arguments)
    if match is None:
        chat.refuse("Like this: /fork, /fork NAME, /fork NAME at 3")
        return
    before = chat.session.branch
    at_round = int(match["round"]) if match["round"] else None
    name = chat.session.fork(match["name"] or "", at_round=at_round)
    chat.session.checkout(name)
    chat.note(f"now on {name}; /checkout {before} goes back")
    chat.show_notice()


def show_branches(chat: Chat, _: str) -> None:
    """Show the branches as a tree."""
    children: dict[str | None, list[BranchInfo]] = {}
    for branch in chat.session.branches():
        children.setdefault(branch.parent, []).append(branch)
    rows = [
        (
            f"{'  ' * min(depth, _DEEPEST)}{_shown(branch)}",
            counted(branch.rounds, "round") + (", current" if branch.is_current else ""),
        )
        for depth, branch in depth_first(children.get(None, []), lambda b: children.get(b.name, []))
    ]
    chat.list_facts(rows)


def _shown(branch: BranchInfo) -> str:
    """Return the name of a branch, with the title that it was given."""
    return branch.name + (f" ({branch.title})" if branch.title != branch.name else "")


def show_checkout(chat: Chat, arguments: str) -> None:
    """Switch to another branch."""
    if not arguments:
        chat.refuse("Which branch? /branches lists them.")
        return
    chat.session.checkout(arguments)
    rounds = chat.session.memory.conversation.rounds
    chat.note(f"now on {chat.session.branch}, after {counted(len(rounds), 'round')}")
    chat.show_notice()


def show_undo(chat: Chat, _: str) -> None:
    """Go back by one round."""
    before = chat.session.branch
    name = chat.session.undo()
    rounds = len(chat.session.memory.conversation.rounds)
    chat.note(f"now on {name}, after {counted(rounds, 'round')}; /checkout {before} undoes this")
    chat.show_notice()


def show_diff(chat: Chat, arguments: str) -> None:
    """Show how two branches differ; with one name, how it differs from the current one."""
    names = arguments.split()
    if len(names) == 1:
        names = [chat.session.branch, names[0]]
    if len(names) != 2:
        chat.refuse("Which branches? /diff A B")
        return
    found = chat.session.diff(*names)
    rows = [
        (f"only {name}", head(safe(query), 1, _VALUE_CHARS))
        for name, queries in zip(names, found.rounds, strict=True)
        for query in queries
    ]
    rows += _pairs("variable", found.variables) + _pairs("file", found.files)
    rows += _pairs("memory", found.memory.core)
    chat.list_facts(rows, "They are the same.")


def _pairs(what: str, pairs: dict[str, Pair]) -> list[tuple[str, str]]:
    return [
        (f"{what} {name}", f"{_value(first)}  |  {_value(second)}")
        for name, (first, second) in pairs.items()
    ]


def _value(value: str | None) -> str:
    return "-" if value is None else head(safe(value), 1, _VALUE_CHARS)


def show_merge(chat: Chat, arguments: str) -> None:
    """Copy a branch's core and archival memory to the current branch."""
    if not arguments:
        chat.refuse("Which branch? /branches lists them.")
        return
    report = chat.session.merge(arguments)
    taken = f"{counted(len(report.taken), 'item')} of {arguments} taken over"
    conflicts = f"; replaced here: {', '.join(report.conflicts)}" if report.conflicts else ""
    chat.note(taken + conflicts)


_USAGE = "/memory [WORDS], /memory keep ID or /memory edit ID TEXT"


def show_memory(chat: Chat, arguments: str) -> None:
    """List or search the facts of all sessions; accept a proposed one; replace a text."""
    memory = chat.session.long_memory
    verb, _, rest = arguments.partition(" ")
    id_, _, text = rest.strip().partition(" ")
    if verb in ("keep", "edit"):
        if fact := _one(chat, memory, id_):
            chat.note(memory.keep(fact) if verb == "keep" else memory.replace(fact, text))
    else:
        found = memory.find(arguments) if arguments else memory.all()
        facts = [fact for fact in found if fact.is_match]
        absent = "No fact has these words." if arguments else "Nothing is kept yet."
        chat.list_facts([(fact.id, _described(fact)) for fact in facts], absent)


def show_remember(chat: Chat, text: str) -> None:
    """Keep a fact for the project."""
    if not text:
        chat.refuse("Which fact? /remember TEXT")
        return
    chat.note(chat.session.long_memory.add(text))


def show_forget(chat: Chat, which: str) -> None:
    """Forget a fact."""
    if not which:
        chat.refuse("Which fact? /forget ID or its words")
        return
    memory = chat.session.long_memory
    if fact := _one(chat, memory, which):
        chat.note(memory.remove(fact))


def _one(chat: Chat, memory: BranchLongMemory, which: str) -> KeptFact | None:
    """Return the fact that is meant; show those that can be meant if it is not one."""
    found = memory.named(which) if which else []
    if len(found) == 1:
        return found[0]
    if found:
        chat.list_facts([(fact.id, _described(fact)) for fact in found])
        chat.refuse("Several facts can be meant; name an id.")
    else:
        chat.refuse(f"There is no fact {which}." if which else f"Use {_USAGE}.")
    return None


def _described(fact: KeptFact) -> str:
    said = f", who read: {as_json(fact.said)}" if fact.said else ""
    asks = f"/memory keep {fact.id}, or /forget {fact.id}"
    waits = "" if fact.state == "kept" else f"\n{fact.state}: {fact.until or asks}"
    return f"{fact.text}\n{fact.author}, {fact.day}, session {fact.session}{said}{waits}"
