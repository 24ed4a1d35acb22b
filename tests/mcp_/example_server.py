"""An MCP server for tests: ``python example_server.py [HOW]``, over stdio or HTTP.

HOW is ``stdio`` or ``http PORT``.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("example")
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def greet(name: str, tone: Literal["kind", "rude"] = "kind") -> str:
    """Greet somebody.

    In a tone.
    """
    return f"{tone} greetings, {name}"


@server.tool()
def record(values: list[float], label: str | None = None) -> dict[str, Any]:
    return {"label": label, "sum": sum(values)}


@server.tool(structured_output=False)
def json_text() -> str:
    return '{"rows": [1, 2]}'


@server.tool()
def picture() -> Image:
    return Image(data=DOT, format="png")


@server.tool(structured_output=False)
def both() -> list[Any]:
    return ["a dot:", Image(data=DOT, format="png")]


@server.tool()
def fail(text: str) -> str:
    raise ToolError(text)


@server.tool()
def trace_context(context: Context) -> dict[str, str]:
    meta = dict(context.request_context.meta or {})
    headers = dict(context.headers or {})
    return {"meta": meta.get("traceparent", ""), "header": headers.get("traceparent", "")}


@server.tool()
def long(size: int) -> str:
    return "x" * size


@server.tool(name="create-file")
def create_file(path: str) -> str:
    Path(path).write_text("made")
    return path


@server.tool(name="say-hello")
def say_hello() -> str:
    return "hello"


@server.tool(name="say hello")
def say_hello_too() -> str:
    return "hello too"


@server.tool(name="日本")
def foreign() -> str:
    return "foreign"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http", port]:
            server.run("streamable-http", host="127.0.0.1", port=int(port))
        case _:
            server.run("stdio")
