"""MCP servers of conversations: connections, tools, and the prompt texts for a model (docs/decisions/mcp.md)."""
