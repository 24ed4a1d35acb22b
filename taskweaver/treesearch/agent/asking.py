"""Questions of a search to a model: with a memory, and again after an unusable reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.json_text import required_object
from taskweaver.llm.types import ChatMessage, format_chat_message
from taskweaver.memory.branched.errors import BranchedMemoryError
from taskweaver.memory.branched.protocol.blocks import read_reply
from taskweaver.memory.branched.protocol.protocol import brief_instructions, instructions
from taskweaver.memory.branched.rounds import NodeMemory
from taskweaver.role.asking import Again, ask
from taskweaver.treesearch.agent.prompt_files import PromptFiles, save_prompt, to_markdown
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.model.limits import AskLimits
from taskweaver.utils.files import write_text
from taskweaver.utils.redact import redact_secrets
from taskweaver.utils.text import shorten

T = TypeVar("T")
FATAL = frozenset({"auth", "quota", "configuration", "not_found", "cancelled"})
"""Kinds of a `ModelError` after which no other question can be answered either."""
_RAW_CHARS = 20_000
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


def object_schema(**fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with these fields, and no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A question to a model.

    Attributes:
        label: Name of the files of its prompts and replies.
        text: Name of the text that introduces it, below ``prompts/``.
        sections: The material, then the form of the reply, by title, in order.
        read: Returns the answer that a text says, or an object where there is a schema; raises a
            `TaskWeaverError` or ValueError with the problem.
        model: Alias of the model; empty for the main one.
        hint: Kind of task that the memory is rendered for; empty for the label.
        schema: JSON schema of the object that is asked for; None asks for a text.
        needed: Fields that the object must have, by default the first one; others are empty where
            they are missing.
        images: Pictures that are shown.
        fatal: Kinds of a `ModelError` that are passed on, and no unusable reply; None for all.
    """

    label: str
    text: str
    sections: Mapping[str, Any]
    read: Callable[[Any], T]
    model: str = ""
    hint: str = ""
    schema: Mapping[str, Any] | None = None
    needed: Collection[str] = ()
    images: Sequence[str] = ()
    fatal: Collection[str] | None = FATAL

    def read_object(self, text: str) -> T:
        """Return the answer of a reply that holds the object.

        Raises:
            ValueError: If it is not of the form.
        """
        schema = dict(self.schema or {})
        fields: Mapping[str, Any] = schema.get("properties", {})
        found = required_object(text, schema | {"required": self.needed or list(fields)[:1]})
        missing = (name for name in fields if found.get(name) is None)
        return self.read(found | {name: _EMPTY[fields[name]["type"]]() for name in missing})


