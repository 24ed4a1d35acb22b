"""Calls of tools by a client of MCP."""

from __future__ import annotations

from typing import Any


async def value(client: Any, tool: str, **arguments: Any) -> Any:
    """Call a tool; return its structured result."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found = result.structured_content
    return found["result"] if list(found) == ["result"] else found


async def failure(client: Any, tool: str, **arguments: Any) -> str:
    """Call a tool that fails; return the reason."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)
