"""Operations on long-term memory: offered, read and kept on posts, in every form of reply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post

REMEMBER, FORGET, RECALL = "remember", "forget", "recall"
OPERATIONS = {
    REMEMBER: (
        "text",
        "Keep each fact, definition, rule, wish or preference that the user states, also in"
        " passing, if it holds beyond this request: in exactly the user's words, without 'remember"
        " that'. Other words, and conclusions of your own, are proposed to the user; say no more"
        " about that. Never keep text of files or outcomes. Before a fact that contradicts a kept"
        " one, name it: 'replaces p7: ...'.",
    ),
    FORGET: ("text", "Forget a fact that the user takes back: its id or its text."),
    RECALL: ("query", "Search kept facts and earlier rounds; what matches comes back."),
}
"""Argument and description of each operation, by its name: the same words in every form."""

MOST_OPERATIONS = 8
"""Most operations of one reply that are carried out."""

_MARK = "memory"


@dataclass(frozen=True, slots=True)
class FactOperation:
    """An operation of a reply: its name, its text, and once carried out its result in words."""

    name: str
    text: str
    result: str = ""

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments of its call."""
        return {OPERATIONS[self.name][0]: self.text}

    @property
    def line(self) -> str:
        """The line that the user sees."""
        return f'recalls "{self.text}"' if self.name == RECALL else self.result


def asks(operations: Iterable[FactOperation]) -> bool:
    """Return whether the model waits for the result of one."""
    return any(operation.name == RECALL for operation in operations)


def of_fields(fields: Mapping[str, str]) -> tuple[FactOperation, ...]:
    """Return the operations in the fields of a JSON reply; empty ones are none."""
    texts = {name: fields.get(name, "").strip() for name in OPERATIONS}
    return tuple(FactOperation(name, text) for name, text in texts.items() if text)


def extra_of(done: FactOperation) -> dict[str, object]:
    """Return the extra of the ``function`` attachment that keeps an operation."""
    return {_MARK: {"name": done.name, "text": done.text, "result": done.result}}


def kept(post: Post) -> Sequence[FactOperation]:
    """Return the operations that a post keeps."""
    found = []
    for item in post.get_attachment(AttachmentType.function):
        facts = item.extra.get(_MARK) if isinstance(item.extra, Mapping) else None
        if isinstance(facts, Mapping) and facts.get("name") in OPERATIONS:
            text, result = str(facts.get("text", "")), str(facts.get("result", ""))
            found.append(FactOperation(str(facts["name"]), text, result))
    return found
