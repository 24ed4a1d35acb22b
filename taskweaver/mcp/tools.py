"""Tools of servers as functions for prompts and the kernel, and results as values."""

from __future__ import annotations

import base64
import binascii
import builtins
import json
import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

from taskweaver.mcp.config import ServerConfig
from taskweaver.mcp.errors import ServerFailed, ToolFailed
from taskweaver.plugin import host_function
from taskweaver.plugin.spec import PluginEntry, PluginParameter, PluginSpec
from taskweaver.utils.ids import create_id
from taskweaver.utils.images import image_kind
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.text import shorten, shorten_words

_FOLDER = Path(host_function.__file__).parent
_IMPL = Path(host_function.__file__).stem
_KERNEL_NAMES = frozenset({"get_ipython", "In", "Out", "exit", "quit", "pd", "np", "plt"})
_TAKEN = frozenset(dir(builtins)) | _KERNEL_NAMES
_MAX_CHARS = 2_000
_MAX_PARAMETER_CHARS = 300
_MAX_TYPE_CHARS = 200
_MAX_NAME_CHARS = 128
_MAX_PARAMETERS = 64
_MAX_CHOICES = 30
_DEPTH = 4
_TYPES = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None",
    "object": "dict", "array": "list",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RawTool:
    """A server's description of a tool."""

    name: str
    description: str
    schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    is_read_only: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that code can call.

    Attributes:
        server: The server it belongs to.
        name: Its name at the server.
        schema: JSON schema of its arguments.
        is_wrapped: Whether its value comes as the only field, ``result``, of an object.
        is_confirmed: Whether a person is asked before each call.
        is_read_only: Whether its server says that it changes nothing.
        entry: The function.
    """

    server: str
    name: str
    schema: Mapping[str, Any]
    is_wrapped: bool
    is_confirmed: bool
    is_read_only: bool
    entry: PluginEntry

    @property
    def function(self) -> str:
        """Name of the function in the kernel."""
        return self.entry.name


def function_name(server: str, tool: str) -> str:
    """Return the name of a tool's function: ``<server>_<tool>``, other characters as ``_``."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", f"{server}_{tool}")
    return f"_{name}" if name[0].isdigit() else name


def make_tools(
    config: ServerConfig, raw: Iterable[RawTool], taken: set[str]
) -> tuple[list[Tool], list[ServerFailed]]:
    """Return the allowed and usable tools of a server, and the problems of the rest.

    `taken` holds the names of functions there are; those of the tools are added.
    """
    tools, problems, seen = [], [], set()
    for item in raw:
        seen.add(item.name)
        if config.tools is not None and item.name not in config.tools:
            continue
        if problem := _problem(item):
            problems.append(ServerFailed(config.name, problem))
            continue
        name = function_name(config.name, item.name)
        if not item.name or keyword.iskeyword(name) or name in _TAKEN or name in taken:
            why = f"the tool {item.name!r} is left out: the name {name} is taken."
            problems.append(ServerFailed(config.name, why))
            continue
        taken.add(name)
        tools.append(_tool(config, item, name))
    wanted = (config.tools or frozenset()) | (config.confirm or frozenset())
    missing = [f"it has no tool {name!r}." for name in sorted(wanted - seen)]
    return tools, problems + [ServerFailed(config.name, why) for why in missing]


def _problem(raw: RawTool) -> str:
    """Return why a tool cannot be shown to a model, or an empty text."""
    arguments = _properties(raw.schema)
    if max(map(len, [raw.name, *arguments])) > _MAX_NAME_CHARS:
        return f"the tool {shorten(raw.name, 40)!r} is left out: a name in it is too long."
    if len(arguments) > _MAX_PARAMETERS:
        return f"the tool {raw.name!r} is left out: it takes {len(arguments):,} arguments."
    return ""


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _tool(config: ServerConfig, raw: RawTool, name: str) -> Tool:
    needed = frozenset(_strings(raw.schema.get("required")))
    shown: list[PluginParameter] = []
    other: list[PluginParameter] = []
    for parameter, schema in _properties(raw.schema).items():
        is_name = parameter.isidentifier() and not keyword.iskeyword(parameter)
        text = _described(schema, raw.schema)
        made = PluginParameter(parameter, *text, parameter in needed)
        (shown if is_name else other).append(made)
    shown.sort(key=lambda parameter: not parameter.required)
    about = (
        shorten(cleandoc(without_steering(raw.description)), _MAX_CHARS) or f"The tool {raw.name}."
    )
    if other:
        listed = "; ".join(f"{item.name!r}: {item.type} {item.description}" for item in other)
        about += f"\nFurther arguments, given as **{{name: value}}: {listed}"
    output = raw.output_schema or {}
    is_wrapped = list(_properties(output)) == ["result"]
    returned = _type(output["properties"]["result"] if is_wrapped else output, output)
    spec = PluginSpec(name, about, tuple(shown), (PluginParameter("result", returned),))
    call = {"parameters": [item.name for item in shown], "needed": sorted(needed)}
    entry = PluginEntry(
        name, _IMPL, spec, {**call, "about": f"{about}\n\n{spec.format_prompt()}"}, folder=_FOLDER
    )
    is_confirmed = config.confirm is None or raw.name in config.confirm
    return Tool(
        config.name, raw.name, raw.schema, is_wrapped, is_confirmed, raw.is_read_only, entry
    )


