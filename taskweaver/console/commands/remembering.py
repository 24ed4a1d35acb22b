"""The slash commands of long-term memory: list, search, keep, correct, add and forget facts."""

from __future__ import annotations

from taskweaver.console.chat import Chat
from taskweaver.console.terminal.text import safe
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.storage.facts import KeptFact

_USAGE = "/memory [WORDS], /memory keep ID or /memory edit ID TEXT"


def show_memory(chat: Chat, arguments: str) -> None:
    """List or search facts; keep one of a model for the project; replace the text of one."""
    memory = chat.session.long_memory
    verb, _, rest = arguments.partition(" ")
    id_, _, text = rest.strip().partition(" ")
    if verb == "keep":
        fact = _one(chat, memory, id_)
        if fact is not None:
            chat.note(safe(memory.keep(fact)))
    elif verb == "edit":
        fact = _one(chat, memory, id_)
        if fact is not None:
            chat.note(safe(memory.replace(fact, text)))
    else:
        matching = [fact for fact in memory.find(arguments) if fact.is_match]
        facts = matching if arguments else memory.all()
        absent = "No fact has these words." if arguments else "Nothing is kept yet."
        chat.list_facts([(fact.id, _described(fact)) for fact in facts], absent)


def show_remember(chat: Chat, text: str) -> None:
    """Keep a fact for the project."""
    if not text:
        chat.refuse("Which fact? /remember TEXT")
        return
    chat.note(safe(chat.session.long_memory.add(text)))


def show_forget(chat: Chat, which: str) -> None:
    """Forget a fact."""
    if not which:
        chat.refuse("Which fact? /forget ID or its words")
        return
    memory = chat.session.long_memory
    fact = _one(chat, memory, which)
    if fact is not None:
        chat.note(safe(memory.remove(fact)))


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
    waits = "" if fact.id.startswith("p") else f"; waits for /memory keep {fact.id}"
    origin = f"{fact.author}, {fact.day}, session {fact.session}{waits}"
    return safe(f"{fact.text}\n{origin}")
