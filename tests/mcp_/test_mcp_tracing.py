"""The trace context of a call, as an MCP server receives it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from example_running import http_server, stdio
from opentelemetry import trace
from patience import PATIENCE_S
from traces import Collector, collecting

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.logging import Tracing
from taskweaver.logging.spans import tool
from taskweaver.mcp.config import MCPConfig
from taskweaver.mcp.errors import ToolFailed
from taskweaver.mcp.servers import MCPServers

pytest.importorskip("mcp")


TRANSPORTS = ["http", pytest.param("stdio", marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=TRANSPORTS)
def server(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    if request.param == "stdio":
        yield stdio(timeout_s=20)
        return
    with http_server() as running:
        running.pop("pid")
        yield running


@pytest.fixture(autouse=True)
def _own_tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package keeps the tracer of the first global provider, which another test may set."""
    monkeypatch.setattr("mcp.shared._otel._tracer", trace.get_tracer("mcp"))


def received(
    folder: Path, server: dict[str, Any], collector: Collector, *, is_on: bool
) -> dict[str, str]:
    """Call a tool in a span, and one that fails; return the context that the server received."""
    keys = {"tracing.enabled": is_on, "tracing.endpoint": collector.url}
    source = AppConfigSource(None, keys | {"mcp.servers": {"ex": server}}, folder)
    tracing = Tracing(source)
    servers = MCPServers(MCPConfig(source).servers, None, tracing)
    try:
        tools = servers.offer().tools
        with tracing.running(tool("python", "extension")):
            (part,) = servers.call(tools["ex_trace_context"], {}).result(PATIENCE_S)
            with pytest.raises(ToolFailed):
                servers.call(tools["ex_fail"], {"text": "x"}).result(PATIENCE_S)
    finally:
        servers.close()
        tracing.close()
    value: dict[str, str] = part["value"]
    return value


def test_a_request_carries_the_context_of_its_span(tmp_path: Path, server: dict[str, Any]) -> None:
    with collecting() as collector:
        value = received(tmp_path, server, collector, is_on=True)
    spans = {span.name: span for span in collector.spans}
    call = spans["tools/call trace_context"]
    context = f"00-{call.trace_id.hex()}-{call.span_id.hex()}"
    header = context if "url" in server else ""
    contexts = {name: text[: len(context)] for name, text in value.items()}
    assert contexts == {"meta": context, "header": header}
    assert call.parent_span_id == spans["execute_tool python"].span_id
    facts = {item.key: item.value for item in call.attributes}
    assert facts["network.transport"].string_value == ("tcp" if "url" in server else "pipe")
    failed = {item.key: item.value for item in spans["tools/call fail"].attributes}
    assert failed["error.type"].string_value == "tool_error"
