"""Asks a model on behalf of a node: with its memory, and again where a reply cannot be used."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from taskweaver.errors import TaskWeaverError
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.json_text import read_object
from taskweaver.llm.types import ChatMessage, format_chat_message
from taskweaver.memory.branched.errors import BranchedMemoryError
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.protocol.blocks import Reply, read_reply
from taskweaver.memory.branched.protocol.injections import PromptLog
from taskweaver.memory.branched.protocol.protocol import check_updates, has_reads, instructions
from taskweaver.treesearch.agent.prompt_files import save_prompt, to_markdown
from taskweaver.treesearch.errors import PhasePlanError, ReplyUnusable
from taskweaver.treesearch.model.limits import AskLimits
from taskweaver.utils.files import write_text
from taskweaver.utils.redact import redact_secrets
from taskweaver.utils.text import shorten

T = TypeVar("T")
Parse = Callable[[str], T]
FATAL = frozenset({"auth", "quota", "configuration", "not_found", "cancelled"})
"""Kinds of a `ModelError` after which no other question can be answered either."""
_RAW_CHARS = 20_000
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "number": (int, float),
    "integer": (int,),
}
_RESULT_CHARS = 8000
_OPERATIONS = "Memory operations"
_FORMS = ("Instructions", "Reply")
"""Sections that say what the reply is like; they come last."""
_READ_TITLE = "Memory Read Results"
_READ = "This is what your reads found. Now give your whole reply."
_KEPT = (
    "Its memory block was applied: do not write the same again; <memory_update>{}</memory_update>"
    " is enough."
)
_MEMORY_ONLY = (
    "This is the first of two questions. Reply with the <memory_update> block alone; the answer"
    " itself is asked for next."
)


@contextmanager
def as_unusable(fatal: Collection[str] = FATAL) -> Iterator[None]:
    """Take a call that failed for a reply that cannot be used: other questions still can be asked.

    Args:
        fatal: Kinds of failure that are passed on.

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
    """Where a node's memory is.

    Attributes:
        branch: The node's branch.
        log: What was shown, and what came of the replies.
        left_out: What is not shown of it, since the prompts say it already.
    """

    branch: BranchHandle
    log: PromptLog
    left_out: Collection[str] = ()


