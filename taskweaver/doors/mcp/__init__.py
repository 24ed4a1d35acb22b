"""TaskWeaver as an MCP server: the same tools on standard input and output, and over HTTP."""
