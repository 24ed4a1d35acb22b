"""Tools of MCP servers, as functions that code in the kernel calls."""

from taskweaver.mcp.config import MCPConfig, ServerConfig
from taskweaver.mcp.errors import ServerFailed
from taskweaver.mcp.servers import MCPServers
from taskweaver.mcp.session_tools import SessionTools
from taskweaver.mcp.tools import Tool

__all__ = ["MCPConfig", "MCPServers", "ServerConfig", "ServerFailed", "SessionTools", "Tool"]
