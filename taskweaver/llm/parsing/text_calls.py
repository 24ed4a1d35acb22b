"""Tool calls that a model wrote into its text, in the forms of the models that do so.

Bare JSON objects with a name and arguments, alone, in a list, in a fence or in ``<tool_call>``;
``<function=f><parameter=p>``; ``[f(p="...")]``; ``[TOOL_CALLS]f[ARGS]{...}``;
``functions.f:0{...}``; ``<|python_tag|>code``; ``to=functions.f ... {...}``; ``Action: f`` with its
``Action Input:``. Only calls of tools that were offered count: any other text is text, and so is a
call inside of code that the text shows.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from taskweaver.llm.types import ToolCall
from taskweaver.utils.parsing import literal_value, parse_expression

_MOST_CHARS = 1 << 20
_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"^```(?:json|tool_call|tool_code)?[ \t]*\n(.*?)^```[ \t]*$", re.M | re.S)
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(
    r"<parameter=([\w.-]+)>\n?(.*?)(?:\n?</parameter>|(?=<parameter=)|\Z)", re.DOTALL
)
_NAMED = re.compile(
    r"\[TOOL_CALLS\]\s*([\w.-]+)\s*(?:\[ARGS\])?\s*(?=\{)"
    r"|(?:^|\s)functions\.([\w-]+)(?::\d+)?\s*(?:<\|[^|>]*\|>)*\s*(?=\{)"
    r"|to=functions\.([\w-]+)[^{]{0,200}(?=\{)"
)
_PYTHON_TAG = re.compile(r"<\|python_tag\|>(.*?)(?:<\|e\w+\|>|\Z)", re.DOTALL)
_REACT = re.compile(
    r"^Action:[ \t]*`?([\w. -]+?)`?[ \t]*\n+Action[ _]Input:[ \t]*(.*?)"
    r"(?=^(?:Observation|Thought|Final Answer):|\Z)",
    re.MULTILINE | re.DOTALL,
)
_SHOWN = re.compile(r"^```(?!json|tool_c)\w+[^\n]*\n.*?(?:^```[ \t]*$|\Z)", re.M | re.S)
_NAMES = ("name", "action", "tool")
_ARGUMENTS = ("arguments", "parameters", "args", "action_input", "tool_input", "input")
_LISTED = re.compile(r"^\s*(?:\[TOOL_CALLS\])?\s*(?=[\[{])")
_PYTHONIC = re.compile(r"\A\s*\[?\s*(?:[\w.]+)\(.*\)\s*\]?\s*\Z", re.DOTALL)
_MARKS = re.compile(r"```\w*\s*\Z|<\|\w+\|>(?:commentary|analysis|final)?|\AThought:")
_DECODER = json.JSONDecoder(strict=False)


class WrittenCalls(NamedTuple):
    """Calls in a text.

    Attributes:
        calls: The calls.
        words: The words before them.
        is_shown: Whether they stand in a fence among words, where a text may only show them.
    """

    calls: tuple[ToolCall, ...]
    words: str
    is_shown: bool = False


class _Found(NamedTuple):
    start: int
    name: str
    arguments: Mapping[str, Any] | str


def text_calls(text: str, tools: Collection[str], run_tool: str = "") -> WrittenCalls | None:
    """Return the calls in a text; None if there are none of these tools. Never raises.

    Args:
        text: A whole reply.
        tools: Names of the tools that were offered.
        run_tool: The tool that ``<|python_tag|>`` and its code mean; empty for none.
    """
    if not tools or len(text) > _MOST_CHARS:
        return None
    shown = [(match.start(), match.end()) for match in _SHOWN.finditer(text)]
    for reader in (_tagged, _functions, _named, _react, _pythonic, _objects):
        found = [
            call
            for call in reader(text)
            if call.name in tools
            and not text[: call.start].endswith("`")
            and not any(start < call.start < end for start, end in shown)
        ]
        if found:
            return _written(text, found)
    match = _PYTHON_TAG.search(text)
    if match and run_tool and match[1].strip():
        return _written(text, [_Found(match.start(), run_tool, {"code": match[1].strip()})])
    return None


def _written(text: str, found: list[_Found]) -> WrittenCalls:
    calls = tuple(
        ToolCall(f"text{number:05d}", call.name, _as_json(call.arguments))
        for number, call in enumerate(found)
    )
    start = found[0].start
    words = _MARKS.sub("", text[:start]).strip()
    is_fenced = text.startswith("```", start)
    rest = _FENCED.sub("", text[start:], count=1) if is_fenced else ""
    return WrittenCalls(calls, words, is_fenced and bool(words or rest.strip()))


def _as_json(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _tagged(text: str) -> Iterator[_Found]:
    for match in _TAGGED.finditer(text):
        for call in (*_functions(match[1]), *_values(match[1].strip())):
            yield call._replace(start=match.start())


def _functions(text: str) -> Iterator[_Found]:
    for match in _FUNCTION.finditer(text):
        given: dict[str, str] = dict(_PARAMETER.findall(match[2]))
        yield _Found(match.start(), _short(match[1]), given)


def _named(text: str) -> Iterator[_Found]:
    for match in _NAMED.finditer(text):
        value = _json_at(text, match.end())
        if isinstance(value, dict):
            yield _Found(match.start(), match[1] or match[2] or match[3], value)


def _react(text: str) -> Iterator[_Found]:
    for match in _REACT.finditer(text):
        value = _json_at(match[2], 0)
        written = match[2].strip()
        yield _Found(match.start(), _short(match[1]), value if isinstance(value, dict) else written)


def _objects(text: str) -> Iterator[_Found]:
    """Yield the calls of text that is JSON, or whose first fence is."""
    fence = _FENCED.search(text)
    if fence:
        yield from (call._replace(start=fence.start()) for call in _values(fence[1].strip()))
    else:
        match = _LISTED.match(text)
        yield from _values(text[match.end() :]) if match else ()


def _values(text: str) -> Iterator[_Found]:
    """Yield the calls of JSON values that follow each other."""
    at = 0
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield from _calls_in(value)
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,;"))


def _calls_in(value: Any) -> Iterator[_Found]:
    if isinstance(value, list):
        for item in value:
            yield from _calls_in(item)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("tool_calls"), list):
        yield from _calls_in(value["tool_calls"])
    inner = value.get("function")
    call = inner if isinstance(inner, dict) else value
    named = next(filter(None, (call.get(key) for key in _NAMES)), None)
    name = named or (inner if isinstance(inner, str) else None)
    arguments = next((call[key] for key in _ARGUMENTS if key in call), None)
    if isinstance(name, str) and isinstance(arguments, dict | str):
        yield _Found(0, _short(name), arguments)


def _pythonic(text: str) -> Iterator[_Found]:
    """Yield calls written as Python with literal arguments; nothing is evaluated."""
    if not _PYTHONIC.match(text):
        return
    try:
        body = parse_expression(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for call in body.elts if isinstance(body, ast.List) else [body]:
        if isinstance(call, ast.Call) and not call.args:
            given = {one.arg: one.value for one in call.keywords if one.arg is not None}
            if all(isinstance(value, ast.Constant | ast.List) for value in given.values()):
                arguments = {name: _literal(value) for name, value in given.items()}
                yield _Found(0, _short(ast.unparse(call.func)), arguments)


def _literal(node: ast.expr) -> Any:
    try:
        return literal_value(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _json_at(text: str, at: int) -> Any:
    try:
        return _DECODER.raw_decode(text, at)[0]
    except (ValueError, RecursionError):
        return None


def _short(name: str) -> str:
    return name.rpartition(".")[2].strip().replace(" ", "_").lower()
