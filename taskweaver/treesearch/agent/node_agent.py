"""Questions to a model on behalf of a node: with its memory, and again after an unusable reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.json_text import required_object
from taskweaver.llm.types import ChatMessage, format_chat_message
from taskweaver.memory.branched.errors import BranchedMemoryError
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog
from taskweaver.memory.branched.protocol.blocks import Presence, read_reply
from taskweaver.memory.branched.protocol.protocol import brief_instructions, instructions
from taskweaver.memory.branched.rounds import MemoryTurn
from taskweaver.treesearch.agent.prompt_files import save_prompt, to_markdown
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.model.limits import AskLimits
from taskweaver.utils.asking import Asking
from taskweaver.utils.files import write_text
from taskweaver.utils.redact import redact_secrets
from taskweaver.utils.text import shorten

T = TypeVar("T")
Parse = Callable[[str], T]
FATAL = frozenset({"auth", "quota", "configuration", "not_found", "cancelled"})
"""Kinds of a `ModelError` after which no other question can be answered either."""
_RAW_CHARS = 20_000
_RESULT_CHARS = 8000
_OPERATIONS = "Memory operations"
_FORMS = ("Instructions", "Reply")
"""Sections with the form of the reply; they come last."""
TEXT: Mapping[str, Any] = {"type": "string"}
FLAG: Mapping[str, Any] = {"type": "boolean"}
_EMPTY: Mapping[str, Callable[[], Any]] = {"string": str, "boolean": bool, "array": list}
"""Values of fields that are missing in an answer, by their type."""
_READ_TITLE = "Memory Read Results"
_READ = "This is what your reads found. Now give your whole reply."
_MEMORY_ONLY = (
    "This is the first of two questions. Reply with the <memory_update> block alone; the answer"
    " itself is asked for next."
)


@contextmanager
def as_unusable(fatal: Collection[str] = FATAL) -> Iterator[None]:
    """Treat a failed call as an unusable reply, unless it is fatal: others can still be asked.

    Raises:
        ReplyUnusable: If the call failed.
        ModelError: If it failed in a way that is fatal.
    """
    try:
        yield
    except ModelError as error:
        if error.kind in fatal:
            raise
        raise ReplyUnusable(str(error)) from error


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """The memory of a node: its branch, and the log of the memory shown and of the operations.

    Keys, tags and kinds that are `left_out` are not shown, since other sections have them. Where a
    block `is_required`, each reply begins with one, and an object is asked for after it.
    """

    branch: BranchHandle
    log: MemoryPromptLog
    left_out: Collection[str] = ()
    is_required: bool = True


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Form of an answer, and the model that gives it.

    Without a JSON schema it is text. A reply must have the fields that are `needed`, by default the
    first one; others are empty where they are missing. An empty alias is the main model. Images are
    shown with the question.
    """

    schema: Mapping[str, Any] | None = None
    alias: str = ""
    images: Sequence[str] = ()
    needed: Collection[str] = ()

    def read(self, text: str) -> dict[str, Any]:
        """Return the object in a reply.

        Raises:
            ValueError: If it is not of the form.
        """
        schema = dict(self.schema or {})
        fields: Mapping[str, Any] = schema.get("properties", {})
        found = required_object(text, schema | {"required": self.needed or list(fields)[:1]})
        missing = (name for name in fields if found.get(name) is None)
        return found | {name: _EMPTY[fields[name]["type"]]() for name in missing}


