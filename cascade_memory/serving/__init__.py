"""HTTP servers for clients that cannot be trusted: what the MCP server and the inspector listen with."""
