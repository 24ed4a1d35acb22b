"""The fields of a JSON reply, however its author wrote the object around them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from taskweaver.llm.parsing.json_text import ParsedReply, closed, parse_reply
from taskweaver.llm.parsing.text_calls import QUOTES
from taskweaver.llm.types import Form
from taskweaver.role.forms.alternatives import ALTERNATIVES
from taskweaver.role.forms.memory_calls import OPERATIONS
from taskweaver.role.forms.values import folded
from taskweaver.utils.parsing import compiles, json_value

FIELDS = {
    "thought", "plan_reasoning", "plan", "current_plan_step", "init_plan", "stop", "send_to",
    "message", "answer", "code", "reply_type", "reply_content",
}  # fmt: skip
_NAMES = {folded(name): name for name in (*FIELDS, ALTERNATIVES, *OPERATIONS, "is_last")}
_KEY = re.compile(rf'"({"|".join(_NAMES.values())})"\s*:\s*"')
_HEAD = re.compile(r'\s*(?:```\w*\s*)?\{\s*(?:"response"\s*:\s*\{\s*)?')
_VALUE = re.compile(r'(.*)"\s*,\s*', re.DOTALL)
_LAST_VALUE = re.compile(r'(.*)"\s*\}\s*\}?\s*(?:```)?\s*', re.DOTALL)
_RAW_QUOTE = re.compile(r'(?P<escape>\\.)|"', re.DOTALL)
_NAMED = re.compile(rf"\b(?:response|{'|'.join(FIELDS)})\b\W{{1,9}}?[:=]", re.IGNORECASE)
_BRACE = re.compile(r"^[ \t]*\{", re.MULTILINE)
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n.*?(?:^```[ \t]*$|\Z)", re.M | re.S)
_JSON_INFOS = {"", "json", "json5", "jsonc"}


def read_fields(text: str, *, is_cut: bool) -> ParsedReply:
    """Read the fields of a reply, under the names that were offered; never raises.

    Names may differ in case and blanks; the object may lie in another wrapper than ``response``, or
    be the original's list of elements; brackets may be missing at the end, and backslashes before
    quotes.

    Args:
        text: The reply.
        is_cut: Whether it ended at the length limit; then nothing is completed.
    """
    parsed = parse_reply(text)
    if parsed.problem is not None and not is_cut:
        whole = parse_reply(closed(text))
        parsed = whole if whole.problem is None else _between_names(parsed)
    return replace(parsed, fields=_named(parsed.fields))


def is_reply(text: str, form: Form) -> bool:
    """Return whether an object in a text is the reply, not one that the text shows.

    Where JSON was asked for, words may stand around it; else it is all of the text.
    """
    inner = _FENCE.fullmatch(text.strip())
    if text.lstrip().startswith("{") or (inner and inner["info"].strip().lower() in _JSON_INFOS):
        return True
    if form != "json":
        return False
    brace = _BRACE.search(text)
    at = brace.end() - 1 if brace else text.find("{")
    return at >= 0 and not text[:at].rstrip(" ").endswith(QUOTES) and not _is_in_code(text, at)


def looks_like_fields(text: str) -> bool:
    """Return whether a text that cannot be read was meant to be an object with such fields."""
    return text.lstrip("`jsonJSON \n").startswith("{") and bool(_NAMED.search(text))


def _is_in_code(text: str, at: int) -> bool:
    return any(
        match.start() < at < match.end() and match["info"].strip().lower() not in _JSON_INFOS
        for match in _FENCE.finditer(text)
    )


def _named(fields: Mapping[str, str]) -> dict[str, str]:
    """Return fields under their own names, taken out of a wrapper or a list."""
    elements = _object_of(fields.get("response", ""))
    if isinstance(elements, list):
        fields = _of_elements(elements) or fields
    elif len(fields) == 1:
        inner = _object_of(next(iter(fields.values())))
        if isinstance(inner, dict) and {folded(str(key)) for key in inner} & _NAMES.keys():
            fields = parse_reply(json.dumps(inner)).fields
    found = {key: text for key, text in fields.items() if key in _NAMES.values()}
    for key, text in fields.items():
        found.setdefault(_NAMES.get(folded(key), key), text)
    return found


def _of_elements(elements: list[Any]) -> dict[str, str]:
    """Return the fields of the original's list of elements, each with a type and a content."""
    found: dict[str, str] = {}
    for item in elements:
        if not isinstance(item, dict) or not isinstance(item.get("content"), str):
            return {}
        kind = str(item.get("type", ""))
        if kind in {"python", "text"}:
            found |= {"reply_type": kind, "reply_content": item["content"]}
        else:
            found[kind] = item["content"]
    return found


def _object_of(text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _between_names(parsed: ParsedReply) -> ParsedReply:
    """Return a reply read by the names of its fields, where quotes in its texts are not escaped.

    The reply stays unreadable where a name occurs twice, something stands between two fields, or
    the code between two names is no Python.
    """
    keys = list(_KEY.finditer(parsed.raw))
    names = [key[1] for key in keys]
    if not keys or len({*names}) < len(names) or not _HEAD.fullmatch(parsed.raw[: keys[0].start()]):
        return parsed
    fields = {}
    for key, following in zip(keys, [*keys[1:], None], strict=True):
        end = following.start() if following else len(parsed.raw)
        pattern = _VALUE if following else _LAST_VALUE
        match = pattern.fullmatch(parsed.raw, key.end(), end)
        text = _unescaped(match[1]) if match else None
        if text is None or (key[1] in {"code", "reply_content"} and not compiles(text)):
            return parsed
        fields[key[1]] = text
    return ParsedReply(fields, None, parsed.raw)


def _unescaped(text: str) -> str | None:
    quoted = _RAW_QUOTE.sub(lambda match: match["escape"] or '\\"', text)
    found: str | None = json_value(f'"{quoted}"')
    return found
