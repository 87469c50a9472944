"""Which framework a folder or file needs: where it is not installed, tests and modules of that name are left out."""

from __future__ import annotations

FRAMEWORK_OF = {
    "postgres": "psycopg",
    "langchain": "langchain",
    "llama_index": "llama_index",
    "mcp_server": "mcp",
    "inspector": "jinja2",
    "serving.py": "mcp",
    "helpers": "langchain",
    "scripted_llm.py": "llama_index",
    "docs_llm.py": "llama_index",
    "llama_agents.py": "llama_index",
    "mcp_clients.py": "mcp",
    "any_chat_model.py": "langchain_core",
}
