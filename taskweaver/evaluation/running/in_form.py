"""Recorded replies in the form in force: calls of tools, JSON, or text with fences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from taskweaver.evaluation.cases.case import RecordedCall, RecordedReply
from taskweaver.llm.types import ModelRequest
from taskweaver.utils.text import fenced

_OPERATIONS = {"remember": "text", "forget": "text", "recall": "query"}


def in_form(reply: RecordedReply, request: ModelRequest) -> str | dict[str, Any]:
    """Return a reply as a model writes it in the form that a request asks for.

    Only replies that are recorded as fields can be written in each form; others stay.
    """
    if reply.calls:
        return _message(reply.text, reply.calls)
    if reply.fields is None:
        return reply.text
    if request.tools:
        return _as_calls(reply.fields, {tool.name for tool in request.tools})
    if request.schema is None:
        return _as_fences(reply.fields)
    return json.dumps({"response": reply.fields}, ensure_ascii=False)


def _as_calls(fields: Mapping[str, Any], offered: set[str]) -> dict[str, Any]:
    text, code = _words(fields), _code(fields)
    calls = [
        _call(name, **{argument: fields[name]})
        for name, argument in _OPERATIONS.items()
        if fields.get(name)
    ]
    if fields.get("plan"):
        calls.append(_call("set_plan", steps=str(fields["plan"]).splitlines()))
    if code:
        run = next((name for name in offered if name.startswith("run_")), "run_python")
        calls.append(_call(run, intent=text, code=code))
    elif _is_order(fields):
        calls.append(_call("ask", role=fields["send_to"], order=text))
    is_answer = not code and not _is_order(fields)
    return _message(text if is_answer else str(fields.get("thought", "")), tuple(calls))


def _as_fences(fields: Mapping[str, Any]) -> str:
    text, code = _words(fields), _code(fields)
    parts = [str(fields.get("thought", ""))]
    named = [name for name in ("plan", *_OPERATIONS) if fields.get(name)]
    parts += [fenced(str(fields[name]), name) for name in named]
    if code:
        parts += [text, fenced(code, "bash" if fields.get("reply_type") == "bash" else "python")]
    else:
        # A block of code would run.
        shown = text.replace("```python", "```text")
        parts.append(fenced(text, f"ask {fields['send_to']}") if _is_order(fields) else shown)
    return "\n\n".join(filter(None, parts))


def _is_order(fields: Mapping[str, Any]) -> bool:
    return bool(fields.get("send_to", "User") != "User")


def _words(fields: Mapping[str, Any]) -> str:
    is_text = fields.get("reply_type") == "text"
    return str(fields.get("reply_content" if is_text else "message", ""))


def _code(fields: Mapping[str, Any]) -> str:
    is_cell = fields.get("reply_type") in ("python", "bash")
    return str(fields.get("code") or (fields.get("reply_content", "") if is_cell else ""))


def _call(name: str, **arguments: object) -> RecordedCall:
    return RecordedCall(name, json.dumps(arguments, ensure_ascii=False))


def _message(text: str, calls: tuple[RecordedCall, ...]) -> dict[str, Any]:
    return {
        "content": text,
        "tool_calls": [
            {"function": {"name": call.name, "arguments": call.arguments}} for call in calls
        ],
    }