class NodeAgent:
    """A node's way to the model.

    Attributes:
        memory: The node's memory; None without.
    """

    def __init__(
        self,
        api: LLMApi,
        node_id: str,
        folder: Path,
        system: str,
        memory: NodeMemory | None,
        limits: AskLimits,
    ) -> None:
        """Sit down.

        Args:
            api: The model.
            node_id: The node.
            folder: Folder of its prompts and replies.
            system: System message of all questions.
            memory: Its memory; None without.
            limits: How often the model is asked.
        """
        self.memory = memory
        self._api = api
        self._node_id = node_id
        self._folder = folder
        self._system = system
        self._limits = limits

    def ask(
        self,
        label: str,
        prompt: Mapping[str, Any],
        parse: Parse[T],
        *,
        hint: str,
    ) -> T:
        """Ask for an answer in text, after a memory block where there is a memory.

        Args:
            label: What the files of the prompt are called.
            prompt: The prompt.
            parse: Reads the answer; it raises a `TaskWeaverError` or ValueError that says what is
                wrong with it.
            hint: What the memory is rendered for.

        Raises:
            ReplyUnusable: If no reply could be used.
            ModelError: If the model cannot be asked.
        """
        shown = self._with_memory(prompt, hint, label)
        return self._converse(label, shown, parse, hint)

    def _converse(
        self,
        label: str,
        shown: dict[str, Any],
        parse: Parse[T],
        hint: str,
        alias: str = "",
        images: Sequence[str] = (),
    ) -> T:
        """Ask with the memory that is shown; what is read and what is wrong is added to it."""
        attempt, reads = 1, 0
        read: dict[str, Any] = {}
        while True:
            if self.memory is not None:
                shown[_OPERATIONS] = self._operations(reads)
            name = f"{label}_attempt{attempt}_round{reads}"
            text = self._call(name, shown, alias=alias, images=images)
            is_kept = False
            try:
                body, results = self._take_memory(text, name, hint, is_first=attempt == 1)
                is_kept = self.memory is not None
                if results and reads < self._limits.read_rounds:
                    reads += 1
                    read |= results
                    shown[_READ_TITLE] = f"{_limited(read)}\n\n{_READ}"
                    continue
                return parse(body)
            except (TaskWeaverError, ValueError) as error:
                if attempt >= self._limits.attempts:
                    raise ReplyUnusable(
                        f"No reply to {label} could be used, {attempt} were asked for: {error}"
                    ) from error
                attempt += 1
                shown["Parsing Feedback"] = _feedback(error, text, is_kept=is_kept)

    def ask_structured(  # noqa: PLR0913 - a question, its form, and who is asked
        self,
        label: str,
        prompt: Mapping[str, Any],
        schema: Mapping[str, Any],
        introduction: str = "",
        *,
        hint: str,
        alias: str = "",
        images: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Ask for an object of a schema; where there is a memory, for the memory block first.

        Both questions show the memory, the second as the first left it, and what was read. A block
        that cannot be had costs no answer.

        Raises:
            ReplyUnusable: If no reply could be used.
            ModelError: If the model cannot be asked.
        """
        form = json.dumps(_example(schema), ensure_ascii=False).replace(": true", ": true|false")
        reply = f"Reply with one JSON object and nothing else, like {form}"
        shown = {**prompt, "Reply": reply}
        if self.memory is not None:
            first = {**prompt, "Introduction": introduction, "Reply": _MEMORY_ONLY}
            shown = self._with_memory(first, hint, f"{label}_memory")
            with suppress(ReplyUnusable):
                self._converse(f"{label}_memory", shown, str, hint, alias, images)
            read = shown.get(_READ_TITLE)
            shown = self._with_memory({**prompt, "Reply": reply}, hint, label, has_room=True)
            del shown[_OPERATIONS]
            if read is not None:
                shown[_READ_TITLE] = read
        attempt = 1
        while True:
            name = f"{label}_attempt{attempt}"
            text = self._call(name, shown, schema=schema, alias=alias, images=images)
            try:
                return required_object(text, schema)
            except ValueError as error:
                if attempt >= self._limits.attempts:
                    raise ReplyUnusable(f"No reply to {label} could be used: {error}") from error
                attempt += 1
                shown["Parsing Feedback"] = _feedback(error, text)

    def _with_memory(
        self, prompt: Mapping[str, Any], hint: str, label: str, *, has_room: bool = False
    ) -> dict[str, Any]:
        """Return a prompt with the memory in it; the form of the reply stays the end of it."""
        shown = dict(prompt)
        if self.memory is None:
            return shown
        branch = self.memory.branch
        began = time.time()
        if not has_room:  # it was made for the first of two questions
            branch.relieve_if_needed(hint)
        rendered = branch.render(hint, leave_out=self.memory.left_out)
        branch.note_injection(rendered, hint)
        marks = {"node_id": self._node_id, "label": label, "task_hint": hint}
        budget = branch.config.budget(hint)
        self.memory.log.injection(rendered, began=began, budget_chars=budget, **marks)
        form = {title: shown.pop(title) for title in _FORMS if title in shown}
        memory = {"Memory": rendered.text or "Nothing is remembered yet."}
        return {**shown, **memory, _OPERATIONS: self._operations(0), **form}

    def _operations(self, reads: int) -> str:
        return instructions(is_required=True, reads=self._limits.read_rounds - reads)

    def _take_memory(
        self, text: str, name: str, hint: str, *, is_first: bool
    ) -> tuple[str, dict[str, Any]]:
        """Apply the memory block of a reply; return the rest, and what was read.

        A block that is missing is asked for once; after that its lack costs no answer.
        """
        if self.memory is None:
            return read_reply(text).body, {}
        reply: Reply = read_reply(text, "required" if is_first else "optional")
        updates, began = reply.updates or {}, time.time()
        try:
            checked = check_updates(updates)
            results = self.memory.branch.apply(updates, self._node_id, hint, attempt=name)
        except BranchedMemoryError as error:
            raise PhasePlanError("", str(error).rstrip(".")) from error
        marks = {"node_id": self._node_id, "label": name}
        self.memory.log.operations(updates, results, began=began, **marks)
        return reply.body, results if has_reads(checked) else {}

    def _call(
        self,
        name: str,
        prompt: Mapping[str, Any],
        *,
        schema: Mapping[str, Any] | None = None,
        alias: str = "",
        images: Sequence[str] = (),
    ) -> str:
        save_prompt(self._folder, name, {"System": self._system, **prompt})
        messages: list[ChatMessage] = [
            format_chat_message("system", self._system),
            format_chat_message("user", to_markdown(prompt), images),
        ]
        reply = self._api.chat_completion(messages, json_schema=schema, llm_alias=alias)
        text = str(reply["content"])
        write_text(self._folder / f"{name}_reply.txt", redact_secrets(text))
        return text


def _feedback(error: Exception, raw: str, *, is_kept: bool = False) -> str:
    kept = f"{_KEPT}\n" if is_kept else ""
    return (
        f"Your last reply, below, could not be used: {error}\nMend that, and send the whole reply"
        f" again, in the form that is asked for.\n{kept}<<<RAW_RESPONSE_START>>>\n"
        f"{shorten(raw, _RAW_CHARS)}\n<<<RAW_RESPONSE_END>>>"
    )


def _limited(results: Mapping[str, Any]) -> str:
    text = json.dumps(results, ensure_ascii=False, indent=1, default=str)
    return text if len(text) <= _RESULT_CHARS else f"{text[:_RESULT_CHARS]}\n... (cut)"


def _example(schema: Mapping[str, Any]) -> Any:
    """Return what an answer of a schema looks like."""
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


def required_object(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object in a reply; it must have what a schema requires, of the right type.

    Of several objects it is the first that has the required fields; memory blocks are passed over.

    Raises:
        ValueError: If there is none, or a field is missing or of another type.
    """
    found = read_object(_without_memory(text))
    wanted = list(schema.get("required", ()))
    value = found.value
    if any(name not in value for name in wanted):
        value = next((other for other in _objects(text) if all(n in other for n in wanted)), value)
    elif found.problem is not None:
        raise ValueError(found.problem)
    missing = [name for name in wanted if name not in value]
    if missing and found.problem is not None:
        raise ValueError(found.problem)
    if missing:
        has = f"; it has {', '.join(f'`{name}`' for name in value)}" if value else ""
        raise ValueError(f"{', '.join(f'`{name}`' for name in missing)} missing{has}")
    for name in wanted:
        kind = schema["properties"][name].get("type", "")
        if kind in _TYPES and not isinstance(value[name], _TYPES[kind]):
            raise ValueError(f"`{name}` must be of type {kind}")
    if not wanted and found.problem is not None:
        raise ValueError(found.problem)
    return value


def _without_memory(text: str) -> str:
    try:
        return read_reply(text).body
    except BranchedMemoryError:
        return text  # a block that cannot be read; the answer may still be there


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, the outer ones."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while (start := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
        else:
            yield value
