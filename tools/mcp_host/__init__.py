"""The MCP helper, a process of its own: the only place that imports the MCP SDK (docs/decisions/mcp.md)."""
