"""The trace context of a call, as an MCP server receives it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from example_running import http_server, stdio
from opentelemetry import trace
from patience import PATIENCE_S
from traces import collecting

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.logging import Tracing
from taskweaver.logging.spans import tool
from taskweaver.mcp.config import MCPConfig
from taskweaver.mcp.errors import ToolFailed
from taskweaver.mcp.servers import MCPServers

pytest.importorskip("mcp")


@pytest.fixture(scope="module", params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    if request.param == "stdio":
        yield stdio(timeout_s=20)
        return
    with http_server() as running:
        running.pop("pid")
        yield running


@pytest.mark.parametrize("is_on", [True, False])
def test_a_request_carries_the_context_of_its_span(
    tmp_path: Path, server: dict[str, Any], is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package keeps the tracer of the first global provider, which another test may have set.
    monkeypatch.setattr("mcp.shared._otel._tracer", trace.get_tracer("mcp"))
    with collecting() as collector:
        keys = {"tracing.enabled": is_on, "tracing.endpoint": collector.url}
        source = AppConfigSource(None, keys | {"mcp.servers": {"ex": server}}, tmp_path)
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
    if not is_on:
        assert part["value"] == {"meta": "", "header": ""}
        assert collector.spans == []
        return
    spans = {span.name: span for span in collector.spans}
    call = spans["tools/call trace_context"]
    context = f"00-{call.trace_id.hex()}-{call.span_id.hex()}"
    header = context if "url" in server else ""
    received = {name: value[: len(context)] for name, value in part["value"].items()}
    assert received == {"meta": context, "header": header}
    assert call.parent_span_id == spans["execute_tool python"].span_id
    facts = {item.key: item.value for item in call.attributes}
    assert facts["network.transport"].string_value == ("tcp" if "url" in server else "pipe")
    failed = {item.key: item.value for item in spans["tools/call fail"].attributes}
    assert failed["error.type"].string_value == "tool_error"
