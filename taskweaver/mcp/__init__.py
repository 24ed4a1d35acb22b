"""Tools of MCP servers, as functions that code in the kernel calls."""
