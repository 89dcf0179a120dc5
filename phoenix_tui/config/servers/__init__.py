"""Definitions of MCP servers: files, formats, variables and precedence (docs/decisions/mcp.md)."""