@dataclass(frozen=True, slots=True)
class SearchAgent:
    """Asks a model on behalf of a node, or of the run, with its memory, if there is one.

    Prompts and replies are written to its folder; all questions have one system message.
    """

    api: LLMApi
    prompts: PromptFiles
    folder: Path
    limits: AskLimits
    memory: NodeMemory | None

    def ask(self, question: Question[T]) -> T:
        """Return the answer to a question.

        Where a memory block is required, an object is asked for after it, in a second question:
        both show the memory, the second as the first left it, and the results of reads. An
        unusable block does not prevent the answer. Else there is one question, and the reply may
        hold both.

        Raises:
            ReplyUnusable: If no reply could be used.
            ModelError: If the model cannot be asked.
        """
        try:
            return self._answer(question)
        except ModelError as error:
            if question.fatal is None or error.kind in question.fatal:
                raise
            raise ReplyUnusable(str(error)) from error

    def _answer(self, question: Question[T]) -> T:
        memory, schema = self.memory, question.schema
        if schema is None:
            return self._usable(question, self._sections(question), question.read, memory)
        example = json.dumps(_example(schema), ensure_ascii=False).replace(": true", ": true|false")
        is_whole = memory is not None and not memory.is_required
        alone = "" if is_whole else " and nothing else"
        reply = f"Reply with one JSON object{alone}, like {example}"
        sections = dict(question.sections)
        sections["Reply"] = sections.pop("Reply", reply)
        whole = replace(question, sections=sections)
        if memory is None or is_whole:
            text = replace(whole, schema=None) if is_whole else whole
            return self._usable(text, self._sections(whole), whole.read_object, memory)
        first = replace(
            question,
            label=f"{question.label}_memory",
            hint=question.hint or question.label,
            sections={**question.sections, "Reply": _MEMORY_ONLY},
            schema=None,
        )
        asked = self._sections(first)
        with suppress(ReplyUnusable):
            self._usable(first, asked, str, memory)
        shown = self._sections(whole, is_second=True)
        shown |= {title: asked[title] for title in (_READ_TITLE,) if title in asked}
        return self._usable(whole, shown, whole.read_object, None)

    def _sections(self, question: Question[T], *, is_second: bool = False) -> dict[str, Any]:
        """Return a prompt with the memory before the form of the reply, which stays its end.

        The second of two questions has no operations on the memory.
        """
        memory, is_first = self.memory, not is_second
        introduction = self.prompts.text(question.text, with_memory=bool(memory) and is_first)
        sections = {"Introduction": introduction, **question.sections}
        if memory is None:
            return sections
        form = {title: sections.pop(title) for title in _FORMS if title in sections}
        hint = question.hint or question.label
        shown = memory.shown(hint, question.label, relieves=is_first).text
        sections["Memory"] = shown or "Nothing is remembered yet."
        return sections | ({_OPERATIONS: ""} if is_first else {}) | form

    def _usable(
        self,
        question: Question[Any],
        sections: dict[str, Any],
        read: Callable[[str], T],
        memory: NodeMemory | None,
    ) -> T:
        """Ask until a reply can be used; results of reads and problems join the sections.

        A block that is missing is asked for once; after that its lack does not prevent the answer.
        A reply that is refused leaves no memory, for the attempt it describes is never run.
        """
        hint, is_text = question.hint or question.label, question.schema is None
        is_required = memory is not None and memory.is_required
        operations = partial(instructions, is_required=True) if is_required else brief_instructions
        found: dict[str, Any] = {}
        reads, number, name = 0, 1, ""

        def send() -> str:
            nonlocal name
            name = f"{question.label}_attempt{number}{f'_round{reads}' if is_text else ''}"
            if memory is not None:
                sections[_OPERATIONS] = operations(reads=self.limits.read_rounds - reads)
            return self._reply(name, sections, question)

        def take(reply: str) -> T | Again:
            nonlocal reads
            if memory is None:
                return read(_without_memory(reply))
            seen, is_reading = memory.look(
                reply, "required" if is_required and number == 1 else "optional"
            )
            if is_reading and reads < self.limits.read_rounds:
                found.update(memory.adopt(seen, hint, name))
                reads += 1
                most = memory.branch.config.section_budgets["results"]
                sections[_READ_TITLE] = f"{_limited(found, most)}\n\n{_READ}"
                return Again.AGAIN
            answer = read(seen.body)
            memory.adopt(seen, hint, name)
            return answer

        def refuse(error: Exception, reply: str, failed: int) -> Again:
            nonlocal number
            number, problem = failed + 1, _sentence(error)
            if failed >= self.limits.attempts:
                asked = f", {failed} were asked for" if is_text else ""
                problem = f"No reply to {question.label} could be used{asked}: {problem}"
                raise ReplyUnusable(problem) from error
            block = "" if memory is None else " Its memory block was not applied: send that too."
            sections["Parsing Feedback"] = (
                f"Your last reply, below, could not be used: {problem}\nCorrect that, and send"
                f" the whole reply again, in the form that is asked for.{block}\n"
                f"<<<RAW_RESPONSE_START>>>\n{shorten(reply, _RAW_CHARS)}\n<<<RAW_RESPONSE_END>>>"
            )
            return Again.AGAIN

        return ask(send, take, refuse)

    def _reply(self, name: str, sections: Mapping[str, Any], question: Question[Any]) -> str:
        """Return the reply to a prompt; both are written to the folder."""
        system = self.prompts.text("core/system")
        save_prompt(self.folder, name, {"System": system, **sections})
        messages: list[ChatMessage] = [
            format_chat_message("system", system),
            format_chat_message("user", to_markdown(sections), question.images),
        ]
        schema, alias = question.schema, question.model
        text = str(
            self.api.chat_completion(messages, json_schema=schema, llm_alias=alias)["content"]
        )
        write_text(self.folder / f"{name}_reply.txt", redact_secrets(text), is_synced=False)
        return text


def _sentence(error: Exception) -> str:
    """Return a problem; those of memory blocks end without a full stop, which is added."""
    text = str(error)
    return f"{text.rstrip('.')}." if isinstance(error, BranchedMemoryError) else text


def _without_memory(text: str) -> str:
    try:
        return read_reply(text).body
    except BranchedMemoryError:
        return text  # a block that cannot be read; the answer may still be there


def _limited(results: Mapping[str, Any], max_chars: int) -> str:
    text = json.dumps(results, ensure_ascii=False, indent=1, default=str)
    return text if len(text) <= max_chars else f"{text[:max_chars]}\n... (cut)"


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
