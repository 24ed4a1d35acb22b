"""Tool calls that a model wrote into the text, in the forms of the models that do so.

JSON objects with a name and arguments, alone, in a list, in a fence, behind a tag or a special
token; the name of a tool behind one of these, with arguments as JSON or as tagged parameters;
``[f(p="...")]``, alone or in a ``tool_code`` fence; code behind ``<|python_tag|>``; ``Action: f``
with its ``Action Input:``. Only calls of tools that were offered count: any other text is text, and
so is a call inside of code that the text shows.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from taskweaver.llm.types import ToolCall
from taskweaver.utils.parsing import compiles, literal_value, parse

QUOTES = ("`", '"', "'", "\N{LEFT DOUBLE QUOTATION MARK}", "\n>")
"""Ends of a text that quotes what follows."""

_MOST_CHARS = 1 << 20
_WIDE = "\N{FULLWIDTH VERTICAL LINE}"
_BAR = f"[|{_WIDE}]"
_TOKEN = rf"<{_BAR}[^<>\n]{{1,40}}{_BAR}>"
_OPENING = rf"<[\w:]*(?:tool|function)_calls?>|<(?:function=|invoke name=)|\[TOOL_CALLS\]|{_TOKEN}"
_FENCE = r"^```(?:json|tool_\w+)?[ \t]*\n"
_VALUES = re.compile(rf"(?:{_OPENING}|{_FENCE}|\A)\s*(?=[\[{{])", re.MULTILINE)
_NAMED = (
    rf"(?:(?:{_OPENING}|\bto=)[\s\"']*(?:functions\.)?|(?:^|(?<=\s))functions\.)(NAMES)(?::\d+)?"
    rf"(?![\w.-])(?:[\s\"'>]|\[ARGS\]|json\b|commentary\b|```|{_TOKEN})*"
)
_PARAMETER = re.compile(
    r"\s*(?:<parameter(?:=| name=)[\"']?([\w.-]+)[^>\n]*>\n?(.*?)"
    r"(?:\n?</parameter>|(?=<parameter|</)|\Z)"
    r"|<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>\n?(.*?)(?:\n?</arg_value>|\Z))",
    re.DOTALL,
)
_PROGRAM = re.compile(
    rf"^(?:<\|python_tag\|>|```tool_code[ \t]*\n)(.*?)(?:^```[ \t]*$|{_TOKEN}|\Z)", re.M | re.S
)
_REACT = re.compile(
    r"^Action:[ \t]*`?([\w. -]+?)`?[ \t]*\n+Action[ _]Input:[ \t]*(.*?)"
    r"(?=^(?:Observation|Thought|Final Answer):|\Z)",
    re.MULTILINE | re.DOTALL,
)
_SHOWN = re.compile(r"^```(?!json|tool_)\w+[^\n]*\n.*?(?:^```[ \t]*$|\Z)", re.M | re.S)
_CLOSINGS = re.compile(rf"(?:[\s\]}},;`]|</[\w:]+>|{_TOKEN}|assistant\b)*")
_OPENED = re.compile(
    rf"(?:```\w*|{_OPENING}|commentary|analysis|final|assistant|function|\s)+\Z|\AThought:"
)
_NAMES = ("name", "action", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args", "action_input", "tool_input", "input")
_MARKUP = rf"(?:<[/\w:]*(?:tool|function|invoke|call|action)|{_TOKEN}|\[TOOL_CALLS)"
_DECODER = json.JSONDecoder(strict=False)


class WrittenCalls(NamedTuple):
    """Calls in a text.

    Attributes:
        calls: The calls.
        words: The words before them.
        is_quoted: Whether the first stands in a fence, behind words on its line or behind a colon.
        is_followed: Whether words follow: a text may only show its calls then.
    """

    calls: tuple[ToolCall, ...]
    words: str
    is_quoted: bool = False
    is_followed: bool = False


class _Found(NamedTuple):
    start: int
    end: int
    name: str
    arguments: Mapping[str, Any] | str


def text_calls(text: str, tools: Collection[str], run_tool: str = "") -> WrittenCalls | None:
    """Return the calls in a text, or None without calls of these tools. Never raises.

    Args:
        text: A whole reply.
        tools: Names of the tools that were offered.
        run_tool: The tool that ``<|python_tag|>`` and its code mean; empty for none.
    """
    if not tools or len(text) > _MOST_CHARS:
        return None
    found = [*_named(text, tools), *_objects(text), *_react(text)] or [*_pythonic(text)]
    calls = [call for call in found if call.name in tools and not _is_shown(text, call.start)]
    program = _PROGRAM.search(text) if run_tool and not calls else None
    code = program[1].strip() if program and not _is_shown(text, program.start()) else ""
    if program and code and compiles(code):
        calls = [_Found(program.start(), program.end(), run_tool, {"code": code})]
    return _written(text, sorted(calls, key=lambda call: call.start)) if calls else None


def holds_call(text: str, tools: Collection[str]) -> bool:
    """Return whether the name of an offered tool stands in the markup of a call in a text."""
    names = "|".join(map(re.escape, tools))
    pattern = rf"{_MARKUP}[^\n]{{0,80}}?(?:\n[^\n]{{0,80}}?)?\b(?:{names})\b"
    found = re.finditer(pattern, text) if names else ()
    return any(not _is_shown(text, match.start()) for match in found)


def _is_shown(text: str, at: int) -> bool:
    """Return whether a place in a text is quoted, or lies in code that is shown."""
    if text[:at].rstrip(" ").endswith(QUOTES):
        return True
    return any(match.start() < at < match.end() for match in _SHOWN.finditer(text))


def _written(text: str, found: list[_Found]) -> WrittenCalls:
    calls = tuple(
        ToolCall(f"text{number:05d}", call.name, _as_json(call.arguments))
        for number, call in enumerate(found)
    )
    start, end = found[0].start, found[-1].end
    closings = _CLOSINGS.match(text, end)
    is_followed = bool(text[closings.end() if closings else end :])
    words = _OPENED.sub("", text[:start])
    # DeepSeek writes its tokens right behind words.
    is_inside = bool(words) and "\n" not in text[len(words) : start] and text[start + 1] != _WIDE
    is_quoted = text.startswith("```", start) or words.endswith(":") or is_inside
    return WrittenCalls(calls, words.strip(), is_quoted, is_followed)


def _as_json(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _named(text: str, tools: Collection[str]) -> Iterator[_Found]:
    """Yield calls whose tool is named behind the markup of a call."""
    pattern = _NAMED.replace("NAMES", "|".join(map(re.escape, tools)))
    for match in re.finditer(pattern, text, re.MULTILINE):
        value, end = _json_at(text, match.end())
        if isinstance(value, dict):
            yield _Found(match.start(), end, match[1], value)
            continue
        given, at = {}, match.end()
        while parameter := _PARAMETER.match(text, at):
            given[parameter[1] or parameter[3]] = parameter[2] or parameter[4] or ""
            at = parameter.end()
        if given:
            yield _Found(match.start(), at, match[1], given)


def _react(text: str) -> Iterator[_Found]:
    for match in _REACT.finditer(text):
        value, written = _json_at(match[2], 0)[0], match[2].strip()
        given = value if isinstance(value, dict) else written
        yield _Found(match.start(), len(text), _short(match[1]), given)


def _objects(text: str) -> Iterator[_Found]:
    """Yield the calls of JSON values that follow each other, behind the markup of calls."""
    for match in _VALUES.finditer(text):
        value, at = _json_at(text, match.end())
        while value is not None:
            for name, arguments in _calls_in(value):
                yield _Found(match.start(), at, _short(name), arguments)
            at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,;"))
            value, at = _json_at(text, at)


def _calls_in(value: Any) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
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
        yield name, arguments


def _pythonic(text: str) -> Iterator[_Found]:
    """Yield calls written as Python with literal arguments. Nothing is evaluated."""
    fence = re.search(r"^```tool_\w+[ \t]*\n(.*?)^```[ \t]*$", text, re.M | re.S)
    source = (fence[1] if fence else text).strip()
    start, end = (fence.start(), fence.end()) if fence else (0, len(text))
    if not source.endswith((")", "]")):
        return
    try:
        body = parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for call in [one for line in body if isinstance(line, ast.Expr) for one in _one(line.value)]:
        given = {one.arg: one.value for one in call.keywords if one.arg is not None}
        given |= {str(at): value for at, value in enumerate(call.args)}
        if all(isinstance(value, ast.Constant | ast.List) for value in given.values()):
            arguments = {name: _literal(value) for name, value in given.items()}
            yield _Found(start, end, _short(ast.unparse(call.func)), arguments)


def _one(value: ast.expr) -> list[ast.Call]:
    """Return the calls in a line: in a list, or what is printed."""
    is_printed = isinstance(value, ast.Call) and ast.unparse(value.func) == "print"
    items = value.elts if isinstance(value, ast.List) else [value]
    items = value.args if is_printed and isinstance(value, ast.Call) else items
    return [item for item in items if isinstance(item, ast.Call)]


def _literal(node: ast.expr) -> Any:
    try:
        return literal_value(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _json_at(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at


def _short(name: str) -> str:
    return name.rpartition(".")[2].strip().replace(" ", "_").lower()
