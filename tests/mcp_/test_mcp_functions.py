"""From schemas to stubs, and from results to values: what no server of the other tests says."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from taskweaver.mcp.config import ServerConfig
from taskweaver.mcp.errors import ToolFailed
from taskweaver.mcp.servers import check_arguments
from taskweaver.mcp.tools import RawTool, Tool, make_tools, parts_of

types = pytest.importorskip("mcp_types")
SERVER = ServerConfig("my-server", command="x")


def tool(schema: dict[str, Any], about: str = "About.", output: Any = None) -> Tool:
    tools, problems = make_tools(SERVER, [RawTool("do.it", about, schema, output)], set())
    assert problems == []
    return tools[0]


def test_types_are_said_shortly() -> None:
    definitions = {"Kind": {"enum": ["big"]}, "Loop": {"$ref": "#/$defs/Loop"}}
    for schema, annotation in (
        ({"type": ["string", "null"]}, "str | None"),
        ({"enum": ["a", 1, None]}, "Literal['a', 1, None]"),
        ({"$ref": "#/$defs/Kind"}, "Literal['big']"),
        ({"$ref": "#/$defs/Nothing"}, "Any"),
        ({"$ref": "#/$defs/Loop"}, "Any"),
        ({"$ref": "https://example.org/schema"}, "Any"),
        ({"oneOf": [{"type": "integer"}, {"type": "array", "items": {}}]}, "int | list[Any]"),
        ({"enum": [f"choice {n}" for n in range(100)]}, "Literal"),
        ({"type": "strange"}, "Any"),
        ("no schema", "Any"),
        (True, "Any"),
    ):
        made = tool({"properties": {"x": schema}, "required": ["x"], "$defs": definitions})
        (argument,) = made.entry.spec.args
        assert argument.type == annotation
        ast.parse(made.entry.format_prompt())


def test_what_python_cannot_name_is_described() -> None:
    odd = {"from": {"type": "string", "description": "Where."}, "user-id": {}, "n": {}}
    made = tool({"properties": odd, "required": ["from"]}, 'Line one.\nend""" of\rit')
    assert made.function == "my_server_do_it"
    stub = made.entry.format_prompt()
    ast.parse(stub)
    assert "**{name: value}: 'from': str Where.; 'user-id': Any" in stub
    assert [argument.name for argument in made.entry.spec.args] == ["n"]
    for empty in ({}, {"properties": 3, "required": 4}, {"type": "object"}):
        assert tool(empty).entry.format_prompt().endswith("def my_server_do_it() -> Any: ...")


def test_unknown_argument_is_refused_with_the_known_ones() -> None:
    check_arguments(tool({"type": 3}), {"x": 1})
    with pytest.raises(ToolFailed, match="it has no argument y; it takes x"):
        check_arguments(tool({"properties": {"x": {}}}), {"y": 1})
    check_arguments(tool({"properties": {"x": {}}, "additionalProperties": True}), {"y": 1})


def parts(*content: Any, **fields: Any) -> list[dict[str, Any]]:
    return parts_of(types.CallToolResult(content=list(content), **fields), tool({}))


def test_every_kind_of_content() -> None:
    text = types.TextResourceContents(uri="file:///a", text="[1, 2]")
    blob = types.BlobResourceContents(uri="file:///b", blob="YWJj", mime_type="application/pdf")
    found = parts(
        types.TextContent(text="{no json"),
        types.EmbeddedResource(resource=text),
        types.EmbeddedResource(resource=blob),
        types.AudioContent(data="YWJj", mime_type="audio/wav"),
        types.ResourceLink(name="there", uri="file:///c"),
    )
    assert found[0] == {"value": "{no json"}
    assert found[1] == {"value": [1, 2]}
    assert found[2]["file"].endswith(".pdf")
    assert (found[3]["file"][-4:], found[3]["type"]) == (".wav", "file")
    assert found[4]["value"]["uri"] == "file:///c"
    assert parts() == []
    assert parts(structured_content={"result": 1}) == [{"value": {"result": 1}}]


def test_a_file_that_is_none_is_refused() -> None:
    with pytest.raises(ToolFailed, match="cannot be read"):
        parts(types.ImageContent(data="not base64!", mime_type="image/png"))
    with pytest.raises(ToolFailed, match="failed without a word"):
        parts(is_error=True)
