"""The offline analyst as a completion service; chats with tools are read as JSON replies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taskweaver.analyst.model.conversation import code_in, has_run, section
from taskweaver.analyst.model.refusals import HELP, ONLY_PYTHON
from taskweaver.analyst.model.replies import (
    REMEMBER,
    as_code_writer,
    as_planner,
    failed,
    named_image,
    summary,
)
from taskweaver.analyst.reader import first_questions
from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.call_pieces import id_seed, made_id
from taskweaver.llm.types import (
    ChatMessage,
    Chunk,
    FinishReason,
    ModelRequest,
    ModelTool,
    ToolCall,
    Usage,
)
from taskweaver.memory.suggestions import Suggestion
from taskweaver.tables.files.profile import FileInfo, TableProfile, World
from taskweaver.utils.markup.quoting import quoted
from taskweaver.utils.text import fenced

_RUN, _PLAN, _ASK = "run_python", "set_plan", "ask"
_RUNNER = "CodeInterpreter"
_PLANNED_STEPS = 3
_START = "Let's start the new conversation!"
_TITLE = re.compile(
    r"## (?:Summary of earlier rounds|Files|Variables|Memory)|### Kept by the program"
)
_VARIABLES = "\n\n### Variables\n"

Reply = tuple[str, tuple[ToolCall, ...]]


def reply_with_tools(request: ModelRequest) -> Reply | None:
    """Return the words and calls of a reply to a chat with tools; None where none is for Python."""
    offered = {tool.name: tool for tool in request.tools}
    if _PLAN in offered:
        return _as_leader(request, offered)
    return _as_author(request, offered[_RUN]) if _RUN in offered else None


def _as_leader(request: ModelRequest, offered: Mapping[str, ModelTool]) -> Reply:
    workers = [_RUNNER] if _RUN in offered else []
    if _ASK in offered:
        workers += offered[_ASK].parameters["properties"]["role"]["enum"]
    workers = list(dict.fromkeys([*workers, "User"]))
    fields = as_planner(_as_json(request.messages), workers, keeps_facts=REMEMBER in offered)
    wanted: list[tuple[str, Mapping[str, object]]] = []
    if REMEMBER in fields:
        wanted.append((REMEMBER, {"text": fields[REMEMBER]}))
    role, order = fields["send_to"], fields["message"]
    if role == "User":
        return order, _calls(request, wanted)
    steps, code = fields["plan"].splitlines(), code_in(order)
    if len(steps) >= _PLANNED_STEPS:
        wanted.append((_PLAN, {"steps": steps}))
    if code and role == _RUNNER and _RUN in offered:
        wanted.append((_RUN, {"intent": order.partition("\n")[0], "code": code}))
    else:
        wanted.append((_ASK, {"role": role, "order": order}))
    return "", _calls(request, wanted)


def _as_author(request: ModelRequest, tool: ModelTool) -> Reply:
    newest = request.messages[-1]
    if newest["role"] == "tool":  # the outcome answers the order
        outcome = str(newest["content"])
        report = outcome[: outcome.rfind("```") + 3]  # without the request to correct the cell
        is_error = bool(section(report, "Error")) and not has_run(report)
        words = failed(report)["reply_content"] if is_error else outcome
        return words.partition(_VARIABLES)[0], ()
    fields = as_code_writer(request.messages)
    if fields["reply_type"] == "text":
        return fields["reply_content"], ()
    last = {"is_last": True} if "is_last" in tool.parameters["properties"] else {}
    arguments = {"intent": fields["thought"], "code": fields["reply_content"], **last}
    return "", _calls(request, [(_RUN, arguments)])


def _calls(
    request: ModelRequest, wanted: Sequence[tuple[str, Mapping[str, object]]]
) -> tuple[ToolCall, ...]:
    seed = id_seed(request.messages)
    return tuple(
        ToolCall(made_id(seed, at), name, json.dumps(arguments, ensure_ascii=False))
        for at, (name, arguments) in enumerate(wanted)
    )


def _as_json(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages of a chat with tools as those of one with JSON replies."""
    roles: dict[str, str] = {}
    found: list[ChatMessage] = []
    for message in messages:
        content = str(message["content"] or "")
        if message["role"] == "user":
            head, words = _parted(content)
            text = "\n\n".join(filter(None, [head, _incoming("User", words)]))
            found.append({"role": "user", "content": text})
        elif message["role"] == "tool":
            role = roles.get(message["tool_call_id"], "")
            if role:
                found.append({"role": "user", "content": _incoming(role, content)})
        elif message["role"] == "assistant":
            reply, given = _as_reply(message, content)
            roles |= given
            found.append({"role": "assistant", "content": json.dumps({"response": reply})})
        else:
            found.append(message)
    return found


