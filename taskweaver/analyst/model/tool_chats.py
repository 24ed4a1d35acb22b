"""Chats with tools, as the offline analyst reads and answers them: as if they were JSON replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.analyst.model.conversation import code_in, has_run, section
from taskweaver.analyst.model.replies import REMEMBER, as_code_writer, as_planner, failed
from taskweaver.llm.parsing.call_pieces import id_seed, made_id
from taskweaver.llm.types import ChatMessage, ModelRequest, ModelTool, ToolCall
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
