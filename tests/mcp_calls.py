"""Calls of tools by a client of MCP, and the transports that they go over."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from patience import PATIENCE_S


async def value(client: Any, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found = result.structured_content
    return found["result"] if list(found) == ["result"] else found


async def failure(client: Any, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)


@asynccontextmanager
async def over_stdio(program: Sequence[str], project: Path) -> AsyncIterator[Any]:
    """Give the streams of a program that serves a project."""
    name, *options = program
    env = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LLM_AUTO_DETECT": "false",
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
    }
    arguments, folder = [*options, "-p", str(project), "mcp"], project.parent
    server = StdioServerParameters(command=name, args=arguments, env=env, cwd=folder)
    with (folder / "errors.log").open("w") as log:
        async with stdio_client(server, errlog=log) as streams:
            yield streams


@asynccontextmanager
async def over_http(url: str, token: str, mode: str = "auto") -> AsyncIterator[Any]:
    sent = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


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