def _as_reply(message: ChatMessage, content: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return a reply as fields, and the roles that answer its calls by their ids."""
    fields, roles = {"send_to": "User", "message": content}, {}
    for call in message.get("tool_calls", ()):
        name, given = call["function"]["name"], _arguments(call)
        if name == _PLAN:
            fields["plan"] = "\n".join(map(str, given.get("steps", ())))
        elif name == _RUN:
            code = fenced(str(given.get("code", "")), "python")
            fields |= {"send_to": _RUNNER, "message": f"{given.get('intent', '')}\n{code}"}
            roles[call["id"]] = _RUNNER
        elif name == _ASK:
            role = str(given.get("role", ""))
            fields |= {"send_to": role, "message": str(given.get("order", ""))}
            roles[call["id"]] = role
    return fields, roles


def _arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        value = json.loads(call["function"]["arguments"])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _incoming(sender: str, text: str) -> str:
    return f"From: {sender}\nMessage: {quoted(text)}"


def _parted(text: str) -> tuple[str, str]:
    """Return the situation before a request, and the request.

    The situation is made of sections; that of a summary may have several paragraphs, and ends with
    the program's part or before another section.
    """
    paragraphs = text.split("\n\n")
    last = len(paragraphs) - 1
    begins_with_head = paragraphs[0] == _START or _TITLE.match(paragraphs[0])
    at = 0
    while begins_with_head and at < last:
        titles = [n for n in range(at, last) if _TITLE.match(paragraphs[n])]
        is_summary = paragraphs[at].startswith("## Summary")
        if is_summary and len(titles) > 1:
            at = titles[1]
        elif paragraphs[at] == _START or _TITLE.match(paragraphs[at]):
            at += 1
        else:
            break
    return "\n\n".join(paragraphs[:at]), "\n\n".join(paragraphs[at:])


_PIECE = re.compile(r"\S+\s*|\s+")
_WORDS_PER_CHUNK = 6
_MOST_TABLES = 20


class OfflineService:
    """Answers by rules, from the prompt alone."""

    model = "builtin/offline"
    takes_corrections = False

    def stream(self, request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request a few words at a time.

        Raises:
            ModelError: Of kind ``cancelled``; of ``bad_request`` when there are images to look at.
        """
        if any(isinstance(message["content"], list) for message in request.messages):
            detail = "the built-in offline analyst reads texts, and sees no images."
            raise ModelError("bad_request", detail, self.model, "Use a real model.")
        if request.tools:
            text, calls = reply_with_tools(request) or (ONLY_PYTHON, ())
        else:
            text, calls = _reply(request), ()
        words = _PIECE.findall(text)
        for at in range(0, len(words), _WORDS_PER_CHUNK):
            if request.cancel.cancelled:
                raise ModelError("cancelled", "the call was given up", self.model)
            yield Chunk("".join(words[at : at + _WORDS_PER_CHUNK]))
        finish: FinishReason = "tool_calls" if calls else "stop"
        # There is no model that reads tokens.
        yield Chunk(finish=finish, usage=Usage(calls=1), calls=calls)

    def first_questions(
        self, tables: Sequence[TableProfile], others: Sequence[str] = ()
    ) -> tuple[Suggestion, ...]:
        """Return questions about the first tables of a file that stands beside `others`."""
        names = (tables[0].id.file, *others)
        world = World(tuple(map(FileInfo, names)), {table.id: table for table in tables})
        telling = max(tables[:_MOST_TABLES], key=lambda table: min(table.rows, 2))
        return first_questions(telling.id, world)

    def close(self) -> None:
        """Release nothing: there is nothing."""


def _reply(request: ModelRequest) -> str:
    properties = _properties(request.schema)
    if "plan" in properties:
        recipients = properties.get("send_to", {}).get("enum", ["User"])
        fields = as_planner(request.messages, recipients, keeps_facts=REMEMBER in properties)
        return json.dumps({"response": fields}, ensure_ascii=False)
    cell = properties.get("code", {}).get("description", "python")
    if cell != "python" or "python" not in properties.get("reply_type", {}).get("enum", ["python"]):
        fields = {"thought": "", "reply_type": "text", "reply_content": ONLY_PYTHON}
        return json.dumps({"response": fields})
    if "reply_type" in properties or "code" in properties:
        return json.dumps({"response": as_code_writer(request.messages)}, ensure_ascii=False)
    if "image_url" in properties:
        name = named_image(str(request.messages[-1]["content"]))
        return json.dumps({"response": {"image_url": name}}, ensure_ascii=False)
    if len(request.messages) > 1 and request.messages[0]["role"] == "system":
        return summary(str(request.messages[-1]["content"]))
    return HELP


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    response = (schema or {}).get("properties", {}).get("response", {})
    properties: Mapping[str, Any] = response.get("properties", {})
    return properties
