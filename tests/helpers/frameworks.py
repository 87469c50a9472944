"""Which framework a folder or file needs: where it is not installed, tests and modules of that name are left out."""

from __future__ import annotations

FRAMEWORK_OF = {
    "postgres": "psycopg",
    "langchain": "langchain",
    "conversation/test_chats.py": "langchain",
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
    "cross_encoder/test_algorithm.py": "transformers",
    "cross_encoder/test_encoder.py": "transformers",
    "cross_encoder/test_frozen_bandits.py": "transformers",
    "evaluation/test_gradient.py": "peft",
    "evaluation/test_gradient_bench.py": "peft",
    "langchain/test_help_desk.py": "matplotlib",
    "cross_encoder/test_learning.py": "transformers",
    "cross_encoder/test_memory.py": "transformers",
    "evaluation/test_paper_suite.py": "torch",
    "evaluation/test_report.py": "matplotlib",
    "evaluation/test_setup.py": "transformers",
    "package/test_table_pictures.py": "matplotlib",
    "encoders/test_text_model.py": "transformers",
}
