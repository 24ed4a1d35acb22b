"""A question to the MCP server of the program, as a client asks it."""

from __future__ import annotations

from typing import Any


async def ask_for_mean(client: Any) -> Any:
    """Ask for the mean of a column; return the result, whose progress was told meanwhile."""
    statuses: list[str] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        statuses.append(message or "")

    question = {"question": "what is the mean of the Count column in tiny.csv?"}
    result = await client.call_tool("ask", question, progress_callback=hear)
    assert result.structured_content, result.content
    assert result.structured_content["is_answered"]
    assert "running code" in statuses
    return result