def object_schema(**fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with these fields, and no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class NodeAgent:
    """The model of a node: its prompts, its replies, and its memory, if it has one.

    Prompts and replies are written to its folder; all questions have one system message.
    """

    api: LLMApi
    node_id: str
    folder: Path
    system: str
    memory: NodeMemory | None
    limits: AskLimits

    def ask(
        self,
        label: str,
        prompt: Mapping[str, Any],
        parse: Parse[T],
        *,
        hint: str,
        form: AnswerForm = AnswerForm(),
    ) -> T:
        """Ask for an answer in text, with a memory block where there is a memory.

        `parse` reads the answer, and raises a `TaskWeaverError` or ValueError with the problem. The
        label names the prompt's files; the hint is the kind of task the memory is rendered for.

        Raises:
            ReplyUnusable: If no reply could be used.
            ModelError: If the model cannot be asked.
        """
        turn = self._turn(label, hint)
        return _NodeAsking(self, label, _with_memory(prompt, turn), parse, turn, form).ask()

    def ask_structured(
        self,
        label: str,
        prompt: Mapping[str, Any],
        form: AnswerForm,
        introduction: str = "",
        *,
        hint: str,
    ) -> dict[str, Any]:
        """Ask for an object of a schema; where a memory block is required, for that first.

        Both questions show the memory, the second as the first left it, and the results of reads.
        An unusable block does not prevent the answer. Where a block may be left out, there is one
        question, and the reply may hold both. A section `Reply` of the prompt is kept.

        Raises:
            ReplyUnusable: If no reply could be used.
            ModelError: If the model cannot be asked.
        """
        schema = form.schema or {}
        example = json.dumps(_example(schema), ensure_ascii=False).replace(": true", ": true|false")
        has_block = self.memory is not None and not self.memory.is_required
        alone = "" if has_block else " and nothing else"
        reply = f"Reply with one JSON object{alone}, like {example}"
        shown = {"Reply": reply, **prompt}
        shown["Reply"] = shown.pop("Reply")

        text = AnswerForm(alias=form.alias, images=form.images)
        if has_block:
            shown["Introduction"] = introduction
            return self.ask(label, shown, form.read, hint=hint, form=text)
        if self.memory is not None:
            turn = self._turn(f"{label}_memory", hint)
            first = {**prompt, "Introduction": introduction, "Reply": _MEMORY_ONLY}
            sections = _with_memory(first, turn)
            with suppress(ReplyUnusable):
                _NodeAsking(self, f"{label}_memory", sections, str, turn, text).ask()
            shown = _with_memory(shown, self._turn(label, hint, is_relieved=True))
            del shown[_OPERATIONS]
            shown |= {title: sections[title] for title in (_READ_TITLE,) if title in sections}
        return _NodeAsking(self, label, shown, form.read, None, form).ask()

    def _turn(self, label: str, hint: str, *, is_relieved: bool = False) -> MemoryTurn | None:
        memory = self.memory
        if memory is None:
            return None
        return MemoryTurn(
            memory.branch,
            hint,
            node_id=self.node_id,
            log=memory.log,
            label=label,
            leave_out=memory.left_out,
            is_relieved=is_relieved,
        )

    def call(self, name: str, prompt: Mapping[str, Any], form: AnswerForm) -> str:
        """Return the reply to a prompt; both are written to the node's folder.

        Raises:
            ModelError: If the model cannot be asked.
        """
        save_prompt(self.folder, name, {"System": self.system, **prompt})
        messages: list[ChatMessage] = [
            format_chat_message("system", self.system),
            format_chat_message("user", to_markdown(prompt), form.images),
        ]
        reply = self.api.chat_completion(messages, json_schema=form.schema, llm_alias=form.alias)
        text = str(reply["content"])
        file = self.folder / f"{name}_reply.txt"
        write_text(file, redact_secrets(text), is_synced=False)
        return text


class _NodeAsking(Asking[str, T]):
    """A question whose results of reads and problems are added to its sections."""

    def __init__(
        self,
        agent: NodeAgent,
        label: str,
        sections: dict[str, Any],
        parse: Parse[T],
        turn: MemoryTurn | None,
        form: AnswerForm = AnswerForm(),
    ) -> None:
        self.attempts = agent.limits.attempts
        self._agent = agent
        self._label = label
        self._sections = sections
        self._parse = parse
        self._turn = turn
        self._form = form
        self._found: dict[str, Any] = {}
        self._reads = 0
        self._name = ""

    @property
    def _is_required(self) -> bool:
        memory = self._agent.memory
        return memory is not None and memory.is_required

    def call(self) -> str:
        """Ask with the sections as they are now."""
        self._name = f"{self._label}_attempt{self.failed + 1}"
        if self._form.schema is None:
            self._name += f"_round{self._reads}"
        if self._turn is not None:
            reads = self._agent.limits.read_rounds - self._reads
            self._sections[_OPERATIONS] = (
                instructions(is_required=True, reads=reads)
                if self._is_required
                else brief_instructions(reads=reads)
            )
        return self._agent.call(self._name, self._sections, self._form)

    def read(self, reply: str) -> T | None:
        """Parse a reply, then apply its memory block; None if the block reads and may do so.

        A block that is missing is asked for once; after that its lack does not prevent the answer.
        A reply that is refused leaves no memory, for the attempt it describes is never run.
        """
        if self._turn is None:
            return self._parse(_without_memory(reply))
        presence: Presence = "required" if self._is_required and not self.failed else "optional"
        found, is_reading = self._turn.look(reply, presence)
        if is_reading and self._reads < self._agent.limits.read_rounds:
            self._found |= self._turn.adopt(found, self._name)
            self._reads += 1
            self._sections[_READ_TITLE] = f"{_limited(self._found)}\n\n{_READ}"
            return None
        answer = self._parse(found.body)
        self._turn.adopt(found, self._name)
        return answer

    def feed_back(self, error: Exception, reply: str) -> None:
        """Add the problem and the reply to the sections."""
        block = "" if self._turn is None else " Its memory block was not applied: send that too."
        self._sections["Parsing Feedback"] = (
            f"Your last reply, below, could not be used: {_sentence(error)}\nCorrect that, and send"
            f" the whole reply again, in the form that is asked for.{block}\n"
            f"<<<RAW_RESPONSE_START>>>\n{shorten(reply, _RAW_CHARS)}\n<<<RAW_RESPONSE_END>>>"
        )

    def give_up(self, error: Exception, reply: str) -> T:  # noqa: ARG002 - it is in the folder
        """Raise the last problem."""
        asked = f", {self.failed} were asked for" if self._form.schema is None else ""
        raise ReplyUnusable(
            f"No reply to {self._label} could be used{asked}: {_sentence(error)}"
        ) from error


def _with_memory(prompt: Mapping[str, Any], turn: MemoryTurn | None) -> dict[str, Any]:
    """Return a prompt with the memory before the form of the reply, which stays its end."""
    sections = dict(prompt)
    if turn is None:
        return sections
    form = {title: sections.pop(title) for title in _FORMS if title in sections}
    memory = {"Memory": turn.shown.text or "Nothing is remembered yet.", _OPERATIONS: ""}
    return sections | memory | form


def _sentence(error: Exception) -> str:
    """Return a problem; those of memory blocks end without a full stop, which is added."""
    text = str(error)
    return f"{text.rstrip('.')}." if isinstance(error, BranchedMemoryError) else text


def _without_memory(text: str) -> str:
    try:
        return read_reply(text).body
    except BranchedMemoryError:
        return text  # a block that cannot be read; the answer may still be there


def _limited(results: Mapping[str, Any]) -> str:
    text = json.dumps(results, ensure_ascii=False, indent=1, default=str)
    return text if len(text) <= _RESULT_CHARS else f"{text[:_RESULT_CHARS]}\n... (cut)"


def _example(schema: Mapping[str, Any]) -> Any:
    """Return an example of an answer of a schema."""
    match schema.get("type"):
        case "object":
            return {name: _example(part) for name, part in schema["properties"].items()}
        case "array":
            return [_example(schema["items"])]
        case "boolean":
            return True
        case "number" | "integer":
            return 0
    return "..."