def _described(schema: object, root: Mapping[str, Any]) -> tuple[str, str]:
    """Return the type and the description of a parameter."""
    if not isinstance(schema, Mapping):
        return "Any", ""
    text = str(schema.get("description") or "")
    if schema.get("default"):
        text += f" Default: {schema['default']!r}."
    return _type(schema, root), shorten_words(without_steering(text), _MAX_PARAMETER_CHARS)


def _type(schema: object, root: Mapping[str, Any]) -> str:
    """Return the Python type of a JSON schema, in a short form."""
    text = _annotation(schema, root, _DEPTH)
    return text if len(text) <= _MAX_TYPE_CHARS else text.partition("[")[0]


def _annotation(schema: object, root: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, Mapping) or depth == 0:
        return "Any"
    choices = schema.get("anyOf", schema.get("oneOf"))
    match schema:
        case {"$ref": str(reference)}:
            return _annotation(_referred(reference, root), root, depth - 1)
        case {"enum": list(values)}:
            return f"Literal[{', '.join(map(repr, values[:_MAX_CHOICES]))}]"
        case {"type": list(kinds)}:
            choices = [{"type": kind} for kind in kinds[:_MAX_CHOICES]]
        case {"type": "array", "items": items}:
            return f"list[{_annotation(items, root, depth - 1)}]"
    if isinstance(choices, list):
        types = dict.fromkeys(_annotation(item, root, depth - 1) for item in choices[:_MAX_CHOICES])
        return " | ".join(types) or "Any"
    return _TYPES.get(str(schema.get("type")), "Any")


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    """Return the part that ``#/a/b`` refers to, if there is such a part."""
    found: object = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


_MAX_ERROR_CHARS = 4_000
_MAX_PARTS = 1_000
_SUFFIXES = {
    "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp",
    "audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "application/pdf": ".pdf",
    "application/json": ".json", "application/zip": ".zip", "text/csv": ".csv",
    "text/plain": ".txt",
}  # fmt: skip
"""Endings of files by the type a server states; others end in ``.bin``, opened by no program."""


def parts_of(result: Any, tool: Tool) -> list[dict[str, Any]]:
    """Return the parts of a tool's `mcp.CallToolResult`.

    Raises:
        ToolFailed: If the tool says that it failed, or a file in it cannot be read.
    """
    if result.is_error:
        texts = [item.text for item in result.content if item.type == "text"]
        raise ToolFailed(
            shorten(without_steering("\n".join(texts)), _MAX_ERROR_CHARS)
            or "it failed without a word."
        )
    if len(result.content) > _MAX_PARTS:
        raise ToolFailed(f"its result has {len(result.content):,} parts; ask for less.")
    parts = [_part(item, tool) for item in result.content]
    structured = result.structured_content
    if structured is None:
        return parts
    if tool.is_wrapped and isinstance(structured, dict) and list(structured) == ["result"]:
        structured = structured["result"]
    # Texts beside it say the same in words.
    return [{"value": structured}, *(part for part in parts if "file" in part)]


def _part(item: Any, tool: Tool) -> dict[str, Any]:
    match item.type:
        case "text":
            return {"value": _plain(item.text)}
        case "image" | "audio":
            return _file(item.data, item.mime_type, tool)
        case "resource" if hasattr(item.resource, "text"):
            return {"value": _plain(item.resource.text)}
        case "resource":
            return _file(item.resource.blob, item.resource.mime_type or "", tool)
        case _:
            return {"value": item.model_dump(mode="json", exclude_none=True)}


def _plain(text: str) -> Any:
    """Return the object or list a text is in JSON, else the text itself."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _file(data: str, mime_type: str, tool: Tool) -> dict[str, Any]:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed(f"it gave a file that cannot be read: {error}.") from error
    mime_type = mime_type.partition(";")[0].strip().lower()
    is_image = mime_type == f"image/{image_kind(content)}"
    is_as_stated = is_image or not mime_type.startswith("image/")
    suffix = _SUFFIXES.get(mime_type, ".bin") if is_as_stated else ".bin"
    kind = "image" if is_image else "file"
    return {"file": f"{tool.function}-{create_id()}{suffix}", "type": kind, "data": data}
